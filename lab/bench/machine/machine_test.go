// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"strings"
	"testing"
)

func TestModel(t *testing.T) {
	for _, c := range []struct{ info, want string }{
		{"processor\t: 0\nvendor_id\t: GenuineIntel\nmodel\t\t: 85\nmodel name\t: Some Xeon @ 2.50GHz\n\nmodel name\t: other\n", "Some Xeon @ 2.50GHz"},
		{"processor\t: 0\nBogoMIPS\t: 50\n\nModel\t\t: Raspberry Pi 4\n", "Raspberry Pi 4"},
		{"", ""},
	} {
		if got := model(c.info); got != c.want {
			t.Errorf("%q of %q, want %q", got, c.info, c.want)
		}
	}
}

func TestHere(t *testing.T) {
	m := Here("v9")
	if m.Cores < 1 || m.Kernel == "unknown" || !strings.HasPrefix(m.Go, "go") {
		t.Errorf("%+v", m)
	}
	if s := m.String(); !strings.Contains(s, "v9") || !strings.Contains(s, m.Kernel) {
		t.Error(s)
	}
}
