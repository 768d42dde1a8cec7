// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"slices"
	"testing"

	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/envelope/hello"
	"github.com/gleam-rdma/gleam/internal/control/neighbours"
	"github.com/gleam-rdma/gleam/mcast"
)

// The registrar's answers about ways: a host here, one behind a neighbour, and one behind a
// gateway that is none, which is named.
func TestWaysForTheRegistrar(t *testing.T) {
	f, h, r := newFakeTree(t, 3, 1, 2)
	h.set(gatewayAt(1, 10, 0x100))
	behind, nowhere := fakeHost(100), fakeHost(101)
	r.set(behind, by(1))
	r.set(nowhere, by(2))
	r.set(fakeHost(0), by())
	f.eventually("the neighbour is up", func() (up bool) {
		f.control.do(func() { _, up = f.control.switches.Table.At(1) })
		return up
	})
	for _, ip := range []int{0, 100, 101} {
		f.ways(fakeHost(ip))
	}
	f.control.do(func() {
		d := f.control.dir
		if w := d.Ways(fakeHost(0)); w.Kind != envelope.VerdictAccepted || !w.Here {
			t.Errorf("here: %+v", w)
		}
		if w := d.Ways(behind); w.Kind != envelope.VerdictAccepted || w.Here || !slices.Equal(w.Hops, []mcast.Neighbor{1}) {
			t.Errorf("behind a neighbour: %+v", w)
		}
		w := d.Ways(nowhere)
		if w.Kind != envelope.VerdictRejected || w.Problem.Reason != envelope.NoWay || w.Problem.Value != hopNumber(gatewayOf(2)) {
			t.Errorf("behind a router: %+v", w)
		}
		if n := d.Traffic(1); n != 0 {
			t.Errorf("%d frames to the neighbour", n)
		}
		if n := d.Traffic(77); n != 0 {
			t.Errorf("%d frames to nobody", n)
		}
	})
}

// An envelope in the name of a member that is at another switch does not count, wherever it
// comes from; one of the member's own counts again when the member has gone.
func TestEnvelopesOfMembersElsewhere(t *testing.T) {
	f := newFakeSwitch(t, 4, 1)
	f.meet(1500, 5)
	r := f.treeRegistration()
	f.control.do(func() {
		f.know(2)
		d := f.control.dir
		if v := d.Install(r, 0); v != accepted {
			t.Fatalf("installed: %+v", v)
		}
		for port := range 4 {
			d.cameFrom = dataplane.Origin{Port: port}
			if d.FromMember(r.Group, fakeHost(10), 0, false) || d.FromMember(r.Group, fakeHost(10), 0, true) {
				t.Errorf("an envelope by port %d counts", port)
			}
		}
		d.RemoveMember(r.Group, r.Members[0].Key(), envelope.Left)
		if !d.FromMember(r.Group, fakeHost(10), 0, false) {
			t.Error("a host that is no member any more has no say")
		}
	})
}

// The registrar hears of neighbours that come up, begin a new session, and go.
func TestTheRegistrarKnowsNeighbours(t *testing.T) {
	f, h, _ := newFakeTree(t, 3, 1)
	relay := append([]byte("GLRL\x01\x04"), make([]byte, 120)...)
	f.control.do(func() {
		f.control.switches.Hellos = h
	})
	drop := func(n mcast.Neighbor) (d envelope.Drop) {
		f.control.do(func() {
			f.control.registrar.InputFromSwitch(f.control.now(), n, relay, &f.control.out)
			d = f.control.out.Drop
		})
		return d
	}
	if d := drop(1); d != envelope.NotFromSwitch {
		t.Errorf("before: %v", d)
	}
	h.set(gatewayAt(1, 10, 0x100))
	f.eventually("the registrar knows the neighbour", func() bool { return drop(1) != envelope.NotFromSwitch })
	h.set(neighbours.Link{Port: 1, Reason: hello.Silent, Lost: hello.Silent})
	f.eventually("the registrar knows that it has gone", func() bool { return drop(1) == envelope.NotFromSwitch })
}
