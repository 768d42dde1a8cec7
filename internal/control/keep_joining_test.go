// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// A switch between others stores positions from the update on with its first own member (R83).
func TestFirstOwnMemberIsStored(t *testing.T) {
	f := newFakeSwitch(t, 5, 1)
	f.meet(1500, 5)
	r := f.treeRegistration()
	r.Origin, r.Epoch = 7, 7
	f.control.do(func() {
		f.know(3)
		d := f.control.dir
		d.defaults.stored, d.defaults.psnProbe = true, time.Millisecond
		if v := d.Install(r, 0); v != accepted {
			t.Fatalf("installed: %+v", v)
		}
		g := d.groups[r.Group]
		n := updated(r, 1, []uint32{1, 2, 3, 4, 5, 6}, []mcast.Neighbor{2, 0, 1, 2, 0, 2}, r.Members...)
		if p := d.planMembers(g, n, nil); !p.update.Stored {
			t.Error("with members here positions are not stored")
		}
		n = updated(r, 1, []uint32{1, 3}, []mcast.Neighbor{2, 1}, r.Members[0], r.Members[2])
		if p := d.planMembers(g, n, nil); p.update.Stored {
			t.Error("without members here positions are stored")
		}
		d.defaults.stored = false
		n = updated(r, 1, []uint32{1, 2, 3, 4, 5, 6}, []mcast.Neighbor{2, 0, 1, 2, 0, 2}, r.Members...)
		if p := d.planMembers(g, n, nil); p.update.Stored {
			t.Error("without a state file positions are stored")
		}
	})
}

// The file says which members are joining: those of the positions (R83), and those behind other switches
// that have come since these were read (R101).
func TestJoiningIsKept(t *testing.T) {
	f := newFakeSwitch(t, 5, 1)
	f.meet(1500, 5)
	r := f.treeRegistration() // hosts 10, 0, 11, 12, 1 and 13; 0 and 1 are here
	f.control.do(func() {
		f.know(2)
		d := f.control.dir
		if v := d.Install(r, 0); v != accepted {
			t.Fatalf("installed: %+v", v)
		}
		g := d.groups[r.Group]
		if g.presentTurn() != nil {
			t.Error("there is a turn")
		}
		p := &mcast.Positions{HasSource: true, Source: 1, Members: make([]mcast.Position, len(r.Members))}
		for i := range p.Members {
			p.Members[i].Known = i != 0
		}
		p.Members[2].Joining, p.Members[4].Joining = true, true
		g.noteTurn(p)
		at := func(hosts ...int) (ips []netip.Addr) {
			for _, k := range hosts {
				ips = append(ips, fakeHost(k))
			}
			return ips
		}
		if x := g.presentTurn(); !slices.Equal(x.Joining, at(11, 1)) || len(x.Positions) != len(r.Members)-1 || x.Source != fakeHost(0) {
			t.Errorf("%+v", x)
		}
		for _, i := range []int{3, 4} { // other queue pairs of host 12, and of host 1, which is here, have joined
			other := *g.slots[i].record
			other.QPN++
			g.slots[i].record = &other
		}
		x := g.presentTurn()
		if !slices.Equal(x.Joining, at(11, 12)) || len(x.Positions) != len(r.Members)-3 {
			t.Errorf("%+v", x)
		}
		for i, at := range positionsOf(x, r.Members).Members {
			if at.Joining != (i == 2 || i == 3) || at.Known != (i == 1 || i == 2 || i == 5) {
				t.Errorf("member %d: %+v", i, at)
			}
		}
		g.markGone(2)
		if x := g.presentTurn(); !slices.Equal(x.Joining, at(12)) {
			t.Errorf("one has gone: %+v", x)
		}
	})
}
