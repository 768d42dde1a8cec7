// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// broken is a switch with a fault: before changes a packet, or answers false
// to drop it; after changes what the switch did about it. The faults keep no
// state of their own.
type broken struct {
	*mcast.Switch
	spec   mcast.GroupSpec
	before func(b *broken, p *mcast.Packet) bool
	after  func(b *broken, p *mcast.Packet, out *mcast.Output)
	// timer changes what the switch did when a deadline had come.
	timer func(b *broken, out *mcast.Output)
	// unsent is in the place of Unsent, if not nil, and adapt changes the group.
	unsent func(b *broken, c *mcast.Copy, until time.Duration) bool
	adapt  func(*mcast.GroupSpec)
	// early has members removed so much earlier.
	early time.Duration
	st    mcast.GroupStatus // the state before the packet, or the deadline
	now   time.Duration
}

func (b *broken) Requeue(c *mcast.Copy, until time.Duration) bool {
	if b.unsent != nil {
		return b.unsent(b, c, until)
	}
	return b.Switch.Requeue(c, until)
}

func (b *broken) Apply(now time.Duration, op mcast.Op, out *mcast.Output) error {
	if u, ok := op.(mcast.UpdateMembers); ok && len(u.Remove) > 0 {
		now -= b.early
	}
	return b.Switch.Apply(now, op, out)
}

func (b *broken) Advance(now time.Duration, out *mcast.Output) {
	b.now = now
	b.Group(0).Snapshot(&b.st)
	b.Switch.Advance(now, out)
	if b.timer != nil {
		b.timer(b, out)
	}
}

func (b *broken) Input(now time.Duration, p *mcast.Packet, out *mcast.Output) {
	b.now = now
	b.Group(0).Snapshot(&b.st)
	q := *p
	if b.before != nil && !b.before(b, &q) {
		*out = mcast.Output{Copies: out.Copies[:0], Feedback: out.Feedback[:0], Events: out.Events[:0]}
		return
	}
	b.Switch.Input(now, &q, out)
	if b.after != nil && !out.NeedVerify {
		b.after(b, p, out)
	}
}

// answer adds feedback to the current source.
func (b *broken) answer(out *mcast.Output, syn rocev2.Syndrome, psn rocev2.PSN) {
	b.Group(0).Snapshot(&b.st)
	if b.st.HasSource {
		out.Feedback = append(out.Feedback, mcast.Feedback{To: b.st.Source, Op: rocev2.Acknowledge, PSN: psn, Syndrome: syn})
	}
}

// isFeedback says whether p is an acknowledgement of that kind. All hosts of
// these tests number from 0 and one is the source, so its PSN is the source's.
func isFeedback(p *mcast.Packet, kind rocev2.AckKind) bool {
	return p.Op == rocev2.Acknowledge && p.Syndrome.Kind() == kind
}

// faults are wrong switches and what the model has to say about them: a check
// within the switch, and what the hosts see of it when nobody looks there.
// Alternatives are separated by |; "" is that nothing need be seen.
var faults = []struct {
	name      string
	invariant string
	endToEnd  string
	before    func(b *broken, p *mcast.Packet) bool
	after     func(b *broken, p *mcast.Packet, out *mcast.Output)
}{
	{name: "a NAK is forwarded at once", invariant: "NAK 1 to A says", endToEnd: "FALSE COMPLETION",
		after: func(b *broken, p *mcast.Packet, out *mcast.Output) {
			if isFeedback(p, rocev2.KindSequence) && out.Drop == mcast.None && b.st.Acked.Next() != p.PSN {
				b.answer(out, rocev2.SyndromeNAKSequence, p.PSN)
			}
		}},
	{name: "the first ACK is sent on", invariant: "ACK 0 to A says", endToEnd: "FALSE COMPLETION",
		after: func(b *broken, p *mcast.Packet, out *mcast.Output) {
			if isFeedback(p, rocev2.KindACK) && out.Drop == mcast.None && len(out.Feedback) == 0 {
				b.answer(out, rocev2.SyndromeACK, p.PSN)
			}
		}},
	{name: "the base is learnt from the first packet", invariant: "I1", endToEnd: "accepts packet 1 of A, the next is 0",
		before: func(b *broken, p *mcast.Packet) bool {
			if !b.st.HasSource && p.Op != rocev2.Acknowledge {
				spec := b.spec
				spec.Members = slices.Clone(spec.Members)
				spec.Members[0].SQPSN = p.PSN
				var out mcast.Output
				if err := b.Apply(0, mcast.PutGroup{Spec: spec}, &out); err != nil {
					panic(err)
				}
			}
			return true
		}},
	{name: "a NAK that has to wait is forgotten", invariant: "I5",
		before: func(b *broken, p *mcast.Packet) bool {
			if isFeedback(p, rocev2.KindSequence) && b.st.Acked.Next() != p.PSN {
				p.Syndrome, p.PSN = rocev2.SyndromeACK, p.PSN.Prev()
			}
			return true
		}},
	{name: "an ACK promises one packet more", invariant: "ACK 1 to A says", endToEnd: "FALSE COMPLETION|which it never sent",
		after: func(_ *broken, _ *mcast.Packet, out *mcast.Output) {
			for i := range out.Feedback {
				if f := &out.Feedback[i]; f.Syndrome == rocev2.SyndromeACK {
					f.PSN = f.PSN.Next()
				}
			}
		}},
	{name: "the MSN is wrong", invariant: "has MSN 7, complete are 0",
		after: func(_ *broken, _ *mcast.Packet, out *mcast.Output) {
			for i := range out.Feedback {
				out.Feedback[i].MSN += 7
			}
		}},
	{name: "duplicates are not answered", invariant: "LIVELOCK|RETRY_EXC_ERR", endToEnd: "LIVELOCK|RETRY_EXC_ERR",
		after: func(_ *broken, _ *mcast.Packet, out *mcast.Output) {
			if out.Drop == mcast.DuplicateData {
				out.Feedback = out.Feedback[:0]
			}
		}},
	{name: "retransmissions are not forwarded", invariant: "I5", endToEnd: "LIVELOCK|RETRY_EXC_ERR",
		after: func(b *broken, p *mcast.Packet, out *mcast.Output) {
			if b.st.HasSource && p.PSN.Less(b.st.Nxt) {
				out.Copies = out.Copies[:0]
			}
		}},
	{name: "a NAK goes twice", invariant: "I6",
		after: func(_ *broken, _ *mcast.Packet, out *mcast.Output) {
			for i := range out.Feedback {
				if f := out.Feedback[i]; f.Syndrome == rocev2.SyndromeNAKSequence {
					out.Feedback = append(out.Feedback, f)
				}
			}
		}},
	{name: "the last ACK is never sent", invariant: "LIVELOCK|RETRY_EXC_ERR", endToEnd: "LIVELOCK|RETRY_EXC_ERR",
		after: func(_ *broken, _ *mcast.Packet, out *mcast.Output) {
			out.Feedback = slices.DeleteFunc(out.Feedback, func(f mcast.Feedback) bool { return f.PSN == 2 })
		}},
	{name: "copies of one packet carry another's PSN", invariant: "is numbered 1, not 0", endToEnd: "accepts packet",
		after: func(_ *broken, p *mcast.Packet, out *mcast.Output) {
			for i := range out.Copies {
				if p.PSN == 1 {
					out.Copies[i].PSN = 0
				} else if p.PSN == 0 {
					out.Copies[i].PSN = 1
				}
			}
		}},
}

// plain is where the faults are tried.
func plain(p rc.Personality) *Config {
	return &Config{
		Name: "faults", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Hosts: []Host{{Personality: p}},
		Bounds: Bounds{Lose: 1},
	}
}

// longest is the most steps that a trace of these faults has. A QP gives up
// after eight timeouts, and a livelock has to come round.
const longest = 60

// TestFaultsAreFound: the checker is worth nothing if it cannot fail. Each wrong
// switch leads to a violation, by a short way, whether or not the model looks
// into the switch.
func TestFaultsAreFound(t *testing.T) {
	for _, f := range faults {
		for _, personality := range []rc.Personality{rc.RXE, rc.Strict} {
			if raceEnabled && personality == rc.Strict {
				continue // slow, and no more races to find
			}
			findBoth(t, fmt.Sprintf("%s/%v", f.name, personality), func() *Config { return plain(personality) }, f.invariant, f.endToEnd,
				&broken{before: f.before, after: f.after})
		}
	}
}

// findBoth finds a fault by the checks within the switches, and by those of the hosts
// alone. An empty text says that the fault does not show there.
func findBoth(t *testing.T, name string, cfg func() *Config, invariant, hosts string, fault *broken) {
	for i, what := range []string{invariant, hosts} {
		if endToEnd := i == 1; what != "" {
			t.Run(fmt.Sprintf("%s/endToEnd=%v", name, endToEnd), func(t *testing.T) { findFault(t, cfg(), what, endToEnd, fault) })
		}
	}
}

// findFault searches cfg with broken switches, for a violation that has one of
// the texts in what.
func findFault(t *testing.T, cfg *Config, what string, endToEnd bool, fault *broken) {
	t.Helper()
	wrap := func(s *mcast.Switch, spec mcast.GroupSpec) Device {
		b := *fault
		b.Switch, b.spec = s, spec
		if b.adapt != nil {
			var out mcast.Output
			b.adapt(&b.spec)
			if err := b.Apply(0, mcast.PutGroup{Spec: b.spec}, &out); err != nil {
				panic(err)
			}
		}
		return &b
	}
	r, err := Search(cfg, Options{WrapPSNs: wrap, EndToEnd: endToEnd})
	if err != nil {
		t.Fatal(err)
	}
	v := r.Violation
	if v == nil {
		t.Fatalf("nothing found in %d states", r.States)
	}
	t.Logf("%d states, %v", r.States, v)
	if !slices.ContainsFunc(strings.Split(what, "|"), func(s string) bool { return strings.Contains(v.What, s) }) {
		t.Errorf("found %q, expected %q", v.What, what)
	}
	if v.Steps > longest || len(v.Trace) != 1 || !strings.Contains(v.Trace[0], "\ndata psn=") {
		t.Errorf("the trace has %d steps: %v", v.Steps, v)
	}
}
