// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"net/netip"
	"testing"
	"time"
)

// TestWrongLocation: what comes from elsewhere than the member's place changes nothing and is
// answered to nobody, whatever its type; only a Here may, since it confirms a new place.
func TestWrongLocation(t *testing.T) {
	a := newAsker(t, RegistrarConfig{})
	reg := epoch(sample(1, 3), 1)
	master, member := a.from, netip.AddrPortFrom(reg.Members[1].IP, DefaultPort)
	a.register(reg)
	before := len(a.w.table.calls)
	for _, c := range []struct {
		from netip.AddrPort
		body Body
	}{
		{member, &Leave{reg.Members[1].Key()}}, {master, &Leave{reg.Members[1].Key()}}, {master, &Renew{}}, {master, &Delete{}},
		{master, &Register{reg.groupBody(reg.Members)}}, {member, &Ack{}},
	} {
		a.from = c.from
		as := ""
		if c.body.kind() == TypeAck {
			as = "left"
		}
		a.w.table.away = map[netip.Addr]string{c.from.Addr(): as}
		h := a.head(reg.Group, 1)
		if out := a.ask(h, c.body); out.Drop != WrongLocation || len(out.Packets)+len(out.Events) > 0 || out.Detail == "" {
			t.Errorf("%v from %s: %v, %d packets, %d events", c.body.kind(), c.from, out.Drop, len(out.Packets), len(out.Events))
		}
	}
	a.from, a.w.table.away = member, map[netip.Addr]string{member.Addr(): ""}
	if out := a.ask(a.head(reg.Group, 1), &Here{Member: member.Addr()}); len(out.Events) != 1 || out.Events[0].Kind != MemberHere {
		t.Errorf("Here: %v, %v", out.Drop, out.Events)
	}
	if got := len(a.w.table.calls); got != before {
		t.Errorf("the table is changed: %v", a.w.table.calls[before:])
	}
	a.w.table.away = nil
	if out := a.ask(a.head(reg.Group, 1), &Leave{reg.Members[1].Key()}); len(out.Events) != 1 || out.Events[0].EndReason != Left {
		t.Errorf("Leave from its place: %v, %v", out.Drop, out.Events)
	}
}

// TestAckFromElsewhere: an Ack from elsewhere than the former member's place leaves the
// Gone waiting, and so does one without the cookie of its address, as recorded ones are;
// another one ends it.
func TestAckFromElsewhere(t *testing.T) {
	a := newAsker(t, RegistrarConfig{})
	reg := epoch(sample(1, 3), 1)
	a.register(reg)
	out := a.ask(a.head(reg.Group, 1), &Leave{reg.Members[1].Key()})
	var gone Message
	for _, p := range out.Packets {
		if m, err := Open(p.Data, testKeys, false); err == nil && m.Type == TypeGone {
			gone = m
		}
	}
	if gone.Body == nil {
		t.Fatalf("no Gone among %d packets", len(out.Packets))
	}
	again := func() (n int) {
		var o Output
		a.w.now += 5 * time.Second
		a.w.sw.Advance(a.w.now, &o)
		for _, p := range o.Packets {
			if m, err := Open(p.Data, testKeys, false); err == nil && m.Type == TypeGone && m.Transaction == gone.Transaction {
				n++
			}
		}
		return n
	}
	a.from = netip.AddrPortFrom(reg.Members[1].IP, DefaultPort)
	for _, want := range []Drop{WrongLocation, WrongInstance, NoDrop} {
		a.w.table.away = nil
		if want == WrongLocation {
			a.w.table.away = map[netip.Addr]string{a.from.Addr(): "left"}
		}
		h := a.head(reg.Group, gone.Epoch)
		h.Transaction = gone.Transaction
		if want == WrongInstance {
			h.Instance++
		}
		out := a.ask(h, &Ack{})
		if n := again(); out.Drop != want || (want != NoDrop) != (n == 1) {
			t.Errorf("%v, want %v, then %d more Gone", out.Drop, want, n)
		}
	}
}
