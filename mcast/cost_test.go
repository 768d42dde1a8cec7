// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// costGroup is a group with the source A and the receivers B, C and D, whose packets are numbered alike.
type costGroup struct {
	t   *testing.T
	s   *Switch
	out Output
	now time.Duration
}

func newCostGroup(t *testing.T, change func(*GroupSpec)) *costGroup {
	t.Helper()
	x := &costGroup{t: t, s: New(Limits{}), now: time.Second}
	spec := goodSpec()
	spec.ID, spec.Policy, spec.Quorum, spec.Window, spec.Legs, spec.Members = 0, Evict, 0, Window{}, nil, nil
	spec.Repair = RepairSpec{Bytes: 1 << 20, Timeout: 4 * time.Millisecond, Tries: 4}
	for i, name := range []string{"A", "B", "C", "D"} {
		spec.Legs = append(spec.Legs, LegSpec{})
		spec.Members = append(spec.Members, MemberSpec{MemberRecord: MemberRecord{IP: ipOf(name), QPN: rocev2.QPN(0x11 + i)}, Leg: LegID(i)})
	}
	if change != nil {
		change(&spec)
	}
	if err := x.s.Apply(0, PutGroup{spec}, &x.out); err != nil {
		t.Fatal(err)
	}
	return x
}

func (x *costGroup) in(p Packet) {
	x.t.Helper()
	p.Group, p.DestQP, p.Verified, p.RetainBytes = groupIP, goodSpec().QPN, true, 1000
	x.s.Input(x.now, &p, &x.out)
}

func (x *costGroup) send(psn rocev2.PSN) {
	x.in(Packet{Src: ipOf("A"), Op: rocev2.SendOnly, PSN: psn, AckReq: true, Payload: 10, Frame: Handle(psn)})
}

// say has members answer with a syndrome.
func (x *costGroup) say(from string, psn rocev2.PSN, syn rocev2.Syndrome) {
	for _, name := range from {
		x.in(Packet{Src: ipOf(string(name)), Op: rocev2.Acknowledge, PSN: psn, Syndrome: syn})
	}
}

func (x *costGroup) ack(from string, psn rocev2.PSN) { x.say(from, psn, rocev2.SyndromeACK) }

// pass lets time pass, with the timers.
func (x *costGroup) pass(d time.Duration) {
	end := x.now + d
	for {
		at, ok := x.s.NextDeadline()
		if !ok || at > end {
			break
		}
		x.now = max(x.now, at)
		x.s.Advance(x.now, &x.out)
	}
	x.now = end
}

func (x *costGroup) of(name string) Cost {
	m, ok := x.s.Group(0).Member(ipOf(name))
	if !ok {
		x.t.Fatalf("no member %s", name)
	}
	return x.s.Group(0).Costs(x.now, true, nil)[m]
}

// The time for which the ACK waits for one receiver, and no other, is that receiver's cost: not the
// time for which it waits for several, that in which others acknowledge more, or that without data.
func TestWaitsForOneReceiver(t *testing.T) {
	const ms = time.Millisecond
	x := newCostGroup(t, func(s *GroupSpec) { s.Repair = RepairSpec{} })
	x.send(0)
	x.pass(5 * ms) // for all
	x.ack("B", 0)
	x.pass(3 * ms) // for C and D
	x.ack("C", 0)
	x.pass(2 * ms) // for D
	x.send(1)
	x.ack("B", 1)
	x.pass(ms) // for D still
	if c := x.of("D"); c.Alone != 3*ms || c.Total() != 3*ms || c.Overdue {
		t.Errorf("while it is waited for: %+v", c)
	}
	x.ack("D", 0)
	x.pass(7 * ms) // for C and D
	x.ack("D", 1)
	x.pass(2 * ms) // for C
	x.ack("C", 1)
	x.pass(time.Hour)
	x.send(2)
	x.ack("BC", 2)
	x.pass(20 * ms) // for D
	if c := x.of("D"); c.Alone != 20*ms || !c.Overdue {
		t.Errorf("while it is overdue: %+v", c)
	}
	for name, want := range map[string]time.Duration{"A": 0, "B": 0, "C": 2 * ms, "D": 23 * ms} {
		if c := x.of(name); c.Total() != want || c.Waited[NoFault] != want || c.Receives != (name != "A") {
			t.Errorf("%s: %+v, want %v", name, c, want)
		}
	}
}

// A receiver that the others have left behind by two packets is waited for beyond the first one, too.
func TestWaitsForOneReceiverAgain(t *testing.T) {
	const ms = time.Millisecond
	x := newCostGroup(t, func(s *GroupSpec) { s.Repair = RepairSpec{} })
	x.send(0)
	x.send(1)
	x.ack("BC", 1)
	x.pass(2 * ms)
	x.ack("D", 0)
	x.pass(3 * ms)
	if c := x.of("D"); c.Alone != 3*ms || c.Total() != 5*ms {
		t.Errorf("%+v", c)
	}
}

// Where a quorum is enough, or there is one receiver, nobody is waited for beyond the others.
func TestWaitsForNobodyBeyondTheOthers(t *testing.T) {
	for name, change := range map[string]func(*GroupSpec){
		"quorum":       func(s *GroupSpec) { s.Policy, s.Quorum = Quorum, 2 },
		"one receiver": func(s *GroupSpec) { s.Legs, s.Members = s.Legs[:2], s.Members[:2] },
	} {
		x := newCostGroup(t, change)
		x.send(0)
		x.pass(time.Millisecond)
		x.ack("BC", 0)
		x.send(1)
		x.pass(time.Millisecond)
		x.ack("BC", 1)
		x.pass(time.Millisecond)
		for k, c := range x.s.Group(0).Costs(x.now, true, nil) {
			if c.Total() != 0 {
				t.Errorf("%s: member %d: %+v", name, k, c)
			}
		}
	}
}

// What a receiver is waited for is the fault that it has shown last, and ends with what was sent by
// then.
func TestWaitsHaveFaults(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name  string
		run   func(x *costGroup)
		fault Fault
		want  Cost
	}{
		{"a loss", func(x *costGroup) { x.say("D", 0, rocev2.SyndromeNAKSequence); x.pass(2 * ms) }, Lost, Cost{NAKs: 1, Repaired: 2}},
		{"an RNR NAK, and rdma_rxe's NAK behind it", func(x *costGroup) {
			x.say("D", 0, rocev2.SyndromeRNR|1)
			x.say("D", 0, rocev2.SyndromeNAKSequence)
			x.pass(2 * ms)
		}, NotReady, Cost{RNRNAKs: 1, Repaired: 2}},
		{"an RNR NAK behind a loss", func(x *costGroup) {
			x.say("D", 0, rocev2.SyndromeNAKSequence)
			x.say("D", 0, rocev2.SyndromeRNR|1)
			x.pass(2 * ms)
		}, NotReady, Cost{NAKs: 1, RNRNAKs: 1, Repaired: 4}},
		{"silence", func(x *costGroup) { x.pass(6 * ms) }, Probed, Cost{Probes: 1, Repaired: 1}},
		{"silence for long", func(x *costGroup) { x.pass(30 * ms) }, ProbedAgain, Cost{Probes: 2, Repaired: 3}},
		{"silence behind a loss", func(x *costGroup) { x.say("D", 0, rocev2.SyndromeNAKSequence); x.pass(6 * ms) }, Lost, Cost{NAKs: 1, Probes: 1, Repaired: 3}},
	} {
		x := newCostGroup(t, nil)
		x.send(0)
		x.send(1)
		x.ack("BC", 1)
		since := x.now
		c.run(x)
		waited := x.now - since
		x.ack("D", 1)
		got := x.of("D")
		if got.Waited[c.fault] != waited || got.Total() != waited {
			t.Errorf("%s: waited %v: %v", c.name, waited, got.Waited)
		}
		if got.NAKs != c.want.NAKs || got.RNRNAKs != c.want.RNRNAKs || got.Probes != c.want.Probes || got.Repaired != c.want.Repaired {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
		for _, name := range []string{"A", "B", "C"} {
			if o := x.of(name); o.NAKs+o.RNRNAKs+o.Probes+o.Repaired != 0 || o.Total() != 0 {
				t.Errorf("%s: %s has cost %+v", c.name, name, o)
			}
		}
		x.send(2)
		x.ack("BC", 2)
		x.pass(ms)
		x.ack("D", 2)
		if later := x.of("D"); later.Waited[NoFault] != ms {
			t.Errorf("%s: the fault lasts: %v", c.name, later.Waited)
		}
	}
}

// What a silent member is waited for beyond Standstill has a fault of its own, before and after it
// answers, and no part of the wait is ever taken from another fault.
func TestStandstillIsAFault(t *testing.T) {
	for _, c := range []struct {
		name  string
		show  func(x *costGroup)
		other Fault // the fault that the first second has, and all, if it explains a standstill
		all   bool
	}{
		{"silence", func(*costGroup) {}, ProbedAgain, false},
		{"a loss", func(x *costGroup) { x.say("D", 0, rocev2.SyndromeNAKSequence) }, Lost, true},
		{"RNR", func(x *costGroup) { x.say("D", 0, rocev2.SyndromeRNR|1) }, NotReady, true},
	} {
		x := newCostGroup(t, nil)
		x.send(0)
		x.ack("BC", 0)
		c.show(x)
		x.pass(Standstill)
		if got := x.of("D").Waited; got[c.other] != Standstill || got[StoodStill] != 0 {
			t.Errorf("%s, after a second: %v", c.name, got)
		}
		x.pass(2 * Standstill)
		var want [NumFaults]time.Duration
		if want[c.other] = 3 * Standstill; !c.all {
			want[c.other], want[StoodStill] = Standstill, 2*Standstill
		}
		if got := x.of("D").Waited; got != want {
			t.Errorf("%s, while it is silent: %v, want %v", c.name, got, want)
		}
		x.ack("D", 0)
		if got := x.of("D").Waited; got != want {
			t.Errorf("%s, after its answer: %v, want %v", c.name, got, want)
		}
	}
}

// A member that answers a probe twice had acknowledged by itself.
func TestLateAnswersAreCounted(t *testing.T) {
	x := newCostGroup(t, nil)
	x.send(0)
	x.ack("BC", 0)
	x.pass(5 * time.Millisecond)
	x.ack("D", 0)
	if c := x.of("D"); c.Probes != 1 || c.Spurious != 0 {
		t.Errorf("%+v", c)
	}
	x.ack("D", 0)
	x.ack("D", 0)
	x.ack("B", 0)
	if c := x.of("D"); c.Probes != 1 || c.Spurious != 1 {
		t.Errorf("%+v", c)
	}
	if c := x.of("B"); c.Spurious != 0 {
		t.Errorf("B was never asked: %+v", c)
	}
}

// A member in the place of one that has gone begins without costs.
func TestCostsAreOfOneMember(t *testing.T) {
	x := newCostGroup(t, nil)
	x.send(0)
	x.ack("BC", 0)
	x.say("D", 0, rocev2.SyndromeNAKSequence)
	x.pass(time.Millisecond)
	if err := x.s.Apply(x.now, RemoveMember{0, 3}, &x.out); err != nil {
		t.Fatal(err)
	}
	if err := x.s.Apply(x.now, AddMember{Member: MemberSpec{MemberRecord: MemberRecord{IP: ipOf("E"), QPN: 99}, Leg: 3}}, &x.out); err != nil {
		t.Fatal(err)
	}
	if c := x.of("E"); c.NAKs != 0 || c.Total() != 0 || c.Repaired != 0 {
		t.Errorf("%+v", c)
	}
}

// Quantiles of round trips are within a third, what was measured lately counts more, and the
// shortest and longest have ranges of their own.
func TestRoundTripHistogram(t *testing.T) {
	var r histogram
	if r.quantile(1, 2) != 0 {
		t.Error("nothing was measured")
	}
	for d := time.Duration(1); d < 1<<40; d = d*9/8 + 1 {
		r = histogram{}
		r.add(d)
		if got := r.quantile(1, 2); d > 1<<leastRoundTrip && d < 15*time.Second && (got < d*2/3 || got > d*4/3) {
			t.Errorf("%v is %v", d, got)
		}
	}
	r = histogram{}
	for range 98 {
		r.add(100 * time.Microsecond)
	}
	r.add(20 * time.Millisecond)
	r.add(20 * time.Millisecond)
	if a, b := r.quantile(1, 2), r.quantile(99, 100); a > 133*time.Microsecond || b < 15*time.Millisecond {
		t.Errorf("%v, %v", a, b)
	}
	for range 1 << 20 {
		r.add(time.Millisecond)
	}
	if a := r.quantile(0, 1); a < 900*time.Microsecond {
		t.Errorf("what was long ago counts still: %v", a)
	}
}
