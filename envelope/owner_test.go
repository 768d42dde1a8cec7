// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"bytes"
	"net/netip"
	"testing"
	"time"
)

// TestAnotherKeyChangesNothing: the holder of another key, from the master's own
// address, with the right instance and epochs, renews, deletes, replaces, updates
// and takes members out of a group: each is rejected and changes nothing, also
// while the group is being located, and no epoch is used up.
func TestAnotherKeyChangesNothing(t *testing.T) {
	for _, phase := range []string{"installed", "being located"} {
		a := newAsker(t, RegistrarConfig{})
		reg := epoch(sample(1, 3), 5)
		if phase == "being located" {
			a.w.table.verdict[reg.Group] = Verdict{Kind: VerdictLater, Problem: Problem{Reason: UnknownMemberLocation, Member: reg.Members[1].Key()}}
		}
		a.register(reg)
		a.w.table.calls = nil
		newer := epoch(sample(1, 2), 9)
		update := newer
		update.Base = 5
		same := epoch(reg, 6)
		for name, c := range map[string]struct {
			epoch uint64
			body  Body
		}{
			"renew":           {5, &Renew{Lease: time.Minute, ListUnconfirmed: reg.Members[:1]}},
			"delete":          {5, &Delete{}},
			"delete later":    {7, &Delete{}},
			"leave":           {5, &Leave{Member: reg.Members[0].Key()}},
			"replace":         {9, &Register{newer.groupBody(newer.Members)}},
			"update":          {9, &Register{update.groupBody(update.Members)}},
			"same again":      {6, &Register{same.groupBody(same.Members)}},
			"repeat":          {5, &Register{reg.groupBody(reg.Members)}},
			"replace, part 1": {9, &Register{newer.groupBody(newer.Members[:1])}},
		} {
			h := a.head(reg.Group, c.epoch)
			h.KeyID = 8
			if name == "replace, part 1" {
				h.Total = 2
			}
			out := a.askUnder(h, c.body)
			if r := a.reason(out); r != OtherKey || len(out.Packets) != 1 || len(out.Events) > 0 {
				t.Errorf("%s, %s: %v, %d packets, events %v", phase, name, r, len(out.Packets), out.Events)
			}
		}
		if len(a.w.table.calls) > 0 || len(a.w.sw.pending) > 0 {
			t.Errorf("%s: %v, %d pending", phase, a.w.table.calls, len(a.w.sw.pending))
		}
		delete(a.w.table.verdict, reg.Group)
		var out Output
		a.w.sw.RetryGroup(a.w.now, reg.Group, &out)
		if r := a.reason(a.register(epoch(sample(1, 2), 6))); r != NoReason {
			t.Errorf("%s: the owner's next epoch: %v", phase, r)
		}
	}
}

// TestGroupOfTheOperator: no key changes a group that was registered by hand.
func TestGroupOfTheOperator(t *testing.T) {
	a := newAsker(t, RegistrarConfig{})
	reg := sample(1, 2)
	var out Output
	if _, err := a.w.sw.RegisterLocal(0, reg, &out); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]Body{"delete": &Delete{}, "leave": &Leave{Member: reg.Members[0].Key()}, "replace": &Register{reg.groupBody(reg.Members)}} {
		if r := a.reason(a.ask(a.head(reg.Group, 2), b)); r != OtherKey {
			t.Errorf("%s: %v", name, r)
		}
	}
	// The operator may replace a master's group, and then it is theirs no more.
	a.register(epoch(sample(2, 3), 1))
	if _, err := a.w.sw.RegisterLocal(0, sample(2, 2), &out); err != nil {
		t.Errorf("by hand in place of a master's: %v", err)
	}
	if r := a.reason(a.register(epoch(sample(2, 3), 9))); r != OtherKey {
		t.Errorf("the master takes it back: %v", r)
	}
}

// TestOperatorComesFirst: the operator's group is there before the members of a
// key's have been located.
func TestOperatorComesFirst(t *testing.T) {
	a := newAsker(t, RegistrarConfig{})
	reg := epoch(sample(1, 2), 5)
	a.w.table.verdict[reg.Group] = Verdict{Kind: VerdictLater, Problem: Problem{Reason: UnknownMemberLocation, Member: reg.Members[1].Key()}}
	a.register(reg)
	delete(a.w.table.verdict, reg.Group)
	mine := sample(1, 3)
	var out Output
	if _, err := a.w.sw.RegisterLocal(0, mine, &out); err != nil {
		t.Fatal(err)
	}
	a.w.sw.RetryGroup(0, reg.Group, &out)
	if g := a.w.sw.groups[reg.Group]; !g.local() || len(g.reg.Members) != 3 {
		t.Errorf("installed: %v", g.reg)
	}
}

// TestLeaveIsUnderTheKeyOfTheRegistration: whatever a member sends under by itself.
func TestLeaveIsUnderTheKeyOfTheRegistration(t *testing.T) {
	reg := sample(1, 2)
	w := newWorld(t, RegistrarConfig{})
	mem := w.addMember(t, reg.Members[0], reg)
	mem.auth.Send = 8
	var out Output
	mem.Input(0, switchAddr(reg), note(t, 5, reg.Group, &Notify{reg.groupBody(reg.Members[:1])}), &out)
	if err := mem.Leave(0, reg.Group, &out); err != nil || len(out.Packets) != 1 {
		t.Fatalf("%v, %v", err, out)
	}
	if m, _ := Parse(out.Packets[0].Data); m.KeyID != 7 {
		t.Errorf("left under key %d", m.KeyID)
	}
}

// TestWhoeverIsSecondIsNotTheOwner: two keys put the same group together at once;
// neither disturbs the other's segments, and who is complete first has it.
func TestWhoeverIsSecondIsNotTheOwner(t *testing.T) {
	a := newAsker(t, RegistrarConfig{})
	reg := epoch(sample(1, 4), 5)
	segment := func(key KeyID, epoch uint64, seq int) Output {
		h := a.head(reg.Group, epoch)
		h.KeyID, h.Total, h.Seq, h.Transaction = key, 2, uint16(seq), 77
		return a.askUnder(h, &Register{reg.groupBody(reg.Members[2*seq:][:2])})
	}
	segment(7, 5, 0)
	segment(8, 6, 0)
	if r := a.reason(segment(7, 5, 1)); r != NoReason {
		t.Errorf("the first: %v", r)
	}
	if r := a.reason(segment(8, 6, 1)); r != OtherKey {
		t.Errorf("the second: %v", r)
	}
	if g := a.w.sw.groups[reg.Group]; g == nil || g.key != 7 || g.reg.Epoch != 5 {
		t.Errorf("installed: %+v", g)
	}
}

// TestForgedNotices: what a host makes up is not taken for the switch's: from its
// own address, under any key that the member holds, and, where the switch's address
// could be had, under another key than that of the registration.
func TestForgedNotices(t *testing.T) {
	reg := sample(1, 2)
	w := newWorld(t, RegistrarConfig{})
	w.addMembers(t, reg, reg.Members)
	m := w.startMaster(t, "A", MasterConfig{Local: masterAddr}, reg)
	var out Output
	w.run(time.Second)
	mem := w.members[reg.Members[0].IP.String()]
	mem.auth.Keys[9] = bytes.Repeat([]byte{9}, 32) // a second tenant's
	defer delete(mem.auth.Keys, 9)
	seal := func(key KeyID, epoch uint64, b Body) []byte {
		p, err := Append(nil, &Message{Header{Epoch: epoch, Instance: 5, Transaction: 9, Total: 1, Group: reg.Group, ReplyTo: masterAddr}, b}, mem.auth.Keys, key)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	stranger := netip.MustParseAddrPort("10.1.0.99:4797")
	gone := &Gone{Member: reg.Members[0].Key(), EndReason: Deleted}
	for _, c := range []struct {
		name string
		to   machine
		from netip.AddrPort
		b    []byte
		want Drop
	}{
		{"gone from a host", mem, stranger, seal(7, 1, gone), WrongSource},
		{"gone from the master", mem, masterAddr, seal(7, 1, gone), WrongSource},
		{"gone from another port", mem, netip.AddrPortFrom(reg.Group, 9), seal(7, 1, gone), WrongSource},
		{"gone under another key", mem, switchAddr(reg), seal(9, 1, gone), OtherKeyMsg},
		{"gone of a later epoch under another key", mem, switchAddr(reg), seal(9, 8, gone), OtherKeyMsg},
		{"notify of a later epoch under another key", mem, switchAddr(reg), seal(9, 8, &Notify{reg.groupBody(reg.Members[:1])}), OtherKeyMsg},
		{"notify from a host", mem, stranger, seal(7, 8, &Notify{reg.groupBody(reg.Members[:1])}), WrongSource},
		{"gone to the master from a host", m, stranger, seal(7, 1, &Gone{EndReason: Deleted}), WrongSource},
		{"gone to the master under another key", m, switchAddr(reg), seal(8, 1, &Gone{EndReason: Deleted}), OtherKeyMsg},
		{"a confirmation of somebody else", m, stranger, seal(7, 1, &Confirm{Member: reg.Members[1].Key(), Status: NotJoined}), WrongSource},
	} {
		c.to.Input(w.now, c.from, c.b, &out)
		if out.Drop != c.want || len(out.Events) > 0 {
			t.Errorf("%s: %v, events %v", c.name, out.Drop, out.Events)
		}
	}
	if m.Ended() || mem.groups[reg.Group].ended {
		t.Error("the registration ended")
	}
	// The key that the member sends under may take the registration over: its
	// holders speak for the member anyway.
	mem.auth.Send = 9
	if mem.Input(w.now, switchAddr(reg), seal(9, 1, gone), &out); out.Drop != NoDrop || len(out.Events) != 1 {
		t.Errorf("gone under the member's own key: %v, %v", out.Drop, out.Events)
	}
}

// TestReflection: a MAC that one side made is not authentic in any other
// direction, even if its maker could be brought to sign the bytes of another type.
func TestReflection(t *testing.T) {
	for name, m := range examples() {
		kind := m.Body.kind()
		b, err := Append(nil, &m, testKeys, 7)
		if err != nil {
			t.Fatal(err)
		}
		body := b[:len(b)-MACLen]
		for other := range numTypes {
			same := other.direction() == kind.direction()
			if got := bytes.Equal(macOf(testKeys[7], other, body), b[len(body):]); got != same {
				t.Errorf("%s: the MAC is that of a %v: %v", name, other, got)
			}
		}
		if kind.direction() == noDirection {
			t.Errorf("%v has no direction", kind)
		}
	}
	for d, l := range labels {
		for e, k := range labels {
			if d != e && d != 0 && e != 0 && bytes.HasPrefix([]byte(k), []byte(l)) {
				t.Errorf("label %d begins with label %d", e, d)
			}
		}
	}
}

// TestWhatASwitchSendsIsNoRequest plays every message of the switch, and of members
// to their master, back to the switch, and every request to the hosts.
func TestWhatASwitchSendsIsNoRequest(t *testing.T) {
	reg := sample(1, 2)
	w := newWorld(t, RegistrarConfig{})
	w.addMembers(t, reg, reg.Members)
	m := w.startMaster(t, "A", MasterConfig{Local: masterAddr}, reg)
	var out Output
	w.run(time.Second)
	var seen int
	for _, p := range append([]Packet(nil), w.captured...) {
		msg, _ := Parse(p.Data)
		to := []machine{w.sw}
		if msg.Type.direction() == toSwitch {
			to = []machine{m, w.members[reg.Members[0].IP.String()]}
		}
		for _, x := range to {
			seen++
			for _, from := range []netip.AddrPort{p.Src, p.Dst, msg.ReplyTo, switchAddr(reg)} {
				if x.Input(w.now, from, p.Data, &out); out.Drop != WrongRole || len(out.Packets)+len(out.Events) > 0 {
					t.Errorf("%v from %v: %v, %d packets, events %v", msg, from, out.Drop, len(out.Packets), out.Events)
				}
			}
		}
	}
	if seen < 6 {
		t.Errorf("%d messages", seen)
	}
}

// TestExclusiveReplacesNothing: an exclusive registration of a group that is there, or is being
// located, is rejected and changes nothing, uses no epoch up, and is served once the group has ended.
// What the exclusive master repeats or updates is its own group.
func TestExclusiveReplacesNothing(t *testing.T) {
	for _, phase := range []string{"installed", "being located"} {
		a := newAsker(t, RegistrarConfig{})
		first := epoch(sample(1, 3), 5)
		first.Exclusive = true
		if phase == "being located" {
			a.w.table.verdict[first.Group] = Verdict{Kind: VerdictLater, Problem: Problem{Reason: UnknownMemberLocation, Member: first.Members[1].Key()}}
		}
		a.register(first)
		calls := len(a.w.table.calls)
		other := epoch(sample(1, 2), 9)
		other.Exclusive = true
		if r := a.reason(a.register(other)); r != GroupExists {
			t.Errorf("%s: another one: %v", phase, r)
		}
		if out := a.register(first); out.Drop != DuplicateMsg {
			t.Errorf("%s: the first one, repeated: drop %v", phase, out.Drop)
		}
		if n := a.w.sw.newest(first.Group); n != 5 || len(a.w.table.calls) != calls {
			t.Errorf("%s: epoch %d, calls %v", phase, n, a.w.table.calls[calls:])
		}
		a.ask(a.head(first.Group, 5), &Delete{})
		delete(a.w.table.verdict, first.Group)
		if r := a.reason(a.register(other)); r != NoReason {
			t.Errorf("%s: another one, afterwards: %v", phase, r)
		}
		update := other
		update.Epoch, update.Base, update.Members = 10, 9, sample(1, 3).Members
		if r := a.reason(a.register(update)); r != NoReason {
			t.Errorf("%s: an update: %v", phase, r)
		}
	}
}
