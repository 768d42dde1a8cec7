// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/rocev2"
)

// registerByHand registers reg and returns its epoch and why it was refused.
func registerByHand(t *testing.T, w *world, reg Registration, out *Output) (uint64, Reason) {
	t.Helper()
	e, err := w.sw.RegisterLocal(w.now, reg, out)
	var p *Problem
	switch {
	case err == nil:
		return e, NoReason
	case errors.As(err, &p):
		return 0, p.Reason
	}
	t.Fatal(err)
	return 0, 0
}

// A registration that is identical to the live group leaves it as it is, whatever
// traffic there was: by hand, and by envelopes, where it has an epoch, an answer and
// notifications of its own.
func TestIdenticalRegistrationGoesOn(t *testing.T) {
	for _, carried := range []bool{false, true} {
		w := newWorld(t, RegistrarConfig{})
		var out Output
		reg := sample(1, 3)
		w.table.carried[reg.Group] = carried
		registerByHand(t, w, reg, &out)
		calls := len(w.table.calls)
		slices.Reverse(reg.Members)
		if e, r := registerByHand(t, w, reg, &out); e != 1 || r != NoReason || len(w.table.calls) != calls ||
			len(out.Events) != 1 || out.Events[0].Kind != Unchanged {
			t.Errorf("carried %v: epoch %d, %v, events %v, table %v", carried, e, r, out.Events, w.table.calls[calls:])
		}

		a := newAsker(t, RegistrarConfig{})
		reg = epoch(sample(1, 3), 5)
		a.w.table.carried[reg.Group] = carried
		a.register(reg)
		calls = len(a.w.table.calls)
		out = a.register(epoch(reg, 9))
		if r := a.reason(out); r != NoReason {
			t.Fatalf("carried %v: %v", carried, r)
		}
		if got := a.w.table.calls[calls:]; len(got) != 1 || !strings.Contains(got[0], "update") || !strings.Contains(got[0], "from epoch 5 to 9") {
			t.Errorf("the table was told %v, want an update that changes nobody", got)
		}
		if len(out.Packets) != 4 { // the answer, and a Notify for each member
			t.Errorf("%d packets, want 4", len(out.Packets))
		}
		if len(out.Events) != 1 || out.Events[0].Kind != Unchanged || out.Events[0].Epoch != 9 {
			t.Errorf("events %v", out.Events)
		}
		if r := a.reason(a.register(epoch(reg, 9))); r != NoReason {
			t.Errorf("a duplicate of it: %v", r)
		}
		if r := a.reason(a.register(epoch(reg, 8))); r != StaleEpoch {
			t.Errorf("an older one: %v", r)
		}
		up := epoch(sample(1, 4), 10)
		if up.Base = 9; a.reason(a.register(up)) != NoReason {
			t.Errorf("an update of it is refused")
		}
	}
}

// Numbers that have been in use do not come back: a former member's, those of
// a live one in a registration that would begin anew, nor those of a group that has
// failed. Fresh ones do, and so does everything in a group that has carried nothing.
func TestUsedNumbersAreRefused(t *testing.T) {
	fresh := func(m *MemberRecord) { m.RQPSN += 77 }
	for _, c := range []struct {
		name  string
		third func(*MemberRecord) // changes the member that has gone
		all   func(*MemberRecord) // changes of every other member
		anew  bool                // true: a new registration in place of an update
		fail  bool
		want  Reason // none if the group had carried nothing
	}{
		{name: "comes back as it was", want: UsedNumbers},
		{name: "comes back with fresh PSNs", third: fresh},
		{name: "comes back as another queue pair", third: func(m *MemberRecord) { m.QPN += 5 }},
		{name: "all anew as they were", anew: true, want: UsedNumbers},
		{name: "all anew, one with fresh PSNs", anew: true, third: fresh, want: UsedNumbers},
		{name: "all anew, the former one as it was", anew: true, all: fresh, want: UsedNumbers},
		{name: "all anew with fresh PSNs", anew: true, third: fresh, all: fresh},
		{name: "the same two after a failure", anew: true, fail: true, want: UsedNumbers},
	} {
		for _, carried := range []bool{true, false} {
			w := newWorld(t, RegistrarConfig{})
			var out Output
			full := sample(1, 4)
			w.table.carried[full.Group] = carried
			registerByHand(t, w, full, &out)
			two := full
			two.Members = full.Members[:3]
			two.Base = 1
			if _, r := registerByHand(t, w, two, &out); r != NoReason {
				t.Fatal(r)
			}
			back := full
			back.Members = slices.Clone(full.Members)
			if c.fail {
				w.sw.GroupFailed(0, full.Group, full.Members[0].Key(), rocev2.SyndromeNAKOpErr, 1, &out)
				back.Members = back.Members[:3]
			} else if c.third != nil {
				c.third(&back.Members[3])
			}
			for i := range back.Members[:3] {
				if c.all != nil {
					c.all(&back.Members[i])
				}
			}
			if back.Base = 2; c.anew {
				back.Base = 0
			}
			want := c.want
			if !carried {
				want = NoReason
			}
			if _, r := registerByHand(t, w, back, &out); r != want {
				t.Errorf("%s, carried %v: %v, want %v", c.name, carried, r, want)
			}
		}
	}
}

// A member that was evicted, or left, in an epoch is refused in the later ones too.
func TestEvictedNumbersStayRefused(t *testing.T) {
	a := newAsker(t, RegistrarConfig{})
	var out Output
	reg := epoch(sample(1, 5), 1)
	a.w.table.carried[reg.Group] = true
	a.register(reg)
	left, evicted := reg.Members[3], reg.Members[4]
	a.w.sw.MemberEvicted(0, reg.Group, evicted.Key(), 0, 5, &out)
	if r := a.reason(a.ask(a.head(reg.Group, 1), &Leave{left.Key()})); r != NoReason {
		t.Fatal(r)
	}
	update := func(e uint64, ms ...MemberRecord) Reason {
		up := epoch(reg, e)
		up.Base, up.Members = 1, append(slices.Clone(reg.Members[:3]), ms...)
		if e > 2 {
			up.Base = 2
		}
		return a.reason(a.register(up))
	}
	if r := update(2); r != NoReason {
		t.Fatal(r)
	}
	if r := update(3, evicted); r != UsedNumbers {
		t.Errorf("evicted: %v", r)
	}
	if r := update(4, left); r != UsedNumbers {
		t.Errorf("left: %v", r)
	}
	evicted.SQPSN++
	if r := update(5, evicted); r != NoReason {
		t.Errorf("with fresh PSNs: %v", r)
	}
}

// The members of a registration that was replaced do not come back as they were.
func TestReplacedNumbersStayRefused(t *testing.T) {
	w := newWorld(t, RegistrarConfig{})
	var out Output
	first := sample(1, 3)
	w.table.carried[first.Group] = true
	registerByHand(t, w, first, &out)
	second := sample(1, 3)
	for i := range second.Members {
		second.Members[i].QPN += 0x100
	}
	if _, r := registerByHand(t, w, second, &out); r != NoReason {
		t.Fatal(r)
	}
	w.table.carried[first.Group] = false // the second one has carried nothing yet
	if _, r := registerByHand(t, w, first, &out); r != UsedNumbers {
		t.Errorf("the first one again: %v", r)
	}
}

// A group remembers a bounded number of former members, the last ones.
func TestUsedNumbersAreBounded(t *testing.T) {
	w := newWorld(t, RegistrarConfig{})
	var out Output
	reg := sample(1, 2)
	w.table.carried[reg.Group] = true
	e, _ := registerByHand(t, w, reg, &out)
	visit := func(i int) (r Reason) {
		with := reg
		with.Members = append(slices.Clone(reg.Members), MemberRecord{
			IP: netip.MustParseAddr("10.0.0.200"), QPN: 0x5000, SQPSN: rocev2.PSN(i), RQPSN: rocev2.PSN(i),
		})
		with.Base = e
		x, r := registerByHand(t, w, with, &out)
		if r != NoReason {
			return r
		}
		reg.Base = x
		e, _ = registerByHand(t, w, reg, &out)
		return NoReason
	}
	for i := range maxUsed + 1 {
		if r := visit(i); r != NoReason {
			t.Fatalf("visit %d: %v", i, r)
		}
	}
	if n := len(w.sw.groups[reg.Group].usedNumbers); n != maxUsed {
		t.Errorf("%d records are remembered, want %d", n, maxUsed)
	}
	for _, i := range []int{maxUsed, 1} {
		if r := visit(i); r != UsedNumbers {
			t.Errorf("visitor %d comes back: %v", i, r)
		}
	}
	if r := visit(0); r != NoReason {
		t.Errorf("the oldest is remembered: %v", r)
	}
}
