// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package locate

import "testing"

// FuzzVLANs parses answers about a bridge's VLANs: at most one VLAN for every
// entry, and asking for any of them ends.
func FuzzVLANs(f *testing.F) {
	f.Add([]byte{7, 0, 0, 0, 3, 0, 0, 0, 20, 0, 1, 128, 8, 0, 1, 0, 6, 0, 10, 0, 6, 0, 2, 0, 20, 0, 0, 0})
	f.Add([]byte{7, 0, 0, 0, 3, 0, 0, 0, 4, 0, 1, 128})
	f.Fuzz(func(t *testing.T, b []byte) {
		var v vlans
		if err := v.parse(b); err != nil {
			return
		}
		if len(v.of) > len(b)/4 {
			t.Fatalf("%d VLANs in %d bytes", len(v.of), len(b))
		}
		for _, r := range v.of {
			if r.first == 0 {
				t.Fatal("VLAN 0 is a member")
			}
		}
		v.find(v.pvid)
	})
}
