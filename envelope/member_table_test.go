// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/test/statetable"
)

// memberState prints all that a member knows.
func memberState(m *Member) string {
	var s strings.Builder
	for _, ip := range sortedKeys(m.groups) {
		g := m.groups[ip]
		fmt.Fprintf(&s, "%v epoch %d cookie %#x key %d over %t refused %d %v leaving %t tx %d until %v, next at %v after %v\n", g.Membership, g.epoch, g.instance, g.key, g.ended,
			g.refused, g.status, g.leaving, g.tx, g.deadline, g.retry.next, g.retry.wait)
		fmt.Fprintf(&s, "trouble: %v\n", m.Problem(ip))
	}
	if at, ok := m.NextDeadline(); ok {
		fmt.Fprintf(&s, "deadline %v\n", at)
	}
	s.WriteString(dropsOf(&m.endpointLink))
	return s.String()
}

// TestMemberTable: each message to a member, and each call, in each situation.
func TestMemberTable(t *testing.T) {
	s := statetable.New(t, "member")
	s.Legend(hostsLegend())
	reg := epoch(withWindows(sample(1, 3)), 5)
	rec := reg.Members[1]
	local := netip.AddrPortFrom(rec.IP, DefaultPort)
	sw := netip.AddrPortFrom(reg.Group, DefaultPort)
	type step = func(m *Member, now time.Duration, out *Output)
	note := ""
	head := func(m *Member) Header {
		h := Header{KeyID: 7, Epoch: 5, Instance: 0x22, Total: 1, Transaction: 3, Group: reg.Group, ReplyTo: masterAddr}
		if g := m.groups[reg.Group]; g != nil && g.leaving {
			h.Transaction = g.tx
		}
		return h
	}
	send := func(h Header, from netip.AddrPort, b Body) step {
		return func(m *Member, now time.Duration, out *Output) {
			data, err := Append(nil, &Message{h, b}, testKeys, h.KeyID)
			if err != nil {
				t.Fatal(err)
			}
			m.Input(now, from, data, out)
		}
	}
	in := func(b Body) step {
		return func(m *Member, now time.Duration, out *Output) { send(head(m), sw, b)(m, now, out) }
	}
	notify := func(change func(r *Registration, m *MemberRecord)) *Notify {
		r, m := reg, rec
		change(&r, &m)
		return &Notify{r.groupBody([]MemberRecord{m})}
	}
	right := notify(func(*Registration, *MemberRecord) {})
	join := func(m *Member, _ time.Duration, out *Output) {
		out.reset()
		note += fmt.Sprintln(m.Join(membershipOf(rec, reg)))
	}
	leave := func(m *Member, now time.Duration, out *Output) { note += fmt.Sprintln(m.Leave(now, reg.Group, out)) }
	gone := &Gone{Member: rec.Key(), EndReason: Removed}
	deadline := func(m *Member, now time.Duration, out *Output) {
		at, _ := m.NextDeadline()
		m.Advance(max(at, now), out)
	}
	old := func(b Body) step {
		return func(m *Member, now time.Duration, out *Output) {
			h := head(m)
			h.Epoch, h.KeyID = 4, 8
			send(h, sw, b)(m, now, out)
		}
	}
	situations := []struct {
		name  string
		steps []step
	}{
		{"not joined", nil},
		{"joined", []step{join}},
		{"joined, and somebody has another key", []step{join, func(m *Member, now time.Duration, out *Output) {
			m.Input(now, sw, make([]byte, 50), out)
			h := head(m)
			h.KeyID = 0
			send(h, sw, right)(m, now, out)
		}}},
		{"joined without a window", []step{func(m *Member, _ time.Duration, _ *Output) {
			ms := membershipOf(rec, reg)
			ms.Window = mcast.Window{}
			note += fmt.Sprintln(m.Join(ms))
		}}},
		{"registered", []step{join, in(right)}},
		{"registered before, under the second key", []step{join, old(right)}},
		{"refused", []step{join, in(notify(func(_ *Registration, m *MemberRecord) { m.RQPSN++ }))}},
		{"leaving", []step{join, in(right), leave}},
		{"leaving, not answered", []step{join, in(right), leave, deadline}},
		{"leaving what is under the second key", []step{join, old(right), leave}},
		{"gone", []step{join, in(right), in(gone)}},
		{"gone before it was registered", []step{join, in(gone)}},
		{"gone, and joined again", []step{join, in(right), in(gone), join}},
	}
	bodies := map[string]Body{
		"Notify":                            right,
		"Notify of another QPN":             notify(func(_ *Registration, m *MemberRecord) { m.QPN++ }),
		"Notify of another virtual QPN":     notify(func(r *Registration, _ *MemberRecord) { r.QPN++ }),
		"Notify of another path MTU":        notify(func(r *Registration, _ *MemberRecord) { r.PathMTU = 512 }),
		"Notify of another sq_psn":          notify(func(_ *Registration, m *MemberRecord) { m.SQPSN++ }),
		"Notify of another rq_psn":          notify(func(_ *Registration, m *MemberRecord) { m.RQPSN++ }),
		"Notify of another window":          notify(func(_ *Registration, m *MemberRecord) { m.Window.Len++ }),
		"Notify without a window":           notify(func(_ *Registration, m *MemberRecord) { m.Window = mcast.Window{} }),
		"Notify of a group without windows": notify(func(r *Registration, m *MemberRecord) { r.Window, m.Window = mcast.Window{}, mcast.Window{} }),
		"Notify without the group's window": notify(func(r *Registration, _ *MemberRecord) { r.Window = mcast.Window{} }),
		"Notify of another host":            notify(func(_ *Registration, m *MemberRecord) { m.IP = reg.Members[0].IP }),
		"Notify of all":                     &Notify{reg.groupBody(reg.Members)},
		"Gone":                              gone,
		"Gone, expired":                     &Gone{Member: rec.Key(), EndReason: Expired, PSN: 4, Code: 8},
		"Gone of another QPN":               &Gone{Member: MemberKey{IP: rec.IP, QPN: 0x999}, EndReason: Removed},
		"Gone of another host":              &Gone{Member: reg.Members[0].Key(), EndReason: Removed},
		"Gone of the group":                 &Gone{EndReason: Deleted},
		"Where":                             &Where{rec.IP, Nonce{4}},
		"Where of another host":             &Where{reg.Members[0].IP, Nonce{4}},
		"Accept of Leave":                   &Accept{Request: TypeLeave},
		"Accept of Delete":                  &Accept{Request: TypeDelete},
		"Reject of Leave, unknown group":    &Reject{Request: TypeLeave, Problem: Problem{Reason: UnknownGroup}},
		"Reject of Leave, stale epoch":      &Reject{Request: TypeLeave, Problem: Problem{Reason: StaleEpoch, Value: 9}},
		"Reject of Leave, not allowed":      &Reject{Request: TypeLeave, Problem: Problem{Reason: NotAllowed}},
		"Reject of Renew":                   &Reject{Request: TypeRenew, Problem: Problem{Reason: NotAllowed}},
		"Challenge of Leave":                &Challenge{Request: TypeLeave, EpochKnown: 5},
		"Challenge of Register":             &Challenge{Request: TypeRegister, EpochKnown: 5},
		"Confirm":                           &Confirm{Member: rec.Key()},
		"Delete":                            &Delete{},
	}
	for _, x := range situations {
		before := ""
		try := func(name string, event step) {
			m, err := NewMember(MemberConfig{Local: local, Auth: testAuth(), Seed: 5})
			if err != nil {
				t.Fatal(err)
			}
			w := &world{sw: &Registrar{cfg: RegistrarConfig{CookiePeriod: time.Minute}}}
			now := time.Duration(0)
			var out Output
			for _, do := range x.steps {
				now += 10 * time.Millisecond
				do(m, now, &out)
			}
			note = ""
			if name == "" {
				before = memberState(m)
				s.Situation(x.name, before)
				return
			}
			out = used()
			event(m, now+10*time.Millisecond, &out)
			s.Event(name, inShort(&out)+note, told(w, &out)+changes(before, memberState(m)))
		}
		try("", nil)
		for _, name := range slices.Sorted(maps.Keys(bodies)) {
			for i, v := range hostsVariants {
				try(name+statetable.Variant(i), func(m *Member, now time.Duration, out *Output) {
					h, from := head(m), sw
					v.to(&h, &from)
					send(h, from, bodies[name])(m, now, out)
				})
			}
			try(name+" that wants no answer", func(m *Member, now time.Duration, out *Output) {
				h := head(m)
				h.ReplyTo = netip.AddrPortFrom(h.ReplyTo.Addr(), 0)
				send(h, sw, bodies[name])(m, now, out)
			})
			try(name+" that wants an answer to nobody", func(m *Member, now time.Duration, out *Output) {
				h := head(m)
				h.ReplyTo = netip.AddrPortFrom(netip.IPv4Unspecified(), 5)
				send(h, sw, bodies[name])(m, now, out)
			})
		}
		try("join", join)
		try("leave", leave)
		try("forget", func(m *Member, _ time.Duration, out *Output) { out.reset(); m.Forget(reg.Group) })
		try("deadline", deadline)
		try("before the deadline", func(m *Member, _ time.Duration, out *Output) {
			at, ok := m.NextDeadline()
			if !ok {
				at = time.Hour
			}
			m.Advance(at-1, out)
		})
		try("six deadlines", func(m *Member, now time.Duration, out *Output) {
			for range 6 {
				deadline(m, now, out)
			}
		})
		try("an hour", func(m *Member, now time.Duration, out *Output) { m.Advance(now+time.Hour, out) })
	}
	s.End()
}
