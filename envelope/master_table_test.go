// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/test/statetable"
)

// masterState prints all that a master knows.
func masterState(m *Master) string {
	var s strings.Builder
	fmt.Fprintf(&s, "phase %d epoch %d base %d lease %v cookie %#x tx %d confirmed %d gone %d joining %t ended %t\n", m.phase, m.reg.Epoch, m.reg.Base, m.reg.Lease,
		m.instance, m.lastTransaction, len(m.confirmed), len(m.gone), m.joiners, m.Ended())
	fmt.Fprintf(&s, "register tx %d sent %v until %v hint %t used %d rotate %d\n", m.registerTx, m.registerSentAt, m.deadline, m.authHint, m.usedEpoch, m.nextSegment)
	fmt.Fprintf(&s, "renew tx %d sent %v %t, lease until %v, next at %v after %v\n", m.renewTx, m.renewSentAt, m.renewing, m.leaseUntil, m.retry.next, m.retry.wait)
	for _, r := range m.requests {
		fmt.Fprintf(&s, "%v of %v tx %d quiet %t until %v, next at %v after %v\n", r.body.kind(), r.member, r.tx, r.unreported, r.deadline, r.retry.next, r.retry.wait)
	}
	if u := m.update; u != nil {
		fmt.Fprintf(&s, "update to %d of %d members %d tx %d began %v sent %v, next at %v after %v\n", u.reg.Epoch, u.reg.Base, len(u.reg.Members), u.tx, u.startedAt, u.sentAt, u.retry.next, u.retry.wait)
	}
	fmt.Fprintf(&s, "members %v\nwaiting for %v\n", m.Members(), m.Waiting())
	if f := m.Unfinished(time.Hour); f != nil {
		fmt.Fprintf(&s, "unfinished: %v\n", f)
	}
	if at, ok := m.NextDeadline(); ok {
		fmt.Fprintf(&s, "deadline %v\n", at)
	}
	s.WriteString(dropsOf(&m.endpointLink))
	return s.String()
}

// hostsVariant changes a message to a host, or where it comes from.
type hostsVariant struct {
	text string
	to   func(h *Header, from *netip.AddrPort)
}

var hostsVariants = []hostsVariant{
	{"as it is", func(*Header, *netip.AddrPort) {}},
	{"of the last epoch", func(h *Header, _ *netip.AddrPort) { h.Epoch-- }},
	{"of the next epoch", func(h *Header, _ *netip.AddrPort) { h.Epoch++ }},
	{"with another transaction", func(h *Header, _ *netip.AddrPort) { h.Transaction++ }},
	{"without a cookie", func(h *Header, _ *netip.AddrPort) { h.Instance = 0 }},
	{"with the cookie before", func(h *Header, _ *netip.AddrPort) { h.Instance -= 0x11 }},
	{"under the second key", func(h *Header, _ *netip.AddrPort) { h.KeyID = 8 }},
	{"without a MAC", func(h *Header, _ *netip.AddrPort) { h.KeyID = 0 }},
	{"of another group", func(h *Header, _ *netip.AddrPort) { h.Group = netip.MustParseAddr("10.9.0.2") }},
	{"from another port", func(_ *Header, from *netip.AddrPort) { *from = netip.AddrPortFrom(from.Addr(), from.Port()+1) }},
	{"from elsewhere", func(_ *Header, from *netip.AddrPort) {
		*from = netip.AddrPortFrom(netip.MustParseAddr("10.0.0.77"), from.Port())
	}},
}

func hostsLegend() (texts []string) {
	for _, v := range hostsVariants {
		texts = append(texts, v.text)
	}
	return texts
}

// TestMasterTable: each message to a master, and each call, in each situation.
func TestMasterTable(t *testing.T) {
	s := statetable.New(t, "master")
	s.Legend(hostsLegend())
	reg := sample(1, 3)
	sw := netip.AddrPortFrom(reg.Group, DefaultPort)
	keys := []MemberKey{reg.Members[0].Key(), reg.Members[1].Key(), reg.Members[2].Key()}
	more := sample(1, 4).Members
	type step = func(m *Master, now time.Duration, out *Output)
	start := func(m *Master, now time.Duration, out *Output) { m.Start(now, out) }
	from := func(h Header, src netip.AddrPort, b Body) step {
		return func(m *Master, now time.Duration, out *Output) {
			data, err := Append(nil, &Message{h, b}, testKeys, h.KeyID)
			if err != nil {
				t.Fatal(err)
			}
			m.Input(now, src, data, out)
		}
	}
	// head is that of an answer to what the master has asked for last, with a new cookie.
	head := func(m *Master, b Body) Header {
		h := Header{KeyID: 7, Epoch: m.reg.Epoch, Instance: m.instance + 0x11, Total: 1, Transaction: m.registerTx, Group: reg.Group, ReplyTo: sw}
		of := Type(0)
		switch b := b.(type) {
		case *Accept:
			of = b.Request
		case *Reject:
			of = b.Request
		case *Challenge:
			of = b.Request
		}
		switch {
		case of == TypeRegister && m.update != nil:
			h.Transaction, h.Epoch = m.update.tx, m.update.reg.Epoch
		case of == TypeRenew:
			h.Transaction = m.renewTx
		case (of == TypeLeave || of == TypeDelete) && len(m.requests) > 0:
			h.Transaction = m.requests[0].tx
		}
		return h
	}
	source := func(b Body) netip.AddrPort {
		if c, ok := b.(*Confirm); ok {
			return netip.AddrPortFrom(c.Member.IP, DefaultPort)
		}
		return sw
	}
	in := func(b Body) step {
		return func(m *Master, now time.Duration, out *Output) {
			from(head(m, b), source(b), b)(m, now, out)
		}
	}
	note := ""
	deadline := func(m *Master, now time.Duration, out *Output) {
		at, _ := m.NextDeadline()
		note += fmt.Sprintln("at", at)
		m.Advance(max(at, now), out)
	}
	leave := func(m *Master, now time.Duration, out *Output) { note += fmt.Sprintln(m.Leave(now, keys[1], out)) }
	update := func(ms ...MemberRecord) step {
		return func(m *Master, now time.Duration, out *Output) { note += fmt.Sprintln(m.Update(now, ms, out)) }
	}
	remove := func(m *Master, now time.Duration, out *Output) { m.Delete(now, out) }
	challenge := in(&Challenge{Request: TypeRegister, EpochKnown: 4})
	accept := in(&Accept{Request: TypeRegister, Members: 3, Lease: 20 * time.Second})
	confirm := func(i int) step { return in(&Confirm{Member: keys[i]}) }
	done := []step{start, challenge, accept, confirm(0), confirm(1), confirm(2)}
	then := func(a []step, b ...step) []step { return append(slices.Clone(a), b...) }
	situations := []struct {
		name  string
		epoch uint64
		steps []step
	}{
		{"created", 0, nil},
		{"asked", 0, []step{start}},
		{"challenged", 0, []step{start, challenge}},
		{"challenged, with an epoch of its own", 9, []step{start, challenge}},
		{"one has confirmed before the switch", 0, []step{start, challenge, confirm(0)}},
		{"all epochs are known", 0, []step{start, in(&Challenge{Request: TypeRegister, EpochKnown: 1<<64 - 1})}},
		{"accepted", 0, []step{start, challenge, accept}},
		{"accepted without a cookie", 9, []step{start, func(m *Master, now time.Duration, out *Output) {
			b := &Accept{Request: TypeRegister, Members: 3, Lease: 20 * time.Second}
			h := head(m, b)
			h.Instance = 0
			from(h, sw, b)(m, now, out)
		}}},
		{"accepted, and one has gone", 0, []step{start, challenge, accept, confirm(0), in(&Gone{Member: keys[1], EndReason: Evicted})}},
		{"accepted, and reminding", 0, []step{start, challenge, accept, confirm(0), deadline}},
		{"registered after a reminder", 0, []step{start, challenge, accept, confirm(0), deadline, confirm(1), confirm(2)}},
		{"one has not confirmed", 0, []step{start, challenge, accept, confirm(0), confirm(1)}},
		{"registered", 0, done},
		{"accepted for a second", 0, []step{start, challenge, in(&Accept{Request: TypeRegister, Members: 3, Lease: time.Second}), confirm(0)}},
		{"registered for a second", 0, []step{start, challenge, in(&Accept{Request: TypeRegister, Members: 3, Lease: time.Second}), confirm(0), confirm(1), confirm(2)}},
		{"one has not confirmed, and leaves", 0, []step{start, challenge, accept, confirm(0), confirm(2), leave}},
		{"a member leaves, and renewing", 0, then(done, leave, func(m *Master, _ time.Duration, out *Output) { m.Advance(7*time.Second, out) })},
		{"renewing", 0, then(done, deadline)},
		{"renewing again", 0, then(done, deadline, deadline)},
		{"a member leaves", 0, then(done, leave)},
		{"a member has gone", 0, then(done, in(&Gone{Member: keys[1], EndReason: Evicted}))},
		{"updating", 0, then(done, update(more[0], more[1], more[3]))},
		{"updating again", 0, then(done, update(more[0], more[1], more[3]), deadline)},
		{"updating, and renewing", 0, then(done, deadline, update(more...))},
		{"a new member has not confirmed", 0, then(done, update(more...), in(&Accept{Request: TypeRegister, Members: 4, Lease: 20 * time.Second}))},
		{"an update was rejected", 0, then(done, update(more...), in(&Reject{Request: TypeRegister, Problem: Problem{Reason: TableFull}}))},
		{"an update was rejected, and a member leaves", 0, then(done, update(more...), in(&Reject{Request: TypeRegister, Problem: Problem{Reason: TableFull}}), leave)},
		{"an update is deleted", 0, then(done, update(more...), remove)},
		{"an update is deleted that the switch has", 0, then(done, update(more...), remove, in(&Reject{Request: TypeDelete, Problem: Problem{Reason: StaleEpoch, Value: 6}}))},
		{"deleted", 0, then(done, remove)},
		{"the group has failed", 0, then(done, in(&Gone{Member: keys[0], EndReason: Failed}))},
		{"over", 0, then(done, in(&Gone{EndReason: Expired}))},
	}
	var bodies []struct {
		name string
		body Body
		vary bool
	}
	add := func(name string, b Body, vary bool) {
		bodies = append(bodies, struct {
			name string
			body Body
			vary bool
		}{name, b, vary})
	}
	for _, of := range []Type{TypeRegister, TypeRenew, TypeLeave, TypeDelete} {
		add(fmt.Sprintf("Accept of %v", of), &Accept{Request: of, Members: 3, Lease: 25 * time.Second}, true)
		add(fmt.Sprintf("Challenge of %v", of), &Challenge{Request: of, EpochKnown: 5}, true)
		for _, p := range []Problem{{Reason: TableFull}, {Reason: StaleEpoch, Value: 7}, {Reason: StaleEpoch, Value: 2}, {Reason: StaleEpoch, Value: 6}, {Reason: EpochConflict, Value: 6}, {Reason: StaleTransaction, Value: 99}, {Reason: StaleEpoch, Value: 1<<64 - 1}, {Reason: TooManyMembers, Value: 9}} {
			add(fmt.Sprintf("Reject of %v: %v, value %d", of, p.Reason, p.Value), &Reject{Request: of, Problem: p}, p.Value == 7 || p.Value == 99)
		}
	}
	add("Challenge of Register, nothing known", &Challenge{Request: TypeRegister}, true)
	add("Challenge of Register, a later one known", &Challenge{Request: TypeRegister, EpochKnown: 8}, true)
	add("Challenge of Register, all known", &Challenge{Request: TypeRegister, EpochKnown: 1<<64 - 1}, true)
	add("BadAuthentication", &Reject{Request: TypeRegister, Problem: Problem{Reason: BadAuthentication}}, true)
	for i, k := range append(slices.Clone(keys), more[3].Key()) {
		add(fmt.Sprintf("Confirm of member %d", i), &Confirm{Member: k}, i == 1)
		add(fmt.Sprintf("refusal of member %d", i), &Confirm{Member: k, Status: SQPSNMismatch, SQPSN: 3}, i == 1)
	}
	for why := Deleted; why < NumEndReasons; why++ {
		add(fmt.Sprintf("Gone, %v", why), &Gone{EndReason: why}, why == Expired)
		add(fmt.Sprintf("Gone of member 1, %v", why), &Gone{Member: keys[1], EndReason: why, PSN: 5, Code: mcast.Silent}, why == Evicted)
	}
	add("Gone of a stranger", &Gone{Member: MemberKey{IP: netip.MustParseAddr("10.1.0.99"), QPN: 0x77}, EndReason: Left}, false)
	add("Notify", &Notify{reg.groupBody(reg.Members[:1])}, true)
	add("Delete", &Delete{}, true)
	for _, x := range situations {
		before := ""
		try := func(name string, event step) {
			r := reg
			r.Epoch = x.epoch
			m, err := NewMaster(MasterConfig{Local: masterAddr, Auth: testAuth(), Seed: 42}, r)
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
				before = masterState(m)
				s.Situation(x.name, before)
				return
			}
			out = used()
			event(m, now+10*time.Millisecond, &out)
			s.Event(name, inShort(&out)+note, told(w, &out)+changes(before, masterState(m)))
		}
		try("", nil)
		for _, b := range bodies {
			for i, v := range hostsVariants {
				if i > 0 && !b.vary {
					continue
				}
				try(b.name+statetable.Variant(i), func(m *Master, now time.Duration, out *Output) {
					h, src := head(m, b.body), source(b.body)
					v.to(&h, &src)
					from(h, src, b.body)(m, now, out)
				})
			}
		}
		for _, b := range bodies {
			for i, name := range []string{"registration", "renewal", "update", "request"} {
				switch b.body.(type) {
				case *Accept, *Reject, *Challenge:
				default:
					continue
				}
				if !b.vary {
					continue
				}
				try(b.name+" to the "+name, func(m *Master, now time.Duration, out *Output) {
					h := head(m, b.body)
					h.Transaction = [4]uint32{m.registerTx, m.renewTx}[i]
					if i == 2 && m.update != nil {
						h.Transaction, h.Epoch = m.update.tx, m.update.reg.Epoch
					}
					if i == 3 && len(m.requests) > 0 {
						h.Transaction = m.requests[0].tx
					}
					from(h, sw, b.body)(m, now, out)
				})
			}
		}
		try("start", start)
		try("leave", leave)
		try("leave of the first", func(m *Master, now time.Duration, out *Output) {
			note += fmt.Sprintln(m.Leave(now, keys[0], out))
		})
		try("leave of a stranger", func(m *Master, now time.Duration, out *Output) {
			note += fmt.Sprintln(m.Leave(now, more[3].Key(), out))
		})
		try("update", update(more...))
		try("update to less", update(more[0], more[2]))
		try("update to one", update(more[0]))
		try("update to the same", update(more[:3]...))
		try("delete", remove)
		try("deadline", deadline)
		try("two deadlines", func(m *Master, now time.Duration, out *Output) { deadline(m, now, out); deadline(m, now, out) })
		try("ten deadlines", func(m *Master, now time.Duration, out *Output) {
			for range 10 {
				deadline(m, now, out)
			}
		})
		try("before the deadline", func(m *Master, _ time.Duration, out *Output) {
			at, ok := m.NextDeadline()
			if !ok {
				at = time.Hour
			}
			m.Advance(at-1, out)
		})
		try("an hour", func(m *Master, now time.Duration, out *Output) { m.Advance(now+time.Hour, out) })
	}
	s.End()
}
