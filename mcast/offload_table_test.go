// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"reflect"
	"testing"
)

// TestOffloadTable: the fast path makes copies for the receivers of the present source, with the
// rewriting of the core's copies.
func TestOffloadTable(t *testing.T) {
	window := Window{Base: 0x1000, Len: 0x100, RKey: 7}
	s, _ := offloaded(t, func(spec *GroupSpec) {
		spec.Window = window
		spec.Members[1].Window = Window{Base: 0x5000, Len: 0x100, RKey: 8}
		spec.Members[2].Window = Window{Base: 0x800, Len: 0x200, RKey: 9}
	})
	var got OffloadTable
	want := OffloadTable{Source: 0, Window: window, Legs: []OffloadLeg{{1, 0x4000, 8}, {2, ^uint64(0x7FF), 9}}}
	if !s.Group(0).OffloadTable(&got) || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	s.group(0).fwd.numWithoutWindow = 1
	if s.Group(0).OffloadTable(&got); !got.NoWrite {
		t.Error("WRITEs are taken although a receiver has no window")
	}
	s.group(0).src.member = none
	if s.Group(0).OffloadTable(&got) {
		t.Error("a table without a source")
	}
	s.group(0).repair.path = notOffered
	if s.Group(0).OffloadTable(&got) || s.Group(5).OffloadTable(&got) {
		t.Error("a table of a group that is not offered")
	}
}
