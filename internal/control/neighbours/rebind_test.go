// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package neighbours

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/envelope/hello"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
)

// The link is deleted and made anew: both ends take up their hellos at the new interfaces,
// with the sockets that they have, and say their new MAC addresses.
func TestInterfaceMadeAnew(t *testing.T) {
	nsA, nsB := pair(t)
	a := open(t, nsA, section(t, 1, keyed(secretA)), "p1")
	b := open(t, nsB, section(t, 2, keyed(secretA)), "p1")
	first := a.adjacent(0)
	b.adjacent(0)
	if err := nsA.DeleteLink("p1"); err != nil {
		t.Fatal(err)
	}
	a.SetLink(0, false, 0)
	b.SetLink(0, false, 0)
	if err := lab.Veth(lab.End{NS: nsA, Name: "p1"}, lab.End{NS: nsB, Name: "p1"}, 0); err != nil {
		t.Fatal(err)
	}
	var macs []rocev2.MAC
	for _, end := range []struct {
		ns *lab.Namespace
		r  *Runtime
	}{{nsA, a.Runtime}, {nsB, b.Runtime}} {
		l, err := end.ns.Handle().LinkByName("p1")
		if err != nil {
			t.Fatal(err)
		}
		macs = append(macs, rocev2.MAC(l.Attrs().HardwareAddr))
		if err := end.r.SetInterface(0, l.Attrs().Index, macs[len(macs)-1]); err != nil {
			t.Fatal(err)
		}
		end.r.SetLink(0, true, 1500)
	}
	next := a.adjacent(0)
	b.adjacent(0)
	if next.Session == first.Session || next.MAC != macs[1] {
		t.Errorf("%+v, before %+v, want the address %v", next, first, macs[1])
	}
	if err := a.SetInterface(7, 1, macs[0]); err != nil {
		t.Errorf("a port without hellos: %v", err)
	}
}

// A port is added, and is removed: hellos begin, and end at once. Another one takes its place.
func TestPortAddedAndRemoved(t *testing.T) {
	nsA, nsB := pair(t)
	a := open(t, nsA, section(t, 1, keyed(secretA)), "")
	b := open(t, nsB, section(t, 2, keyed(secretA)), "p1")
	at, err := nsA.Handle().LinkByName("p1")
	if err != nil {
		t.Fatal(err)
	}
	p := Port{Index: 0, Name: "p1", Ifindex: at.Attrs().Index, MAC: rocev2.MAC(at.Attrs().HardwareAddr), MTU: 1500, Up: true}
	for round := range 2 {
		if a.Has(0) {
			t.Fatalf("round %d: hellos are exchanged where no port is", round)
		}
		if err := a.SetPort(p); err != nil {
			t.Fatal(err)
		}
		if x := a.adjacent(0); x.ID != b.ID() || !a.Has(0) {
			t.Errorf("round %d: %+v, want the neighbour %v", round, x, b.ID())
		}
		b.adjacent(0)
		if err := a.SetPort(Port{Index: 0}); err != nil {
			t.Fatal(err)
		}
		if _, up := a.at(0); up {
			t.Errorf("round %d: the removed port has a neighbour", round)
		}
		eventually(t, "the other end has noticed", func() bool {
			_, up := b.at(0)
			return !up
		})
	}
	if err := a.SetPort(Port{Index: 3, Name: "p3"}); err == nil {
		t.Error("a port that no socket was opened for exchanges hellos")
	}
}

// The sockets of ports that may be added are closed before those of ports, where hellos go on.
func TestSparesAreClosed(t *testing.T) {
	nsA, nsB := pair(t)
	a := open(t, nsA, section(t, 1, keyed(secretA)), "", "p1")
	b := open(t, nsB, section(t, 2, keyed(secretA)), "p1")
	a.adjacent(1)
	was := b.adjacent(0)
	if err := a.CloseSpares(); err != nil {
		t.Fatal(err)
	}
	heard := func() uint64 { return b.Links()[0].Received }
	for enough := heard() + 2*hello.Multiplier; heard() < enough; time.Sleep(time.Millisecond) {
		if _, up := b.at(0); !up {
			t.Fatal("the neighbour has heard nothing for the hold time")
		}
	}
	if x := b.adjacent(0); x.Session != was.Session {
		t.Errorf("session %x, before %x", x.Session, was.Session)
	}
	if err := a.SetPort(Port{Index: 0, Name: "p2", Ifindex: 1}); err == nil {
		t.Error("a port was added by a socket that is closed")
	}
}
