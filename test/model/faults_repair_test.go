// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"testing"

	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// repairing is where the faults of local repair are tried. The frames that a
// switch keeps have the handles that World gives them: index, and a bit for
// AckReq.
func repairing() *Config {
	return &Config{
		Name: "repair-faults", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Repair: 3, Hosts: []Host{{Personality: rc.RXE}},
		Bounds: Bounds{Lose: 1},
	}
}

func oneLeg() *Config {
	c := repairing()
	c.OneLeg = true
	return c
}

// served says whether the switch answered a NAK from its store.
func (b *broken) served() bool {
	old := b.st.Counters.NAKsServed
	b.Group(0).Snapshot(&b.st)
	return b.st.Counters.NAKsServed > old
}

// copyOf returns a copy of the frame with that index for a leg. All hosts of
// these tests number from 0.
func copyOf(index int, l mcast.LegID, handle mcast.Handle) mcast.Copy {
	return mcast.Copy{Leg: l, Frame: handle, PSN: rocev2.PSN(index)}
}

// repairFaults are as faults, of switches that repair losses.
var repairFaults = []struct {
	name      string
	cfg       func() *Config
	invariant string
	endToEnd  string
	fault     broken
}{
	{"what is kept is acknowledged", repairing, "ACK 0 to A says", "FALSE COMPLETION",
		broken{after: func(b *broken, p *mcast.Packet, out *mcast.Output) {
			if out.Retained {
				b.answer(out, rocev2.SyndromeACK, p.PSN)
			}
		}}},
	{"NAKs are answered and sent on as well", repairing, "which no leg asks for", "",
		broken{after: func(b *broken, p *mcast.Packet, out *mcast.Output) {
			if isFeedback(p, rocev2.KindSequence) && b.served() {
				b.answer(out, rocev2.SyndromeNAKSequence, p.PSN)
			}
		}}},
	{"NAKs are answered and sent on as well, and it is only one leg's loss", oneLeg, "which no leg asks for", "FALSE COMPLETION",
		broken{after: func(b *broken, p *mcast.Packet, out *mcast.Output) {
			if isFeedback(p, rocev2.KindSequence) && b.served() {
				b.answer(out, rocev2.SyndromeNAKSequence, p.PSN)
			}
		}}},
	{"what is repaired comes in the wrong order", repairing, "whose turn is packet", "",
		broken{after: func(b *broken, p *mcast.Packet, out *mcast.Output) {
			if isFeedback(p, rocev2.KindSequence) && b.served() {
				slices.Reverse(out.Copies)
			}
		}}},
	{"new data goes to a recovering leg", func() *Config { c := repairing(); c.PortRoom = 1; return c }, "whose turn is packet|which was not sent packet", "",
		broken{after: func(b *broken, p *mcast.Packet, out *mcast.Output) {
			if out.Retained && p.PSN == b.st.Nxt {
				for i := range b.st.Members {
					if m := &b.st.Members[i]; m.Recovering && !slices.ContainsFunc(out.Copies, func(c mcast.Copy) bool { return c.Leg == m.Leg && c.PSN == p.PSN }) {
						out.Copies = slices.Insert(out.Copies, 0, copyOf(int(p.PSN), m.Leg, p.Frame))
					}
				}
			}
		}}},
	{"what is sent again goes to all", repairing, "as its source sent it again", "",
		broken{after: func(b *broken, p *mcast.Packet, out *mcast.Output) {
			if out.Retained && p.PSN.Less(b.st.Nxt) {
				out.Copies = out.Copies[:0]
				for l := range mcast.LegID(2) {
					out.Copies = append(out.Copies, copyOf(int(p.PSN), l+1, p.Frame))
				}
			}
		}}},
	{"repairs go to everybody", oneLeg, "gets packet 0 of A again", "gets packet 0 of A again",
		broken{after: func(b *broken, p *mcast.Packet, out *mcast.Output) {
			if isFeedback(p, rocev2.KindSequence) && b.served() {
				for _, c := range out.Copies {
					c.Leg = 3 - c.Leg
					out.Copies = append(out.Copies, c)
				}
			}
		}}},
	{"a frame is released twice", repairing, "lets go of frame", "lets go of frame",
		broken{after: func(_ *broken, _ *mcast.Packet, out *mcast.Output) { out.Freed = append(out.Freed, out.Freed...) }}},
	{"frames are never released", repairing, "frames are kept, the switch thinks of", "",
		broken{after: func(_ *broken, _ *mcast.Packet, out *mcast.Output) { out.Freed = out.Freed[:0] }}},
	{"frames are released at once", repairing, "frames are kept, the switch thinks of", "which is not kept",
		broken{after: func(_ *broken, p *mcast.Packet, out *mcast.Output) {
			if out.Retained {
				out.Freed = append(out.Freed, p.Frame)
			}
		}}},
	{"kept frames belong to nobody", repairing, "the switch thinks of 2048 bytes", "which is not kept",
		broken{after: func(_ *broken, _ *mcast.Packet, out *mcast.Output) { out.Retained = false }}},
	{"a repair is a copy of the packet that asks for it", repairing, "which is not kept", "which is not kept",
		broken{after: func(b *broken, p *mcast.Packet, out *mcast.Output) {
			if isFeedback(p, rocev2.KindSequence) && b.served() {
				for i := range out.Copies {
					out.Copies[i].Frame = p.Frame | 1<<20
				}
			}
		}}},
	{"the budget is not kept to", func() *Config { c := repairing(); c.Repair = 1; return c }, "frames are kept, of at most 1", "",
		broken{before: func(b *broken, _ *mcast.Packet) bool {
			if !b.st.HasSource {
				b.spec.Repair.Bytes = 4 * frameBytes
				var out mcast.Output
				if err := b.Apply(0, mcast.PutGroup{Spec: b.spec}, &out); err != nil {
					panic(err)
				}
			}
			return true
		}}},
	{"questions ask for nothing", func() *Config {
		c := oneLeg()
		c.Hosts = []Host{{Personality: rc.Strict}}
		c.Messages = []int{3}
		return c
	}, "A sends", "",
		broken{timer: func(_ *broken, out *mcast.Output) {
			out.Copies = out.Copies[:min(1, len(out.Copies))] // of a second one the last packet asks by itself
			for i := range out.Copies {
				out.Copies[i].Flags &^= mcast.SetAckReq
			}
		}}},
	{"there are no questions", oneLeg, "A sends", "",
		broken{timer: func(_ *broken, out *mcast.Output) { out.Copies = out.Copies[:0] }}},
	{"RNR is not waited for", func() *Config { c := repairing(); c.Withheld = 1; return c }, "whose receiver is not ready before", "",
		broken{after: func(b *broken, p *mcast.Packet, out *mcast.Output) {
			if isFeedback(p, rocev2.KindRNR) && b.served() && p.PSN == 1 {
				out.Copies = append(out.Copies, copyOf(1, 1, 1))
			}
		}}},
	{"RNR goes to the source at once", func() *Config { c := repairing(); c.Withheld = 1; return c }, "which no leg asks for|NAK 1 to A says", "",
		broken{after: func(b *broken, p *mcast.Packet, out *mcast.Output) {
			if isFeedback(p, rocev2.KindRNR) && b.served() {
				b.answer(out, p.Syndrome, p.PSN)
			}
		}}},
	{"repairs are numbered as the source does", func() *Config {
		c := repairing()
		c.Hosts = []Host{{RQ: 7}}
		return c
	}, "is numbered 0, not 7", "",
		broken{after: func(_ *broken, p *mcast.Packet, out *mcast.Output) {
			if p.Op == rocev2.Acknowledge {
				for i := range out.Copies {
					out.Copies[i].PSN -= 7
				}
			}
		}}},
	{"repaired WRITEs go where the source's window is", func() *Config { c := repairing(); c.Write = true; return c }, "error state|completion|may fail", "error state|completion|may fail",
		broken{after: func(_ *broken, p *mcast.Packet, out *mcast.Output) {
			if p.Op == rocev2.Acknowledge {
				for i := range out.Copies {
					if c := &out.Copies[i]; c.Flags&mcast.SetRETH != 0 {
						c.VA, c.RKey = groupVA, groupKey
					}
				}
			}
		}}},
}

// TestRepairFaultsAreFound is TestFaultsAreFound for switches that repair losses.
func TestRepairFaultsAreFound(t *testing.T) {
	for _, f := range repairFaults {
		findBoth(t, f.name, f.cfg, f.invariant, f.endToEnd, &f.fault)
	}
}
