// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"cmp"
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

// changes says which lines of a state another one has not, and which are new.
func changes(before, after string) string {
	if before == after {
		return ""
	}
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	var s strings.Builder
	for _, l := range a {
		if !slices.Contains(b, l) {
			s.WriteString("- " + l + "\n")
		}
	}
	for _, l := range b {
		if !slices.Contains(a, l) {
			s.WriteString("+ " + l + "\n")
		}
	}
	return s.String()
}

// inShort says what a machine wants done in a few words.
func inShort(out *Output) string {
	var s strings.Builder
	if out.Drop != NoDrop {
		fmt.Fprintf(&s, "drop %v\n", out.Drop)
	}
	for _, e := range out.Events {
		s.WriteString(eventNames[e.Kind])
		if e.EndReason != 0 {
			fmt.Fprintf(&s, " (%v)", e.EndReason)
		}
		s.WriteByte('\n')
	}
	for _, p := range out.Packets {
		m, err := Parse(p.Data)
		if err != nil {
			fmt.Fprintf(&s, "%v\n", err)
			continue
		}
		fmt.Fprintf(&s, "%v to %s", m.Type, p.Dst)
		if r, ok := m.Body.(*Reject); ok {
			fmt.Fprintf(&s, ": %v", r.Reason)
		}
		s.WriteByte('\n')
	}
	return s.String()
}

// told says what a machine wants done, all of it but the bytes.
func told(w *world, out *Output) string {
	var s strings.Builder
	if out.Drop != NoDrop || out.Detail != "" {
		fmt.Fprintf(&s, "drop %v %s\n", out.Drop, out.Detail)
	}
	for _, e := range out.Events {
		fmt.Fprintf(&s, "%s", eventString(e))
		if e.By != (Actor{}) {
			fmt.Fprintf(&s, " by %d at %s", e.By.Key, e.By.Addr)
		}
		if e.Lease != 0 || e.Code != 0 || e.PSN != 0 {
			fmt.Fprintf(&s, " lease %v code %#x psn %#x", e.Lease, uint8(e.Code), e.PSN)
		}
		s.WriteByte('\n')
	}
	for _, p := range out.Packets {
		m, err := Parse(p.Data)
		if err != nil {
			fmt.Fprintf(&s, "%v\n", err)
			continue
		}
		cookie := "no cookie"
		switch m.Instance {
		case w.sw.cookie(p.Dst, m.KeyID), w.sw.cookie(p.Src, m.KeyID):
			cookie = "its cookie"
		case 0:
		default:
			cookie = "a cookie"
		}
		fmt.Fprintf(&s, "%s → %s: %s tx %d key %d %s", p.Src, p.Dst, describe(m), m.Transaction, m.KeyID, cookie)
		if _, ok := m.Body.(*Accept); !ok && m.Body != nil {
			fmt.Fprintf(&s, " %+v", m.Body)
		}
		if a, ok := m.Body.(*Accept); ok {
			fmt.Fprintf(&s, " members %d", a.Members)
		}
		s.WriteByte('\n')
	}
	return s.String()
}

// used returns an Output that was used before: each call begins by emptying it.
func used() Output {
	return Output{Packets: []Packet{{}}, Events: []Event{{}}, Drop: BadMagic, Detail: "of before"}
}

// dropsOf prints what was dropped.
func dropsOf(l *endpointLink) string {
	var s strings.Builder
	for d, n := range l.Drops() {
		if n != 0 {
			fmt.Fprintf(&s, "%d %v\n", n, Drop(d))
		}
	}
	return s.String()
}

// registrarState prints all that a registrar knows.
func registrarState(r *Registrar) string {
	var s strings.Builder
	gs := func(name string, m map[netip.Addr]*group) {
		for _, ip := range sortedKeys(m) {
			g := m[ip]
			x := cmp.Or(g.search, &search{})
			fmt.Fprintf(&s, "%s %s epoch %d base %d key %d tx %d until %v lease %v master %s failed %t again %t try %v give up %v missing %v\n", name, ip, g.reg.Epoch, g.reg.Base,
				g.key, g.tx, g.lease.at, g.reg.Lease, g.reg.Master, g.failed, g.unchanged, x.nextTry, x.locateDeadline, x.missingMember)
			for _, m := range g.reg.Members {
				fmt.Fprintf(&s, "%s %s: %v receives %t\n", name, ip, m, m.ReceiveOnly)
			}
			joined := map[MemberKey]uint64{}
			if r.groups[ip] == g {
				for i := range g.reg.Members {
					joined[g.reg.Members[i].Key()] = g.joinedIn(i)
				}
			}
			for k, m := range g.gone {
				if m.joined != 0 {
					joined[k] = m.joined
				}
			}
			for _, k := range slices.SortedFunc(maps.Keys(joined), byKey) {
				fmt.Fprintf(&s, "%s %s: %v since %d\n", name, ip, k, joined[k])
			}
			for _, k := range slices.SortedFunc(maps.Keys(g.gone), byKey) {
				fmt.Fprintf(&s, "%s %s: %v gone, %v\n", name, ip, k, g.gone[k].body.EndReason)
			}
			for _, m := range g.usedNumbers {
				fmt.Fprintf(&s, "%s %s: used %v\n", name, ip, m)
			}
		}
	}
	gs("group", r.groups)
	gs("locating", r.locating)
	for k, a := range r.pending { // one at most
		fmt.Fprintf(&s, "pending %s key %d epoch %d tx %d: %d of %d, %d members, until %v\n", k.group, k.key, a.header.Epoch, a.header.Transaction, a.received, len(a.parts), a.members, a.expiry.at)
	}
	for _, ip := range sortedKeys(r.epochs) {
		e := r.epochs[ip]
		fmt.Fprintf(&s, "epochs %s accepted %d rejected %d %v\n", ip, e.accepted, e.rejected, cmp.Or(e.problem, &Problem{}).Reason)
	}
	members := registeredMembers(r)
	for _, k := range slices.SortedFunc(maps.Keys(members), byKey) {
		fmt.Fprintf(&s, "member %v of %s\n", k, members[k])
	}
	for _, e := range gones(r) {
		fmt.Fprintf(&s, "gone %d to %s epoch %d key %d %v, try %d, next at %v after %v\n", e.id, e.to, e.epoch, e.key, saidBy(e.body), e.tries, e.retry.next, e.retry.wait)
	}
	fmt.Fprintf(&s, "hint at %v\nnow %v\nforgotten %d\n", r.nextHint, r.now, r.generation)
	if at, ok := r.NextDeadline(); ok {
		fmt.Fprintf(&s, "deadline %v\n", at)
	}
	s.WriteString(dropsOf(&r.endpointLink))
	return s.String()
}

// saidBy is what a Gone or Notice says.
func saidBy(b Body) any {
	if n, is := b.(*Notice); is {
		return *n
	}
	return b.(*Gone).EndReason
}

func byKey(a, b MemberKey) int {
	if c := a.IP.Compare(b.IP); c != 0 {
		return c
	}
	return int(a.QPN) - int(b.QPN)
}

// TestRegistrarTable: each message to the switch, from its sender and from others, before
// its time and after it, in each situation that a group can be in.
func TestRegistrarTable(t *testing.T) {
	s := statetable.New(t, "registrar")
	three := epoch(sample(1, 3), 5)
	with := func(e, base uint64, ms ...MemberRecord) Registration {
		r := epoch(three, e)
		r.Base, r.Members = base, ms
		return r
	}
	ms := sample(1, 5).Members
	fresh := ms[1]
	fresh.SQPSN += 0x100
	ip, key := three.Group, ms[1].Key()
	type step = func(a *asker) Output
	register := func(r Registration) step { return func(a *asker) Output { return a.register(r) } }
	body := func(e uint64, b Body) step { return func(a *asker) Output { return a.ask(a.head(ip, e), b) } }
	call := func(f func(a *asker, out *Output)) step {
		return func(a *asker) Output {
			out := used()
			f(a, &out)
			return out
		}
	}
	later := func(a *asker) { a.w.table.verdict[ip] = Verdict{Kind: VerdictLater, Problem: Problem{Member: key}} }
	segment := func(r Registration, e uint64, tx int, seq, total uint16, ms ...MemberRecord) step {
		return func(a *asker) Output {
			h := a.head(ip, e)
			h.Transaction, h.Seq, h.Total = uint32(100+tx), seq, total
			b := r.groupBody(r.Members)
			b.Members = ms
			return a.ask(h, &Register{b})
		}
	}
	evict := call(func(a *asker, out *Output) { a.w.sw.MemberEvicted(a.w.now, ip, key, mcast.Silent, 0x77, out) })
	deadline := call(func(a *asker, out *Output) {
		if at, ok := a.w.sw.NextDeadline(); ok {
			a.w.now = at
		}
		a.w.sw.Advance(a.w.now, out)
	})
	local := call(func(a *asker, out *Output) { _, _ = a.w.sw.RegisterLocal(a.w.now, three, out) })
	var legend []string
	situations := []struct {
		name  string
		cfg   func(*RegistrarConfig)
		steps []step
	}{
		{"nothing", nil, nil},
		{"a group", nil, []step{register(three)}},
		{"a group that has carried data", nil, []step{register(three), func(a *asker) Output { a.w.table.carried[ip] = true; return Output{} }}},
		{"an updated group", nil, []step{register(three), register(with(6, 5, ms[0], ms[1], ms[3]))}},
		{"a member has left", nil, []step{register(three), func(a *asker) Output {
			from := a.from
			a.from = netip.AddrPortFrom(key.IP, DefaultPort)
			defer func() { a.from = from }()
			return a.ask(a.head(ip, 5), &Leave{key})
		}}},
		{"a member was evicted", nil, []step{register(three), evict}},
		{"the group has failed", nil, []step{register(three), call(func(a *asker, out *Output) { a.w.sw.GroupFailed(a.w.now, ip, key, 0x62, 9, out) })}},
		{"a deleted group", nil, []step{register(three), body(5, &Delete{})}},
		{"an expired group", nil, []step{register(three), deadline}},
		{"an operator's group", nil, []step{local}},
		{"members are located", nil, []step{func(a *asker) Output { later(a); return Output{} }, register(three)}},
		{"a group, and its successor's members are located", nil, []step{register(three), func(a *asker) Output { later(a); return Output{} }, register(with(6, 0, ms[0], ms[3]))}},
		{"the first of two segments", nil, []step{segment(three, 5, 0, 0, 2, ms[0], ms[1])}},
		{"no room", func(c *RegistrarConfig) { c.MaxGroups, c.MaxPending = 1, 1 }, []step{register(epoch(sample(2, 2), 5)), segment(epoch(sample(1, 3), 4), 4, 0, 0, 2, ms[0], ms[1])}},
		{"a key with rights", func(c *RegistrarConfig) {
			c.Rights = map[KeyID]Rights{7: {Roles: RoleMaster | RoleReceiveOnly, Prefixes: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/24")}, Quota: Quota{Groups: 1, Members: 3, Lease: 20 * time.Second}},
				8: {Roles: RoleMember}}
		}, []step{register(three)}},
	}
	messages := []struct {
		name string
		e    uint64
		body func() Body
	}{
		{"Register", 5, func() Body { return &Register{three.groupBody(three.Members)} }},
		{"Register of others", 5, func() Body { r := with(5, 0, ms[0], ms[3]); return &Register{r.groupBody(r.Members)} }},
		{"Register of fresh PSNs", 5, func() Body { r := with(5, 0, ms[0], fresh, ms[2]); return &Register{r.groupBody(r.Members)} }},
		{"Register of a path MTU", 5, func() Body { r := epoch(three, 5); r.PathMTU = 512; return &Register{r.groupBody(r.Members)} }},
		{"update with one more", 5, func() Body { r := with(5, 5, ms[:4]...); return &Register{r.groupBody(r.Members)} }},
		{"update with one less", 5, func() Body { r := with(5, 5, ms[0], ms[2]); return &Register{r.groupBody(r.Members)} }},
		{"update of another policy", 5, func() Body {
			r := with(5, 5, ms[:3]...)
			r.Policy = mcast.Evict
			return &Register{r.groupBody(r.Members)}
		}},
		{"Leave", 5, func() Body { return &Leave{key} }},
		{"Leave of a stranger", 5, func() Body { return &Leave{ms[4].Key()} }},
		{"Renew", 5, func() Body { return &Renew{Lease: 40 * time.Second} }},
		{"Renew with reminders", 5, func() Body { return &Renew{ListUnconfirmed: []MemberRecord{ms[1], ms[4], ms[1]}} }},
		{"Delete", 5, func() Body { return &Delete{} }},
		{"Ack", 5, func() Body { return &Ack{} }},
		{"Here", 5, func() Body { return &Here{key.IP, Nonce{1}} }},
	}
	variants := []struct {
		text string
		to   func(a *asker, h *Header)
	}{
		{"as it is", func(*asker, *Header) {}},
		{"of the last epoch", func(_ *asker, h *Header) { h.Epoch-- }},
		{"of the next epoch", func(_ *asker, h *Header) { h.Epoch++ }},
		{"of the epoch after it", func(_ *asker, h *Header) { h.Epoch += 2 }},
		{"of epoch 0", func(_ *asker, h *Header) { h.Epoch = 0 }},
		{"of a far epoch", func(_ *asker, h *Header) { h.Epoch += 1 << 21 }},
		{"with the first transaction", func(_ *asker, h *Header) { h.Transaction = 1 }},
		{"with the second transaction", func(_ *asker, h *Header) { h.Transaction = 2 }},
		{"with an old transaction", func(_ *asker, h *Header) { h.Transaction = 0xfffffff0 }},
		{"without a cookie", func(_ *asker, h *Header) { h.Instance = 0 }},
		{"from the member", func(a *asker, h *Header) {
			a.from = netip.AddrPortFrom(key.IP, DefaultPort)
			h.ReplyTo = a.from
			h.Instance = a.cookie()
		}},
		{"from another member", func(a *asker, h *Header) {
			a.from = netip.AddrPortFrom(ms[2].IP, DefaultPort)
			h.ReplyTo, h.Instance = a.from, a.w.sw.cookie(a.from, 7)
		}},
		{"from another port", func(a *asker, h *Header) {
			a.from = netip.AddrPortFrom(a.from.Addr(), 5001)
			h.ReplyTo, h.Instance = a.from, a.w.sw.cookie(a.from, 7)
		}},
		{"from elsewhere", func(a *asker, _ *Header) { a.from = netip.MustParseAddrPort("10.0.0.77:5000") }},
		{"under the second key", func(_ *asker, h *Header) { h.KeyID = 8 }},
		{"of another group", func(_ *asker, h *Header) { h.Group = netip.MustParseAddr("10.9.1.9") }},
		{"of no group's address", func(_ *asker, h *Header) { h.Group = netip.MustParseAddr("10.7.0.1") }},
		{"in three segments", func(_ *asker, h *Header) { h.Seq, h.Total = 1, 3 }},
	}
	for _, v := range variants {
		legend = append(legend, v.text)
	}
	s.Legend(legend)
	for _, x := range situations {
		before := ""
		try := func(name string, event step) {
			cfg := RegistrarConfig{MaxMembers: 8}
			if x.cfg != nil {
				x.cfg(&cfg)
			}
			a := newAsker(t, cfg)
			for _, do := range x.steps {
				a.w.now += time.Second
				do(a)
			}
			if name == "" {
				before = registrarState(a.w.sw)
				s.Situation(x.name, before)
				return
			}
			a.w.now += time.Second
			a.w.table.calls = nil
			out := event(a)
			s.Event(name, inShort(&out)+strings.Join(a.w.table.calls, "\n"), told(a.w, &out)+changes(before, registrarState(a.w.sw)))
		}
		try("", nil)
		for _, m := range messages {
			for i, v := range variants {
				b := m.body()
				if _, ok := b.(*Register); !ok && strings.HasSuffix(v.text, "segments") {
					continue
				}
				try(m.name+statetable.Variant(i), func(a *asker) Output {
					h := a.head(ip, m.e)
					h.KeyID, h.Transaction = 7, a.tx+10
					v.to(a, &h)
					return a.askUnder(h, b)
				})
			}
		}
		for _, y := range []struct {
			name string
			do   step
		}{
			{"second segment", segment(three, 5, 0, 1, 2, ms[2])},
			{"first segment again", segment(three, 5, 0, 0, 2, ms[0], ms[1])},
			{"first segment with others", segment(three, 5, 0, 0, 2, ms[0], ms[2])},
			{"second segment with too many", segment(three, 5, 0, 1, 2, ms[2], ms[3])},
			{"third of three segments", segment(three, 5, 0, 2, 3, ms[2])},
			{"second segment with none", segment(three, 5, 0, 1, 2)},
			{"second segment of a newer transaction", segment(three, 5, 1, 1, 2, ms[2])},
			{"second segment of an older transaction", segment(three, 5, -1, 1, 2, ms[2])},
			{"second segment of the next epoch", segment(three, 6, 0, 1, 2, ms[2])},
			{"more segments than members", segment(three, 7, 0, 1, 4, ms[2])},
			{"nine members", segment(with(7, 0, sample(1, 9).Members...), 7, 0, 0, 2, ms[2])},
			{"eight members in two segments", segment(with(7, 0, sample(1, 8).Members...), 7, 0, 0, 2, ms[2])},
			{"evict", evict},
			{"evict a stranger", call(func(a *asker, out *Output) { a.w.sw.MemberEvicted(a.w.now, ip, ms[4].Key(), 0, 1, out) })},
			{"fail", call(func(a *asker, out *Output) { a.w.sw.GroupFailed(a.w.now, ip, key, 0x62, 9, out) })},
			{"register by hand", local},
			{"register by hand, any epoch", call(func(a *asker, out *Output) {
				e, err := a.w.sw.RegisterLocal(a.w.now, epoch(three, 0), out)
				a.w.table.calls = append(a.w.table.calls, fmt.Sprint(e, err))
			})},
			{"register others by hand", call(func(a *asker, out *Output) {
				e, err := a.w.sw.RegisterLocal(a.w.now, with(9, 0, ms[0], ms[3]), out)
				a.w.table.calls = append(a.w.table.calls, fmt.Sprint(e, err))
			})},
			{"update by hand", call(func(a *asker, out *Output) {
				e, err := a.w.sw.RegisterLocal(a.w.now, with(9, 5, ms[0], ms[3]), out)
				a.w.table.calls = append(a.w.table.calls, fmt.Sprint(e, err))
			})},
			{"delete by hand", call(func(a *asker, out *Output) {
				a.w.table.calls = append(a.w.table.calls, fmt.Sprint(a.w.sw.DeleteLocal(a.w.now, ip, out)))
			})},
			{"located", call(func(a *asker, out *Output) {
				delete(a.w.table.verdict, ip)
				a.w.sw.RetryGroup(a.w.now, ip, out)
			})},
			{"not located", call(func(a *asker, out *Output) { a.w.sw.RetryGroup(a.w.now, ip, out) })},
			{"rejected by the table", call(func(a *asker, out *Output) {
				a.w.table.verdict[ip] = Verdict{Kind: VerdictRejected, Problem: Problem{Reason: TableFull}}
				a.w.sw.RetryGroup(a.w.now, ip, out)
			})},
			{"where", call(func(a *asker, out *Output) {
				out.reset()
				p, err := a.w.sw.Where(ip, key.IP, Nonce{3})
				if err == nil {
					out.Packets = append(out.Packets, p)
				}
				k, ok := a.w.sw.Key(ip)
				a.w.table.calls = append(a.w.table.calls, fmt.Sprint(err, k, ok))
			})},
			{"another key", call(func(a *asker, out *Output) {
				out.reset()
				n, err := a.w.sw.SetKeys(a.w.now, Auth{Keys: Keys{8: testKeys[8]}, Send: 8}, nil)
				a.w.table.calls = append(a.w.table.calls, fmt.Sprint(n, err))
			})},
			{"deadline", deadline},
			{"before the deadline", call(func(a *asker, out *Output) {
				if at, ok := a.w.sw.NextDeadline(); ok && at-1 > a.w.now {
					a.w.now = at - 1
				}
				a.w.sw.Advance(a.w.now, out)
			})},
			{"all deadlines", call(func(a *asker, out *Output) { a.w.sw.Advance(a.w.now+time.Hour, out) })},
		} {
			try(y.name, y.do)
		}
		try("two deadlines", func(a *asker) Output { deadline(a); return deadline(a) })
		try("seven deadlines", func(a *asker) Output {
			for range 6 {
				deadline(a)
			}
			return deadline(a)
		})
	}
	s.End()
}
