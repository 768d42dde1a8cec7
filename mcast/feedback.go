// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// branchOf finds whose feedback p is: the neighbour's at a forwarded leg, else
// the member's with p's source address. Never the port's: several members may
// be behind one (R21). A neighbour's feedback is in the numbering of the source
// that it is for, so it has to be for the current one: a late ACK of the last
// epoch would acknowledge what nobody has. (A member's is in its own numbering,
// which no epoch shares with another.)
func (g *group) branchOf(p *Packet) (int, Reason) {
	i := nobody
	if p.Neighbor != 0 {
		for _, l := range g.forwards() {
			if g.legs[l].neighbor == p.Neighbor {
				i = int(l)
				break
			}
		}
	} else if m, ok := g.memberAt(p.Src); ok {
		l := g.members[m].leg
		if g.members[m].live && g.legs[l].connected() {
			i = int(l)
		}
	}
	switch {
	case i == nobody:
		return 0, NotMember
	case int32(i) == g.srcLeg:
		return 0, FromSource
	case g.src == nobody:
		return 0, NoSource
	case p.Neighbor != 0 && keyOf(p.Src) != g.srcKey:
		return 0, FeedbackStale // in an earlier source's numbering, which may look like this one's (R18)
	case g.branches[i].bits&receiving != 0:
		return i, None
	case g.legs[i].joining:
		return 0, FeedbackAhead
	}
	return 0, NotMember
}

// feedback serves an acknowledgement: FEEDBACK of RC.md §6.2.
func (g *group) feedback(now time.Duration, p *Packet, out *Output) Reason {
	kind := p.Syndrome.Kind()
	if kind == rocev2.KindReserved {
		return ReservedSyndrome
	}
	if i, ok := g.unverifiedLeg(p); ok {
		return g.probeAnswer(now, p, i, kind, out)
	}
	i, r := g.branchOf(p)
	if r != None {
		return r
	}
	if g.dead {
		return GroupDead
	}
	if !p.Verified {
		out.NeedVerify = true
		return None
	}
	g.count.FeedbackIn++
	b := &g.branches[i]
	psn := (p.PSN - rocev2.PSN(b.delta)) & rocev2.PSNMask
	if g.stale(p, i, acknowledged(kind, psn)) {
		if g.deadAfter > 0 {
			g.tracks[i].heard = now // it is alive
		}
		return FeedbackStale
	}
	if g.hi.LessEq(acknowledged(kind, psn)) || g.unread(p, i, psn) {
		if p.Neighbor == 0 {
			g.misnumbered(p, i, out)
		}
		return FeedbackAhead
	}
	if g.hi == psn {
		return FeedbackAhead // a NAK for what nobody has sent
	}
	if psn.Sub(g.a) < -pastWindow {
		return OutOfWindow
	}
	g.catchUp(i)
	if g.deadAfter > 0 {
		g.tracks[i].heard = now
	}
	if p.BECN {
		g.congested(now, i)
	}
	if kind == rocev2.KindACK {
		if !g.acked(now, i, psn, out) {
			return FeedbackStale
		}
	} else if !g.negative(now, i, kind, p.Syndrome, psn, out) {
		return FeedbackStale
	}
	if m := &g.tracks[i].mend; g.store != nil && m.owed < now {
		m.owed = now // what is stale does not count: it may be all that gets through
	}
	if g.lagPSNs > 0 && b.a.Sub(g.least) > g.lagPSNs {
		g.shed(b.a, out)
	}
	// A can move only when the last of the lowest branches has, and a NAK can
	// be due only at A+1 (below it, under Quorum: then its branch is stranded).
	if g.low <= g.slack || b.pend != noPend && b.a.LessEq(g.a) {
		g.eval(out)
	}
	g.resend(now, out)
	return None
}

// acked notes that branch i has everything up to psn, if that is news.
func (g *group) acked(now time.Duration, i int, psn rocev2.PSN, out *Output) bool {
	b := &g.branches[i]
	had := b.a
	if !g.advance(b, psn) {
		return false
	}
	if g.store != nil || g.deadMost > 0 {
		g.measure(now, i, had)
	}
	if g.store != nil {
		g.progressed(now, i)
		if g.quorum > 0 && b.a == g.hi.Prev() {
			g.release(out)
		}
	}
	return true
}

// negative notes NAK(e) of branch i, and reports whether it was news.
func (g *group) negative(now time.Duration, i int, kind rocev2.AckKind, syn rocev2.Syndrome, e rocev2.PSN, out *Output) bool {
	b := &g.branches[i]
	if e.LessEq(b.a) {
		return false // older than what the branch has acknowledged (R06)
	}
	moved := g.acked(now, i, e.Prev(), out)
	sev := severityOf(kind)
	if g.mend(now, i, sev, syn, e) {
		return true
	}
	if sev == sevSequence && g.crosses(i, e) {
		return moved
	}
	if sev <= b.pend {
		// Known. rdma_rxe follows an RNR NAK with a sequence NAK of the same
		// PSN: the first one says what is wrong (RC.md §3.5).
		return moved
	}
	g.setPend(b, sev, syn)
	return true
}

func severityOf(k rocev2.AckKind) severity {
	switch k {
	case rocev2.KindSequence:
		return sevSequence
	case rocev2.KindRNR:
		return sevRNR
	}
	return sevFatal
}

// acknowledged returns the last PSN that an acknowledgement of psn says is there: a
// NAK acknowledges what is before it.
func acknowledged(kind rocev2.AckKind, psn rocev2.PSN) rocev2.PSN {
	if kind == rocev2.KindACK {
		return psn
	}
	return psn.Prev()
}
