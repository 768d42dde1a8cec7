// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"encoding/hex"
	"net/netip"
	"slices"
	"testing"
)

// readTargets reads all records; whole is whether nothing was left over.
func readTargets(b []byte, v4 bool) (all []TargetRecord, whole bool) {
	for first := true; ; first = false {
		r, rest, ok := ParseTarget(b, first, v4)
		if !ok {
			return all, len(rest) == 0 && len(all) > 0
		}
		all, b = append(all, r), rest
	}
}

func TestTargets(t *testing.T) {
	v4 := []TargetRecord{
		{netip.MustParseAddr("10.0.0.2"), 0x7f0000001000, 0x11223344},
		{netip.MustParseAddr("10.0.0.3"), 8, 9},
	}
	b := AppendTargets(nil, v4)
	const golden = "47540104" + "0a000002" + "00007f0000001000" + "11223344" + "0a000003" + "0000000000000008" + "00000009"
	if hex.EncodeToString(b) != golden {
		t.Errorf("got %x", b)
	}
	v6 := []TargetRecord{{netip.MustParseAddr("fd77::2"), 1, 2}}
	for _, c := range []struct {
		want []TargetRecord
		is4  bool
	}{{v4, true}, {v6, false}} {
		b := AppendTargets(nil, c.want)
		if got, whole := readTargets(b, c.is4); !whole || !slices.Equal(got, c.want) {
			t.Errorf("read %v, whole %v", got, whole)
		}
		if got, _ := readTargets(b, !c.is4); got != nil {
			t.Errorf("the other family reads %v", got)
		}
		for i := range targetsHeader {
			other := slices.Clone(b)
			other[i]++
			if got, _ := readTargets(other, c.is4); got != nil {
				t.Errorf("with another byte %d of the header: %v", i, got)
			}
		}
		for n := range b {
			if _, whole := readTargets(b[:n], c.is4); whole && (n-4)%targetLen(c.is4) != 0 {
				t.Errorf("%d of %d bytes pass as whole", n, len(b))
			}
		}
	}
	if n := MaxTargets(1024, true); n != 63 || len(AppendTargets(nil, make([]TargetRecord, 0, n)))+n*targetLen(true) > 1024 {
		t.Errorf("%d records in 1024 bytes", n)
	}
}
