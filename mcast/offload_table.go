// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

// OffloadTable is what the fast path of a group has to know to make copies, beside the
// driver's own tables. It holds as long as the source does, and the members.
type OffloadTable struct {
	Source MemberID
	Window Window // what WRITEs address; Len 0: they are not rewritten
	// NoWrite: WRITEs of bytes are not taken, since a receiver has no memory for them.
	NoWrite bool
	Legs    []OffloadLeg // those that get copies; reused
}

// OffloadLeg is the memory that WRITEs go to at the member of a connected leg, in a group
// with a window.
type OffloadLeg struct {
	Leg     LegID
	VADelta uint64 // is added to the address
	RKey    uint32
}

// OffloadTable writes what the fast path of a group has to know into t. It returns false
// if no member is the source, or if the fast path is not for this group.
func (s *Switch) OffloadTable(id GroupID, t *OffloadTable) bool {
	g := s.group(id)
	if g == nil || g.repair.path == notOffered || g.src.member == none {
		return false
	}
	*t = OffloadTable{Source: MemberID(g.src.member), Legs: t.Legs[:0]}
	if g.fwd.hasWindow {
		t.Window, t.NoWrite = g.fwd.window, g.fwd.numWithoutWindow != 0
	}
	for i := range g.acks {
		if g.acks[i].flags&isReceiver == 0 {
			continue
		}
		l := OffloadLeg{Leg: LegID(i)}
		if g.fwd.hasWindow && g.legs[i].connected() {
			l.VADelta, l.RKey = g.legs[i].base-g.fwd.window.Base, g.legs[i].rkey
		}
		t.Legs = append(t.Legs, l)
	}
	return true
}
