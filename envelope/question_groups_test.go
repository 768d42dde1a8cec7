// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"net/netip"
	"testing"
	"time"
)

// hostOfGroups is a member of many groups, which are all confirmed.
type hostOfGroups struct {
	t    *testing.T
	m    *Member
	now  time.Duration
	gone map[netip.Addr]bool
}

func newHostOfGroups(t *testing.T, groups int) *hostOfGroups {
	t.Helper()
	reg := sample(1, 3)
	rec := reg.Members[1]
	m, err := NewMember(MemberConfig{Local: netip.AddrPortFrom(rec.IP, DefaultPort), Auth: testAuth(), Seed: 1, AskEvery: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	h := &hostOfGroups{t: t, m: m, gone: make(map[netip.Addr]bool)}
	for i := range groups {
		reg.Group = netip.AddrFrom4([4]byte{10, 8, byte(i >> 8), byte(i)})
		if err := m.Join(Membership{MemberRecord: rec, Group: reg.Group, VirtualQPN: reg.QPN, PathMTU: reg.PathMTU}); err != nil {
			t.Fatal(err)
		}
		h.hear(&Message{Header: Header{Epoch: 1, Instance: 9, Transaction: 1, Total: 1, Group: reg.Group, ReplyTo: masterAddr}, Body: &Notify{reg.groupBody(reg.Members)}})
	}
	return h
}

// hear gives the member a message of the switch.
func (h *hostOfGroups) hear(msg *Message) {
	h.t.Helper()
	b, err := Append(nil, msg, testKeys, 7)
	if err != nil {
		h.t.Fatal(err)
	}
	var out Output
	h.m.Input(h.now, netip.AddrPortFrom(msg.Group, DefaultPort), b, &out)
	for _, e := range out.Events {
		if e.Kind == GroupGone && e.EndReason == Forgotten {
			h.gone[e.Group] = true
		}
	}
}

// run lets time pass, answers each question, if answer is set, and returns the most questions in one second.
func (h *hostOfGroups) run(length time.Duration, answer func(*Message) Body) (most int) {
	h.t.Helper()
	begin, in := h.now, map[time.Duration]int{}
	for {
		at, ok := h.m.NextDeadline()
		if !ok || at > begin+length {
			h.now = begin + length
			return most
		}
		h.now = max(h.now, at)
		var out Output
		h.m.Advance(h.now, &out)
		for _, p := range out.Packets {
			q, _ := Parse(p.Data)
			if q.Type != TypeRenew {
				h.t.Fatalf("%v: %v", h.now, q.Type)
			}
			in[h.now/time.Second]++
			most = max(most, in[h.now/time.Second])
			if answer != nil {
				h.hear(&Message{Header: Header{Epoch: q.Epoch, Instance: q.Instance, Transaction: q.Transaction, Total: 1, Group: q.Group, ReplyTo: netip.AddrPortFrom(q.Group, DefaultPort)}, Body: answer(&q)})
			}
		}
	}
}

// TestQuestionsOfManyGroups: a host in thousands of groups sends some tens of questions a second, and yet hears soon
// of a switch that has forgotten all of its groups, or one.
func TestQuestionsOfManyGroups(t *testing.T) {
	const groups = 5000
	known := func(*Message) Body { return &Accept{Request: TypeRenew, Members: 3, Lease: time.Minute} }
	unknown := func(*Message) Body { return &Reject{Request: TypeRenew, Problem: Problem{Reason: UnknownGroup}} }
	h := newHostOfGroups(t, groups)
	for name, answer := range map[string]func(*Message) Body{"known": known, "silent": nil} {
		if n := h.run(10*time.Minute, answer); n > 100 {
			t.Errorf("%s: %d questions in a second", name, n)
		}
	}
	lost := netip.AddrFrom4([4]byte{10, 8, 0, 1})
	one := func(q *Message) Body {
		if q.Group == lost {
			return unknown(q)
		}
		return known(q)
	}
	if n := h.run(time.Minute, one); n > 300 || len(h.gone) != 1 || !h.gone[lost] {
		t.Errorf("one group is lost: %d questions in a second, and %d groups are gone", n, len(h.gone))
	}
	if n := h.run(90*time.Second, unknown); n > 400 || len(h.gone) != groups {
		t.Errorf("the switch has started again: %d questions in a second, and after 90 s %d of %d groups are gone", n, len(h.gone), groups)
	}
	if at, ok := h.m.NextDeadline(); ok {
		t.Errorf("a timer at %v is left", at)
	}
}
