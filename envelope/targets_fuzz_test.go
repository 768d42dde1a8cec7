// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"bytes"
	"net/netip"
	"testing"
)

// FuzzTargets reads update messages: reading ends, and what was read builds the
// same bytes again.
func FuzzTargets(f *testing.F) {
	v4, v6 := sample(1, 2), netip.MustParseAddr("fd77::1")
	f.Add(AppendTargets(nil, []TargetRecord{{v4.Members[0].IP, 1 << 40, 7}, {v4.Members[1].IP, 2, 8}}), true)
	f.Add(AppendTargets(nil, []TargetRecord{{v6, 1 << 40, 7}}), false)
	f.Fuzz(func(t *testing.T, payload []byte, v4 bool) {
		var read []TargetRecord
		rest := payload
		for first := true; ; first = false {
			r, left, ok := ParseTarget(rest, first, v4)
			if !ok {
				rest = left
				break
			}
			if len(left) >= len(rest) {
				t.Fatal("reading does not get on")
			}
			read, rest = append(read, r), left
		}
		if len(read) == 0 {
			return
		}
		if b := AppendTargets(nil, read); !bytes.Equal(append(b, rest...), payload) {
			t.Fatalf("%x was read as %v and %x", payload, read, rest)
		}
	})
}
