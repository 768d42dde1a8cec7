// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package linkrate

import "testing"

// FuzzParse: what is accepted is in range, and reads the same after it was
// printed.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"none", "100mbit", "2.5gbit", "1000gbit", "9999bit", "1e9bit", "0.00001gbit", "..gbit"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := Parse(s)
		if err != nil {
			return
		}
		if r.Validate() != nil {
			t.Fatalf("%q is %d", s, int64(r))
		}
		if again, err := Parse(r.String()); err != nil || again != r {
			t.Fatalf("%q is %d, printed as %q, read as %d, %v", s, int64(r), r, int64(again), err)
		}
	})
}
