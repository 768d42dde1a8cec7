// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// note is a message from the switch to a member, with the test's key.
func note(t *testing.T, epoch uint64, group netip.Addr, body Body) []byte {
	t.Helper()
	b, err := Append(nil, &Message{Header{Epoch: epoch, Instance: 5, Transaction: 9, Total: 1, Group: group, ReplyTo: masterAddr}, body}, testKeys, 7)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// switchAddr is where the switch's messages about reg come from.
func switchAddr(reg Registration) netip.AddrPort { return netip.AddrPortFrom(reg.Group, DefaultPort) }

// placeOf is where the message b has to come from; other for what is no message.
func placeOf(b []byte, other netip.AddrPort) netip.AddrPort {
	m, err := Parse(b)
	if err != nil {
		return other
	}
	switch m.Type.direction() {
	case fromSwitch:
		return netip.AddrPortFrom(m.Group, DefaultPort)
	case toMaster:
		return netip.AddrPortFrom(m.Body.(*Confirm).Member.IP, DefaultPort)
	}
	return m.ReplyTo
}

// TestMemberAnswers: what a member says to a Notify, for each thing that may
// differ from what its queue pair was set up with.
func TestMemberAnswers(t *testing.T) {
	reg := withWindows(sample(1, 2))
	rec := reg.Members[0]
	for _, c := range []struct {
		name   string
		change func(*Registration, *MemberRecord)
		want   Status
	}{
		{"all as joined", func(*Registration, *MemberRecord) {}, Confirmed},
		{"qpn", func(_ *Registration, m *MemberRecord) { m.QPN++ }, QPNMismatch},
		{"sq_psn", func(_ *Registration, m *MemberRecord) { m.SQPSN++ }, SQPSNMismatch},
		{"rq_psn", func(_ *Registration, m *MemberRecord) { m.RQPSN++ }, RQPSNMismatch},
		{"virtual qpn", func(r *Registration, _ *MemberRecord) { r.QPN++ }, VirtualQPNMismatch},
		{"path MTU", func(r *Registration, _ *MemberRecord) { r.PathMTU = 512 }, PMTUMismatch},
		{"window", func(_ *Registration, m *MemberRecord) { m.Window.Base++ }, WindowMismatch},
		{"no window", func(_ *Registration, m *MemberRecord) { m.Window = mcast.Window{} }, WindowMismatch},
		{"no windows at all", func(r *Registration, m *MemberRecord) { m.Window, r.Window = mcast.Window{}, mcast.Window{} }, Confirmed},
	} {
		w := newWorld(t, RegistrarConfig{})
		mem := w.addMember(t, rec, reg)
		r, m := reg, rec
		c.change(&r, &m)
		var out Output
		for i, epoch := range []uint64{3, 3, 4} {
			mem.Input(0, switchAddr(reg), note(t, epoch, reg.Group, &Notify{r.groupBody([]MemberRecord{m})}), &out)
			if len(out.Packets) != 1 || out.Packets[0].Dst != masterAddr {
				t.Fatalf("%s: %d answers", c.name, len(out.Packets))
			}
			msg, err := Open(out.Packets[0].Data, testKeys, false)
			if err != nil {
				t.Fatal(err)
			}
			a := msg.Body.(*Confirm)
			if a.Status != c.want || a.Member != m.Key() || a.QPN != rec.QPN || a.SQPSN != rec.SQPSN || a.RQPSN != rec.RQPSN {
				t.Errorf("%s: %+v", c.name, a)
			}
			if want := i != 1; want != (len(out.Events) == 1) { // once an epoch
				t.Errorf("%s: epoch %d, events %v", c.name, epoch, out.Events)
			}
		}
	}
}

// TestMemberDrops: what a member takes no notice of.
func TestMemberDrops(t *testing.T) {
	reg := sample(1, 2)
	w := newWorld(t, RegistrarConfig{})
	mem := w.addMember(t, reg.Members[0], reg)
	var out Output
	in := func(b []byte) Drop {
		mem.Input(0, placeOf(b, switchAddr(reg)), b, &out)
		return out.Drop
	}
	mine := &Notify{reg.groupBody(reg.Members[:1])}
	if d := in(note(t, 5, reg.Group, mine)); d != NoDrop {
		t.Fatal(d)
	}
	plain, _ := Append(nil, &Message{Header{Epoch: 6, Total: 1, Group: reg.Group, ReplyTo: masterAddr}, mine}, testKeys, 0)
	forged, _ := Append(nil, &Message{Header{Epoch: 6, Total: 1, Group: reg.Group, ReplyTo: masterAddr}, mine}, Keys{7: make([]byte, 32)}, 7)
	key := reg.Members[0].Key()
	other := key
	other.QPN++
	for _, c := range []struct {
		name    string
		b       []byte
		want    Drop
		answers int
	}{
		{"no MAC", plain, Unauthenticated, 0},
		{"wrong key", forged, BadMAC, 0},
		{"older epoch", note(t, 4, reg.Group, mine), StaleMessage, 0},
		{"another's record", note(t, 6, reg.Group, &Notify{reg.groupBody(reg.Members[1:])}), NotForUs, 0},
		{"a request", note(t, 5, reg.Group, &Delete{}), WrongRole, 0},
		{"a member's confirmation", note(t, 5, reg.Group, &Confirm{Member: other}), WrongRole, 0},
		{"an answer to nothing", note(t, 5, reg.Group, &Accept{Request: TypeLeave}), Unsolicited, 0},
		{"a challenge to nothing", note(t, 5, reg.Group, &Challenge{Request: TypeLeave}), Unsolicited, 0},
		{"gone, another", note(t, 5, reg.Group, &Gone{Member: reg.Members[1].Key(), EndReason: Evicted}), NotForUs, 0},
		{"gone, other QP", note(t, 5, reg.Group, &Gone{Member: other, EndReason: Evicted}), StaleMessage, 1},
		{"gone, older", note(t, 4, reg.Group, &Gone{Member: key, EndReason: Evicted}), StaleMessage, 1},
		{"gone, other group", note(t, 5, sample(2, 1).Group, &Gone{Member: key, EndReason: Evicted}), UnknownGroupMsg, 1},
		{"gone", note(t, 5, reg.Group, &Gone{Member: key, EndReason: Evicted}), NoDrop, 1},
		{"gone again", note(t, 5, reg.Group, &Gone{Member: key, EndReason: Evicted}), DuplicateMsg, 1},
		{"notify of what is over", note(t, 5, reg.Group, mine), StaleMessage, 0},
		{"the next epoch", note(t, 6, reg.Group, mine), NoDrop, 1},
	} {
		before := mem.Drops()[c.want]
		if d := in(c.b); d != c.want || len(out.Packets) != c.answers {
			t.Errorf("%s: drop %v with %d answers, want %v with %d", c.name, d, len(out.Packets), c.want, c.answers)
		}
		if (c.want != NoDrop) != (len(out.Events) == 0) {
			t.Errorf("%s: events %v", c.name, out.Events)
		}
		if c.want != NoDrop && mem.Drops()[c.want] != before+1 {
			t.Errorf("%s: not counted", c.name)
		}
	}
}

// TestGoneBeforeNotify: a Gone that overtakes its Notify voids it.
func TestGoneBeforeNotify(t *testing.T) {
	reg := sample(1, 2)
	w := newWorld(t, RegistrarConfig{})
	mem := w.addMember(t, reg.Members[0], reg)
	var out Output
	mem.Input(0, switchAddr(reg), note(t, 5, reg.Group, &Gone{Member: reg.Members[0].Key(), EndReason: Deleted}), &out)
	if len(out.Packets) != 1 || len(out.Events) != 0 {
		t.Errorf("%v", out)
	}
	mem.Input(0, switchAddr(reg), note(t, 5, reg.Group, &Notify{reg.groupBody(reg.Members[:1])}), &out)
	if out.Drop != StaleMessage || len(out.Events) != 0 {
		t.Errorf("%v", out)
	}
}

// TestMemberJoinAndLeave: errors, and leaving what the switch never named.
func TestMemberJoinAndLeave(t *testing.T) {
	reg := sample(1, 2)
	w := newWorld(t, RegistrarConfig{})
	mem := w.addMember(t, reg.Members[0], reg)
	good := membershipOf(reg.Members[0], reg)
	for name, f := range map[string]func(*Membership){
		"twice":       func(*Membership) {},
		"multicast":   func(m *Membership) { m.Group = netip.MustParseAddr("239.0.0.1") },
		"family":      func(m *Membership) { m.Group = netip.MustParseAddr("fd00:9::1") },
		"qpn":         func(m *Membership) { m.Group, m.QPN = netip.MustParseAddr("10.9.0.2"), 1 },
		"virtual qpn": func(m *Membership) { m.Group, m.VirtualQPN = netip.MustParseAddr("10.9.0.2"), 1 },
		"pmtu":        func(m *Membership) { m.Group, m.PathMTU = netip.MustParseAddr("10.9.0.2"), 1500 },
	} {
		ms := good
		f(&ms)
		if err := mem.Join(ms); err == nil {
			t.Errorf("%s: joined", name)
		}
	}
	var out Output
	if err := mem.Leave(0, netip.MustParseAddr("10.9.0.2"), &out); err == nil {
		t.Error("left what was not joined")
	}
	if err := mem.Leave(0, reg.Group, &out); err != nil || len(out.Packets) > 0 || len(out.Events) != 1 || out.Events[0].EndReason != Left {
		t.Errorf("%v, %v", err, out)
	}
	// A switch that does not answer.
	w.addMember(t, reg.Members[0], reg)
	mem.Input(0, switchAddr(reg), note(t, 5, reg.Group, &Notify{reg.groupBody(reg.Members[:1])}), &out)
	if err := mem.Leave(0, reg.Group, &out); err != nil || len(out.Packets) != 1 {
		t.Errorf("%v, %v", err, out)
	}
	sent := 0
	for now, ok := mem.NextDeadline(); ok; now, ok = mem.NextDeadline() {
		mem.Advance(now, &out)
		sent += len(out.Packets)
	}
	var f *Failure
	if sent < 5 || len(out.Events) != 1 || out.Events[0].Kind != LeaveFailed || !errors.As(out.Events[0].Err, &f) || !f.SwitchSilent {
		t.Errorf("%d sent, %v", sent, out.Events)
	}
}

// TestMasterDrops: what a master takes no notice of.
func TestMasterDrops(t *testing.T) {
	w := newWorld(t, RegistrarConfig{})
	reg := sample(1, 2)
	w.addMembers(t, reg, reg.Members)
	m := w.startMaster(t, "A", MasterConfig{Local: masterAddr, Seed: 3}, reg)
	var out Output
	w.run(time.Second)
	key := reg.Members[0].Key()
	for _, c := range []struct {
		name string
		b    []byte
		want Drop
	}{
		{"other group", note(t, 1, sample(2, 1).Group, &Confirm{Member: key}), UnknownGroupMsg},
		{"old accept", note(t, 9, reg.Group, &Accept{Request: TypeRegister}), StaleMessage},
		{"accept of another transaction", note(t, 1, reg.Group, &Accept{Request: TypeLeave}), Unsolicited},
		{"old reject", note(t, 9, reg.Group, &Reject{Request: TypeRegister}), StaleMessage},
		{"reject of another transaction", note(t, 1, reg.Group, &Reject{TypeRegister, Problem{Reason: TableFull}}), Unsolicited},
		{"challenge of another transaction", note(t, 1, reg.Group, &Challenge{Request: TypeRenew}), Unsolicited},
		{"late refusal", note(t, 1, reg.Group, &Confirm{Member: key, Status: NotJoined}), DuplicateMsg},
		{"old confirm", note(t, 9, reg.Group, &Confirm{Member: key}), StaleMessage},
		{"gone of a later epoch", note(t, 2, reg.Group, &Gone{EndReason: Expired}), StaleMessage},
		{"a request", note(t, 1, reg.Group, &Delete{}), WrongRole},
		{"noise", []byte("hello"), Truncated},
	} {
		m.Input(w.now, placeOf(c.b, masterAddr), c.b, &out)
		if out.Drop != c.want || len(out.Events) > 0 || m.phase != registered {
			t.Errorf("%s: %v, want %v; events %v", c.name, out.Drop, c.want, out.Events)
		}
	}
	if err := m.Leave(w.now, MemberKey{IP: key.IP, QPN: 0x999}, &out); err == nil {
		t.Error("removes a stranger")
	}
}

func TestMasterConfigErrors(t *testing.T) {
	good := func() (MasterConfig, Registration) {
		return MasterConfig{Local: masterAddr, Auth: testAuth()}, sample(1, 2)
	}
	for name, f := range map[string]func(*MasterConfig, *Registration){
		"no address":   func(c *MasterConfig, _ *Registration) { c.Local = netip.AddrPort{} },
		"any address":  func(c *MasterConfig, _ *Registration) { c.Local = netip.MustParseAddrPort("0.0.0.0:5") },
		"no port":      func(c *MasterConfig, _ *Registration) { c.Local = netip.MustParseAddrPort("10.0.0.1:0") },
		"family":       func(c *MasterConfig, _ *Registration) { c.Local = netip.MustParseAddrPort("[fd00::1]:5") },
		"no key":       func(c *MasterConfig, _ *Registration) { c.Auth = Auth{} },
		"MTU":          func(c *MasterConfig, _ *Registration) { c.MTU = 100 },
		"retry":        func(c *MasterConfig, _ *Registration) { c.RetryMin = time.Minute },
		"registration": func(_ *MasterConfig, r *Registration) { r.Members = r.Members[:1] },
		"class D":      func(_ *MasterConfig, r *Registration) { r.Group = netip.MustParseAddr("239.0.0.1") },
	} {
		c, r := good()
		f(&c, &r)
		if _, err := NewMaster(c, r); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	c, r := good()
	m, err := NewMaster(c, r)
	if err != nil {
		t.Fatal(err)
	}
	var out Output
	if m.Delete(0, &out); !m.Ended() || len(out.Packets) > 0 || len(out.Events) != 1 {
		t.Errorf("deleted before it began: %v", out)
	}
}

// TestEnumsHaveNames: no value of ours is printed as nothing.
func TestEnumsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	check := func(kind, s string) {
		if s == "" || strings.Contains(s, "unknown status") || seen[kind+s] {
			t.Errorf("%s: %q", kind, s)
		}
		seen[kind+s] = true
	}
	for r := range NumReasons {
		check("reason", r.String())
	}
	for w := range NumEndReasons {
		check("why", w.String())
	}
	for s := range NumStatuses {
		check("status", s.String())
	}
	for d := range NumDrops {
		check("drop", d.String())
		check("meaning", d.Text())
	}
	for y := Type(1); y < numTypes; y++ {
		check("type", y.String())
	}
}
