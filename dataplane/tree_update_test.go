// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"testing"

	"github.com/gleam-rdma/gleam/mcast"
)

// While an update is applied, a member that leaves is where it was, and all others, with the legs
// that are new, are as after it.
func TestTableOfAnUpdateHasThoseThatLeave(t *testing.T) {
	old := groupTable{
		legs:    []leg{{kind: mcast.Connected, port: 1}, {kind: mcast.Connected, port: 2}, {kind: mcast.Forwarded, port: 3, neighbour: 1}},
		members: []member{{leg: 0, qpn: 1}, {leg: 1, qpn: 2}, {leg: 2, qpn: 3}},
	}
	now := groupTable{
		legs:    []leg{{kind: mcast.Connected, port: 1}, {kind: mcast.Connected, port: 5}, {kind: mcast.Forwarded, port: 3, neighbour: 1}, {kind: mcast.Forwarded, port: 4, neighbour: 2}},
		members: []member{{leg: 0, qpn: 1}, {leg: 1, qpn: 9}, {leg: 3, qpn: 3}},
	}
	x := now.withLeaving(&old, []mcast.MemberID{1})
	if x.members[1].qpn != 2 || x.legs[1].port != 2 {
		t.Errorf("the member that leaves: %+v at %+v", x.members[1], x.legs[1])
	}
	if x.members[2].leg != 3 || len(x.legs) != 4 || x.legs[3].neighbour != 2 {
		t.Errorf("the member that moves: %+v, legs %+v", x.members[2], x.legs)
	}
	if now.members[1].qpn != 9 || now.legs[1].port != 5 {
		t.Error("the table after the update has changed")
	}
}

// Each layout of a tree, and each session of the neighbours, gives an edge another session; none
// is 0, which is no session.
func TestSessionsOfEdges(t *testing.T) {
	seen := make(map[uint64]bool)
	for session := range uint64(40) {
		for layout := range uint32(40) {
			s := edgeSession(session, layout)
			if s == 0 || seen[s] {
				t.Fatalf("session %d, layout %d: %#x", session, layout, s)
			}
			seen[s] = true
		}
	}
}
