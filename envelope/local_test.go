// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// TestLocal: groups registered by hand.
func TestLocal(t *testing.T) {
	a := newAsker(t, RegistrarConfig{MaxMembers: 4})
	var out Output
	reg := sample(1, 2)
	e, err := a.w.sw.RegisterLocal(0, reg, &out)
	if err != nil || e != 1 || len(out.Packets) > 0 || len(out.Events) != 1 || out.Events[0].Kind != Registered {
		t.Fatalf("epoch %d, %v, %v", e, err, out)
	}
	if d, ok := a.w.sw.NextDeadline(); ok {
		t.Errorf("a local group has no lease, but a deadline: %v", d)
	}
	if e, err = a.w.sw.RegisterLocal(0, reg, &out); err != nil || e != 1 || len(out.Events) != 1 || out.Events[0].Kind != Unchanged {
		t.Errorf("the same again: epoch %d, %v, %v", e, err, out.Events)
	}
	reg.Members[0].SQPSN++
	if e, err = a.w.sw.RegisterLocal(0, reg, &out); err != nil || e != 2 {
		t.Errorf("again: epoch %d, %v", e, err)
	}
	for _, c := range []struct {
		reg  Registration
		want Reason
	}{
		{epoch(reg, 2), StaleEpoch}, {sample(2, 1), TooFewMembers}, {sample(2, 5), TooManyMembers},
		{func() Registration { r := sample(2, 2); r.Group = netip.MustParseAddr("10.8.0.1"); return r }(), NotGroupPrefix},
		{func() Registration { r := sample(2, 2); r.Members[0].IP = netip.MustParseAddr("fd00::1"); return r }(), FamilyMismatch},
		{func() Registration { r := sample(2, 2); r.Group = netip.MustParseAddr("fd00:9::1"); return r }(), FamilyMismatch},
	} {
		_, err := a.w.sw.RegisterLocal(0, c.reg, &out)
		var p *Problem
		if !errors.As(err, &p) || p.Reason != c.want {
			t.Errorf("%v, want %v", err, c.want)
		}
		if len(out.Packets) > 0 {
			t.Errorf("%v: packets", c.want)
		}
	}
	if r := a.reason(a.ask(a.head(reg.Group, 2), &Delete{})); r != OtherKey {
		t.Errorf("delete by the network: %v", r)
	}
	a.w.sw.GroupFailed(0, reg.Group, reg.Members[0].Key(), rocev2.SyndromeNAKAccess, 5, &out)
	a.w.sw.MemberEvicted(0, reg.Group, reg.Members[0].Key(), 0, 5, &out)
	if len(out.Packets) > 0 || len(out.Events) != 1 || out.Events[0].EndReason != Evicted || out.Events[0].PSN != 5 {
		t.Errorf("evicted: %v", out)
	}
	if err := a.w.sw.DeleteLocal(0, reg.Group, &out); err != nil || len(a.w.sw.Groups()) > 0 || len(out.Packets) > 0 {
		t.Errorf("delete: %v, %v", err, out)
	}
	if err := a.w.sw.DeleteLocal(0, reg.Group, &out); err != nil {
		t.Errorf("its epochs are forgotten: %v", err)
	}
	if err := a.w.sw.DeleteLocal(0, reg.Group, &out); err == nil {
		t.Error("deleted what is not there")
	}
	// Located later: the outcome is an event.
	a.w.table.verdict[reg.Group] = Verdict{Kind: VerdictLater, Problem: Problem{Reason: UnknownMemberLocation, Member: reg.Members[1].Key()}}
	if _, err := a.w.sw.RegisterLocal(0, reg, &out); err != nil || len(out.Events) > 0 {
		t.Errorf("later: %v, %v", err, out.Events)
	}
	delete(a.w.table.verdict, reg.Group)
	if a.w.sw.RetryGroup(1, reg.Group, &out); len(out.Events) != 1 || out.Events[0].Kind != Registered {
		t.Errorf("located: %v", out.Events)
	}
	a.w.table.verdict[reg.Group] = Verdict{Kind: VerdictLater, Problem: Problem{Reason: UnknownMemberLocation, Member: reg.Members[1].Key()}}
	reg.Members[0].SQPSN++
	if _, err := a.w.sw.RegisterLocal(1, reg, &out); err != nil {
		t.Error(err)
	}
	a.w.sw.Advance(time.Minute, &out)
	var p *Problem
	if len(out.Events) != 1 || !errors.As(out.Events[0].Err, &p) || p.Reason != UnknownMemberLocation || p.Member != reg.Members[1].Key() {
		t.Errorf("never located: %v", out.Events)
	}
	if len(a.w.sw.Groups()) != 1 {
		t.Error("the older group is gone though the newer was rejected")
	}
}

func TestRegistrarConfigErrors(t *testing.T) {
	good := func() RegistrarConfig {
		return RegistrarConfig{Secret: [SecretLen]byte{1}, Auth: testAuth(), Prefixes: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")}}
	}
	for name, f := range map[string]func(*RegistrarConfig){
		"secret":      func(c *RegistrarConfig) { c.Secret = [SecretLen]byte{} },
		"period":      func(c *RegistrarConfig) { c.CookiePeriod = -1 },
		"no prefix":   func(c *RegistrarConfig) { c.Prefixes = nil },
		"class D":     func(c *RegistrarConfig) { c.Prefixes[0] = netip.MustParsePrefix("224.0.0.0/8") },
		"pmtu":        func(c *RegistrarConfig) { c.MaxPMTU = 1500 },
		"members":     func(c *RegistrarConfig) { c.MaxMembers = 1 },
		"epochs":      func(c *RegistrarConfig) { c.MaxEpochs = 3 },
		"lease":       func(c *RegistrarConfig) { c.MinLease = 2 * time.Hour },
		"timeout":     func(c *RegistrarConfig) { c.LocateRetry = -1 },
		"no key":      func(c *RegistrarConfig) { c.Auth = Auth{} },
		"unknown key": func(c *RegistrarConfig) { c.Auth.Send = 3 },
		"short key":   func(c *RegistrarConfig) { c.Auth = Auth{Keys: Keys{7: make([]byte, 31)}, Send: 7} },
		"key 0":       func(c *RegistrarConfig) { c.Auth.Keys = Keys{0: make([]byte, 32), 7: make([]byte, 32)} },
	} {
		c := good()
		f(&c)
		if _, err := NewRegistrar(c, newTableStub()); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := NewRegistrar(good(), newTableStub()); err != nil {
		t.Error(err)
	}
}

// TestRenewNotifiesOnce: a member is notified once a Renew, however often it is
// named, and a stranger is not.
func TestRenewNotifiesOnce(t *testing.T) {
	a := newAsker(t, RegistrarConfig{})
	reg := epoch(sample(1, 3), 1)
	a.register(reg)
	m := reg.Members[1]
	out := a.ask(a.head(reg.Group, 1), &Renew{ListUnconfirmed: []MemberRecord{m, m, sample(2, 1).Members[0], m}})
	notes := 0
	for _, p := range out.Packets {
		if b, _ := Parse(p.Data); b.Type == TypeNotify {
			notes++
			if n := b.Body.(*Notify); len(n.Members) != 1 || n.Members[0] != m {
				t.Errorf("notified of %v", n.Members)
			}
		}
	}
	if notes != 1 || len(out.Packets) != 2 {
		t.Errorf("%d notes in %d packets", notes, len(out.Packets))
	}
}

// TestGoneIsRepeatedAFewTimes: nobody acknowledges.
func TestGoneIsRepeatedAFewTimes(t *testing.T) {
	a := newAsker(t, RegistrarConfig{EventTries: 4, MaxEvents: 2})
	reg := epoch(sample(1, 3), 1)
	a.register(reg)
	sent := map[netip.AddrPort]int{}
	var out Output
	for now, ok := a.w.sw.NextDeadline(); ok; now, ok = a.w.sw.NextDeadline() {
		a.w.sw.Advance(now, &out)
		for _, p := range out.Packets {
			sent[p.Dst]++
		}
		if now > time.Hour {
			t.Fatal("it does not end")
		}
	}
	// Room for two that wait: the master and the first member; the rest once.
	for i, want := range map[netip.AddrPort]int{masterAddr: 4, a.w.sw.addrOf(reg.Members[0].Key()): 4, a.w.sw.addrOf(reg.Members[1].Key()): 1, a.w.sw.addrOf(reg.Members[2].Key()): 1} {
		if sent[i] != want {
			t.Errorf("%v: %d times, want %d", i, sent[i], want)
		}
	}
}
