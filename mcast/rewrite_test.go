// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"slices"
	"testing"

	"github.com/gleam-rdma/gleam/rocev2"
)

// rewriting is source A with receivers B and C, and D behind another switch. Each has a
// window; the group has one if window is set, and a target key if key is.
func rewriting(t *testing.T, window, key bool) (in func(p Packet) *Output, acked func(psn rocev2.PSN) *Output) {
	t.Helper()
	s, out := New(Limits{}), &Output{}
	spec := GroupSpec{IP: groupIP, GroupParams: GroupParams{QPN: groupQPN, PathMTU: 1024}, Legs: []LegSpec{{}, {}, {}, {Kind: Forwarded, Neighbor: 1}}}
	for i, name := range []string{"A", "B", "C", "D"} {
		spec.Members = append(spec.Members, MemberSpec{MemberRecord: MemberRecord{IP: ipOf(name), QPN: 0x11, Window: Window{Base: uint64(i+1) << 32, Len: 0x400, RKey: uint32(70 + i)}}, Leg: LegID(i)})
	}
	if window {
		spec.Window = Window{Base: 0x1000, Len: 0x400, RKey: 7}
	}
	if key {
		spec.TargetKey = 99
	}
	if err := s.Apply(0, PutGroup{spec}, out); err != nil {
		t.Fatal(err)
	}
	joinTree(t, s, 0)
	next := rocev2.PSN(0)
	in = func(p Packet) *Output {
		p.Group, p.DestQP, p.Src, p.Verified, p.PSN = groupIP, groupQPN, ipOf("A"), true, next
		if s.Input(0, &p, out); out.Drop == None {
			next = next.Next()
		}
		return out
	}
	acked = func(psn rocev2.PSN) *Output {
		for _, p := range []Packet{{Src: ipOf("B")}, {Src: ipOf("C")}, {Src: ipOf("A"), Neighbor: 1}} {
			p.Group, p.DestQP, p.Verified, p.PSN, p.Op, p.Syndrome, p.MSN = groupIP, groupQPN, true, psn, rocev2.Acknowledge, rocev2.SyndromeACK, 1
			s.Input(0, &p, out)
		}
		return out
	}
	return in, acked
}

// targetsOf is a target message for B and C, and for two indexes that no member has.
func targetsOf(b, c uint64) Packet {
	return Packet{Op: rocev2.WriteOnly, VA: targetMessageVA, RKey: 99, DMALen: 40, Payload: 40, Targets: []Target{{1, b, 51}, {2, c, 52}, {4, 1, 1}, {65535, 1, 1}}}
}

// TestR27_WhatIsRewritten: copies for members have the address and the R_Key of the
// member's window, or of its target. Nothing else is rewritten, and nothing in copies for
// other switches.
func TestR27_WhatIsRewritten(t *testing.T) {
	write := func(op rocev2.Opcode, va uint64, rkey, length uint32) Packet {
		return Packet{Op: op, VA: va, RKey: rkey, DMALen: length, Payload: uint16(min(length, 1024))}
	}
	both := func(c Copy) [2]Copy { return [2]Copy{c, c} }
	inWindow := func(off uint64) [2]Copy {
		return [2]Copy{{Flags: SetRETH, VA: 2<<32 + off, RKey: 71}, {Flags: SetRETH, VA: 3<<32 + off, RKey: 72}}
	}
	for name, c := range map[string]struct {
		window, key, targets bool
		p                    Packet
		want                 [2]Copy // the copies for B and C; Frame, Leg and PSN are left out
	}{
		"a SEND":                            {true, true, true, Packet{Op: rocev2.SendOnly}, [2]Copy{}},
		"a WRITE":                           {true, true, true, write(rocev2.WriteOnly, 0x1010, 7, 8), inWindow(0x10)},
		"a WRITE without a target key":      {true, false, false, write(rocev2.WriteOnly, 0x13f8, 7, 8), inWindow(0x3f8)},
		"a WRITE without a window":          {false, false, false, write(rocev2.WriteOnly, 0x5555, 7, 8), [2]Copy{}},
		"a WRITE of no bytes":               {true, false, false, write(rocev2.WriteOnly, 0x5555, 5, 0), [2]Copy{}},
		"a WRITE of no bytes, target key":   {true, true, false, write(rocev2.WriteOnly, 0x5555, 99, 0), [2]Copy{}},
		"no bytes, the address of targets":  {true, true, false, write(rocev2.WriteOnly, targetMessageVA, 99, 0), [2]Copy{}},
		"a SEND with invalidate":            {true, true, true, Packet{Op: rocev2.SendOnlyInv, RKey: 7}, [2]Copy{{Flags: SetIETH, RKey: 71}, {Flags: SetIETH, RKey: 72}}},
		"invalidate without a window":       {false, true, true, Packet{Op: rocev2.SendOnlyInv, RKey: 7}, [2]Copy{}},
		"a targeted WRITE":                  {true, true, true, write(rocev2.WriteOnly, 0x20, 99, 8), [2]Copy{{Flags: SetRETH, VA: 0xb020, RKey: 51}, {Flags: SetRETH, VA: 0xc020, RKey: 52}}},
		"a targeted WRITE without a window": {false, true, true, write(rocev2.WriteOnly, 0x20, 99, 8), [2]Copy{{Flags: SetRETH, VA: 0xb020, RKey: 51}, {Flags: SetRETH, VA: 0xc020, RKey: 52}}},
		"a target message":                  {true, true, false, targetsOf(0xb000, 0xc000), both(Copy{Flags: EmptyWrite})},
		"the last byte of the window":       {true, true, true, write(rocev2.WriteOnly, 0x13ff, 7, 1), inWindow(0x3ff)},
	} {
		in, _ := rewriting(t, c.window, c.key)
		if c.targets {
			if out := in(targetsOf(0xb000, 0xc000)); out.Drop != None {
				t.Fatalf("%s: the targets are dropped as %v", name, out.Drop)
			}
		}
		c.p.Frame = 5
		out := in(c.p)
		if len(out.Copies) != 3 || out.Drop != None {
			t.Errorf("%s: %+v, %v", name, out.Copies, out.Drop)
			continue
		}
		psn := out.Copies[0].PSN
		want := []Copy{c.want[0], c.want[1], {}}
		for i := range want {
			want[i].Leg, want[i].Frame, want[i].PSN = LegID(i+1), 5, psn
		}
		if !slices.Equal(out.Copies, want) {
			t.Errorf("%s: %+v, want %+v", name, out.Copies, want)
		}
	}
}

// TestR41_WhatIsRefused: a malformed target message, and a targeted WRITE that some member
// has no memory for, are answered by a fatal NAK and forwarded to nobody.
func TestR41_WhatIsRefused(t *testing.T) {
	const top = ^uint64(0)
	targeted := func(va uint64, length uint32) Packet {
		return Packet{Op: rocev2.WriteOnly, VA: va, RKey: 99, DMALen: length, Payload: uint16(length)}
	}
	malformed := targetsOf(0, 0)
	malformed.Targets = nil
	first := targetsOf(0, 0)
	first.Op, first.Payload, first.DMALen = rocev2.WriteFirst, 1024, 2048
	immediate := targetsOf(0, 0)
	immediate.Op = rocev2.WriteOnlyImm
	half := targetsOf(0, 0)
	half.Targets = half.Targets[:1]
	for name, c := range map[string]struct {
		targets *Packet
		p       Packet
		want    Reason
		nak     rocev2.Syndrome
	}{
		"no records":                  {nil, malformed, BadTargetMessage, rocev2.SyndromeNAKInvalid},
		"of several packets":          {nil, first, BadTargetMessage, rocev2.SyndromeNAKInvalid},
		"with immediate data":         {nil, immediate, BadTargetMessage, rocev2.SyndromeNAKInvalid},
		"no target yet":               {nil, targeted(0, 8), WindowViolation, rocev2.SyndromeNAKAccess},
		"one has no target":           {&half, targeted(0, 8), WindowViolation, rocev2.SyndromeNAKAccess},
		"the offset wraps":            {new(Packet), targeted(top-4, 8), WindowViolation, rocev2.SyndromeNAKAccess},
		"the offset ends at the top":  {new(Packet), targeted(top-7, 8), WindowViolation, rocev2.SyndromeNAKAccess},
		"the first one's memory ends": {new(Packet), targeted(0, 41), WindowViolation, rocev2.SyndromeNAKAccess},
		"the first one's memory fits": {new(Packet), targeted(0, 40), None, 0},
		"the last byte":               {new(Packet), targeted(39, 1), None, 0},
	} {
		in, acked := rewriting(t, true, true)
		before := Packet{Op: rocev2.SendOnly}
		if c.targets != nil {
			if before = *c.targets; len(before.Targets) == 0 {
				before = targetsOf(top-40, 0x1000)
			}
		}
		if out := in(before); out.Drop != None {
			t.Fatalf("%s: the packet before it is dropped as %v", name, out.Drop)
		}
		if out := in(c.p); out.Drop != c.want || (len(out.Copies) == 0) != (c.want != None) {
			t.Errorf("%s: %v, copies %+v", name, out.Drop, out.Copies)
		}
		feedback := acked(0).Feedback
		if c.nak == 0 {
			if len(feedback) != 1 || feedback[0].Syndrome != rocev2.SyndromeACK {
				t.Errorf("%s: %+v, want an ACK alone", name, feedback)
			}
		} else if len(feedback) != 2 || feedback[1].Syndrome != c.nak || feedback[1].PSN != 1 {
			t.Errorf("%s: %+v, want syndrome %#x", name, feedback, c.nak)
		}
	}
}

// TestR41_AnyNumberOfTargetMessages: what limits target messages is the number of those in
// flight.
func TestR41_AnyNumberOfTargetMessages(t *testing.T) {
	in, acked := rewriting(t, false, true)
	for psn := range rocev2.PSN(3 * maxTargetMessages) {
		if out := in(targetsOf(uint64(psn)<<16, 0)); out.Drop != None {
			t.Fatalf("message %d: %v", psn, out.Drop)
		}
		if psn%maxTargetMessages == maxTargetMessages-1 {
			if out := in(targetsOf(0, 0)); out.Drop != TargetMessagesFull {
				t.Errorf("message %d in flight: %v", maxTargetMessages+1, out.Drop)
			}
			acked(psn)
		}
	}
	out := in(Packet{Op: rocev2.WriteOnly, VA: 8, RKey: 99, DMALen: 8, Payload: 8})
	if want := uint64(3*maxTargetMessages-1)<<16 + 8; out.Copies[0].VA != want {
		t.Errorf("the WRITE goes to %x, want %x", out.Copies[0].VA, want)
	}
}

// TestIsTargetMessage: the driver reads the records of target messages, and of nothing
// else.
func TestIsTargetMessage(t *testing.T) {
	s, out := New(Limits{}), &Output{}
	spec := GroupSpec{IP: groupIP, GroupParams: GroupParams{QPN: groupQPN, PathMTU: 1024}, TargetKey: 99, Legs: []LegSpec{{}, {}}}
	for i, name := range []string{"A", "B"} {
		spec.Members = append(spec.Members, MemberSpec{MemberRecord: MemberRecord{IP: ipOf(name), QPN: 0x11}, Leg: LegID(i)})
	}
	if err := s.Apply(0, PutGroup{spec}, out); err != nil {
		t.Fatal(err)
	}
	plain := spec
	plain.ID, plain.IP, plain.TargetKey = 1, ipOf("Z"), 0
	if err := s.Apply(0, PutGroup{plain}, out); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		group  GroupID
		change func(p *Packet)
		want   bool
	}{
		"itself":             {0, func(*Packet) {}, true},
		"another address":    {0, func(p *Packet) { p.VA-- }, false},
		"another key":        {0, func(p *Packet) { p.RKey++ }, false},
		"no bytes":           {0, func(p *Packet) { p.DMALen = 0 }, false},
		"a SEND":             {0, func(p *Packet) { p.Op = rocev2.SendOnly }, false},
		"a malformed one":    {0, func(p *Packet) { p.Op = rocev2.WriteFirst }, true},
		"a group without it": {1, func(*Packet) {}, false},
		"no group":           {2, func(*Packet) {}, false},
		"never a group":      {5000, func(*Packet) {}, false},
	} {
		p := targetsOf(0, 0)
		if c.change(&p); s.Group(c.group).IsTargetMessage(&p) != c.want {
			t.Errorf("%s: %v", name, !c.want)
		}
	}
}

// TestDefaultLimits: fields that are not above 0 take the defaults.
func TestDefaultLimits(t *testing.T) {
	standard := Limits{1024, 1024, 64 << 20}
	for _, c := range []struct{ set, want Limits }{
		{Limits{}, standard}, {Limits{-1, -1, -1}, standard}, {Limits{1, 1, 1}, Limits{1, 1, 1}}, {Limits{3, 0, 5}, Limits{3, 1024, 5}},
	} {
		s := New(c.set)
		if got := (Limits{s.limits.Groups, s.limits.Members, s.repair.limit}); got != c.want {
			t.Errorf("%+v is %+v, want %+v", c.set, got, c.want)
		}
	}
}

// TestOutputIsEmptiedFirst: nothing of an earlier call is left in an Output.
func TestOutputIsEmptiedFirst(t *testing.T) {
	s := New(Limits{})
	for name, call := range map[string]func(o *Output){
		"Input":   func(o *Output) { s.Input(0, &Packet{Group: groupIP}, o) },
		"Advance": func(o *Output) { s.Advance(0, o) },
	} {
		o := &Output{
			Copies: make([]Copy, 1), Feedback: make([]Feedback, 1), Events: make([]Event, 1), Probes: make([]Probe, 1), Freed: make([]Handle, 1),
			Drop: NotMember, NeedVerify: true, Retained: true, resends: 3, MaxResends: 7,
		}
		call(o)
		if len(o.Copies)+len(o.Feedback)+len(o.Events)+len(o.Probes)+len(o.Freed) > 0 || o.NeedVerify || o.Retained || o.resends != 0 || o.MaxResends != 7 {
			t.Errorf("%s: %+v", name, *o)
		}
		if want := map[string]Reason{"Input": UnknownGroup}[name]; o.Drop != want {
			t.Errorf("%s: drop %v", name, o.Drop)
		}
	}
	if _, ok := s.Group(0).Member(groupIP); ok {
		t.Error("a member of no group")
	}
}

// TestNobodyIsNoSource: a packet without a source address is not that of a group without
// a source.
func TestNobodyIsNoSource(t *testing.T) {
	s, spec, out := New(Limits{}), goodSpec(), &Output{}
	spec.ID = 0
	if err := s.Apply(0, PutGroup{spec}, out); err != nil {
		t.Fatal(err)
	}
	if s.InputGroup(0, 0, &Packet{Group: groupIP, DestQP: groupQPN, Op: rocev2.SendOnly, Verified: true}, out); out.Drop != NotMember {
		t.Errorf("drop %v", out.Drop)
	}
}
