// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/rocev2"

// countersBefore are a group's counters before a call.
type countersBefore struct {
	g        *group
	counters Counters
	holds    bool   // packets are held (R96), which a deadline serves
	fast     uint64 // copies of the fast path

	acksIn, acksOut uint64 // ACKs that the fast path has counted, and has sent
	covered         uint64 // packets that were told of at once
}

func (c *countersBefore) fastCopies() uint64 {
	if c.g.repair.path == notOffered {
		return 0
	}
	return c.g.extra.offload.copies
}

func (c *countersBefore) open(g *group) {
	if c.g = g; g != nil {
		c.counters, c.holds, c.fast, c.acksIn, c.acksOut, c.covered = g.counters.counters(), g.is(holding), c.fastCopies(), 0, 0, 0
	}
}

// close checks that the counters have grown by what the call did. p is the packet of the
// call, or nil.
func (c *countersBefore) close(t fatalReporter, g *group, p *Packet, out *Output) {
	if g == nil || g != c.g {
		return // put anew, or of another call
	}
	b, a := c.counters, g.counters.counters()
	released := p == nil && c.holds
	again := 0 // copies of frames that were retained before
	for _, x := range out.Copies {
		if !released && (p == nil || x.Frame != p.Frame) {
			again++
		}
	}
	for r := range NumReasons {
		want := uint64(0)
		if r == out.Drop && r != None && r != UnknownGroup && !out.NeedVerify {
			want = 1
		}
		if a.Drops[r]-b.Drops[r] != want && !released {
			t.Fatalf("%d more are dropped as %v, want %d", a.Drops[r]-b.Drops[r], r, want)
		}
	}
	if resent := a.Resent - b.Resent; a.Copies-b.Copies != uint64(len(out.Copies))+c.fastCopies()-c.fast || resent < uint64(again) || resent > uint64(len(out.Copies)) || a.FeedbackOut-b.FeedbackOut != uint64(len(out.Feedback))+c.acksOut {
		t.Fatalf("%d copies, %d of them again, and %d of feedback: counted %d, %d, %d",
			len(out.Copies), again, len(out.Feedback), a.Copies-b.Copies, resent, a.FeedbackOut-b.FeedbackOut)
	}
	data, feedback := a.DataIn-b.DataIn, a.FeedbackIn-b.FeedbackIn
	if p == nil || out.NeedVerify || out.NeedRevoke {
		if data != c.covered || feedback != c.acksIn {
			t.Fatalf("%d of data and %d of feedback without a packet", data, feedback)
		}
		return
	}
	isData := p.Op.Is(rocev2.OpRequest)
	lost := uint64(0)
	if isData && out.Drop == None && g.repair.store != nil && g.recv.count > 0 && !out.Retained && g.agg.acked.Less(p.PSN) {
		lost = 1
	}
	if n := a.NotRetained - b.NotRetained; n != lost {
		t.Fatalf("%d frames count as not retained, want %d", n, lost)
	}
	if isData && feedback > 0 || !isData && data > 0 || data > 1 || feedback > 1 {
		t.Fatalf("opcode %#x counts %d times as data, %d times as feedback", uint8(p.Op), data, feedback)
	}
	served := out.Drop == None || out.Drop == DuplicateData || out.Drop == TurnOver || out.Drop == CNPFiltered ||
		out.Drop == AwaitsVerification && p.PSN&rocev2.PSNMask == g.fwd.nxt && !g.is(asking)
	if served && data+feedback != 1 {
		t.Fatalf("opcode %#x, PSN %06x, dropped as %v: counted %d times", uint8(p.Op), uint32(p.PSN), out.Drop, data+feedback)
	}
}
