// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"net/netip"
	"testing"
	"time"
)

// TestRolesOfKeys: which requests each role allows. What is refused uses no epoch up
// and leaves nothing behind.
func TestRolesOfKeys(t *testing.T) {
	reg := epoch(sample(1, 3), 5)
	mine := reg.Members[2]
	for _, c := range []struct {
		roles                 Roles
		master, leave, remove Reason
	}{
		{0, NoReason, NoReason, NoReason},
		{RoleMaster, NoReason, NoReason, NoReason},
		{RoleMember, KeyRole, NoReason, KeyRole},
		{RoleReceiveOnly, KeyRole, NoReason, KeyRole},
		{RoleMaster | RoleMember, NoReason, NoReason, NoReason},
	} {
		a := newAsker(t, RegistrarConfig{})
		a.register(reg)
		a.w.sw.cfg.Rights = map[KeyID]Rights{7: {Roles: c.roles}}
		try := func(name string, from netip.AddrPort, e uint64, b Body, want Reason) {
			t.Helper()
			h := a.head(reg.Group, e)
			a.from = from
			h.ReplyTo, h.Instance = from, a.cookie()
			if r := a.reason(a.ask(h, b)); r != want {
				t.Errorf("roles %b, %s: %v, want %v", c.roles, name, r, want)
			}
			a.from = masterAddr
		}
		newer := epoch(reg, 6)
		newer.Members = newer.Members[:2]
		try("renew", masterAddr, 5, &Renew{}, c.master)
		try("leave", netip.AddrPortFrom(mine.IP, DefaultPort), 5, &Leave{Member: mine.Key()}, c.leave)
		try("remove", masterAddr, 5, &Leave{Member: reg.Members[1].Key()}, c.remove)
		try("register", masterAddr, 6, &Register{newer.groupBody(newer.Members)}, c.master)
		if c.master != NoReason {
			try("delete", masterAddr, 9, &Delete{}, KeyRole)
			if n := a.w.sw.newest(reg.Group); n != 5 {
				t.Errorf("roles %b: epoch %d is used up", c.roles, n)
			}
		}
	}
}

// TestPrefixesOfKeys: a key has its own group addresses.
func TestPrefixesOfKeys(t *testing.T) {
	a := newAsker(t, RegistrarConfig{Rights: map[KeyID]Rights{
		7: {Prefixes: []netip.Prefix{netip.MustParsePrefix("10.9.0.4/31"), netip.MustParsePrefix("10.9.0.1/32")}},
	}})
	for g, want := range map[byte]Reason{1: NoReason, 2: KeyPrefix, 3: KeyPrefix, 4: NoReason, 5: NoReason, 6: KeyPrefix} {
		if r := a.reason(a.register(epoch(sample(g, 2), 1))); r != want {
			t.Errorf("group %d: %v, want %v", g, r, want)
		}
	}
	reg := sample(2, 2)
	h := a.head(reg.Group, 1)
	h.KeyID = 8
	if r := a.reason(a.askUnder(h, &Register{reg.groupBody(reg.Members)})); r != NoReason {
		t.Errorf("another key: %v", r)
	}
}

// TestReceiveOnly: the flag travels to the table and to the member, is part of what
// an update compares, and is forced by the key's role on all but the master's host.
func TestReceiveOnly(t *testing.T) {
	w := newWorld(t, RegistrarConfig{})
	reg := sample(1, 4)
	reg.Members[1].ReceiveOnly = true
	w.addMembers(t, reg, reg.Members)
	m := w.addMaster(t, "A", MasterConfig{Local: masterAddr, MTU: 200}, reg) // in several segments
	var out Output
	m.Start(0, &out)
	w.do("A", &out)
	w.run(time.Second)
	installed := w.table.groups[reg.Group]
	if m.phase != registered || installed == nil {
		t.Fatalf("phase %d", m.phase)
	}
	for i, rec := range installed.Members {
		if rec.ReceiveOnly != (i == 1) {
			t.Errorf("member %d: receive only %v", i, rec.ReceiveOnly)
		}
	}
	for _, p := range w.captured {
		if msg, _ := Parse(p.Data); msg.Type == TypeNotify {
			if rec := msg.Body.(*Notify).Members[0]; rec.ReceiveOnly != (rec.IP == reg.Members[1].IP) {
				t.Errorf("notified of %v", rec)
			}
		}
	}
	all := sample(2, 2)
	all.Members[0].ReceiveOnly, all.Members[1].ReceiveOnly = true, true
	if p := all.Validate(); p == nil || p.Reason != NoSender {
		t.Errorf("nobody sends: %v", p)
	}
}

// TestReceiveOnlyKey: under it a group has one sender, the master's host; a master
// that is elsewhere cannot register one that nobody may send to.
func TestReceiveOnlyKey(t *testing.T) {
	a := newAsker(t, RegistrarConfig{Rights: map[KeyID]Rights{7: {Roles: RoleMaster | RoleReceiveOnly}}})
	reg := epoch(sample(1, 3), 5)
	if r := a.reason(a.register(reg)); r != NoSender {
		t.Errorf("no member is the master's host: %v", r)
	}
	a.from = netip.AddrPortFrom(reg.Members[1].IP, 5000)
	reg.Epoch = 6
	if r := a.reason(a.register(reg)); r != NoReason {
		t.Fatal(r)
	}
	quiet := epoch(sample(2, 3), 5)
	quiet.Members[1].ReceiveOnly = true
	quiet.Members[1].IP, quiet.Members[1].QPN = a.from.Addr(), 0x777
	if r := a.reason(a.register(quiet)); r != NoSender {
		t.Errorf("the master's host asks for no more than to receive: %v", r)
	}
	for i, rec := range a.w.table.groups[reg.Group].Members {
		if rec.ReceiveOnly != (i != 1) {
			t.Errorf("member %d: receive only %v", i, rec.ReceiveOnly)
		}
	}
	// What came before is the same for the update that names it again.
	update := epoch(sample(1, 4), 7)
	update.Base = 6
	bs := a.answers(a.register(update))
	if acc, ok := bs[0].(*Accept); !ok || acc.Members != 4 {
		t.Fatalf("%+v", bs[0])
	}
	if j := a.w.sw.groups[reg.Group].joined; j[0] != 6 || j[3] != 7 {
		t.Errorf("joined: %v", j)
	}
}
