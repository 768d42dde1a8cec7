// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"github.com/gleam-rdma/gleam/rocev2"
)

// eval is EVAL of RC.md §6.2: acknowledge what has become everybody's, then
// report what is missing at the next PSN.
func (g *group) eval(out *Output) {
	for {
		for g.low <= g.slack && g.raise(out) {
		}
		if g.quorum > 0 && g.npend > 0 && g.strand(out) {
			if g.dead {
				return
			}
			continue
		}
		if g.npend == 0 && g.refused.code == 0 && !g.numbers.resume && !g.turn.over {
			return
		}
		worst, who, code := g.worst()
		switch {
		case worst == noPend:
			return
		case worst == sevFatal && who != nobody && g.spare(who):
			g.evict(who, code, out)
			continue
		}
		next := g.a.Next()
		if g.nsev != noPend && g.nout == next && !g.seen && worst <= g.nsev {
			return // the source has been told, and has not come back to it yet
		}
		g.nout, g.nsev, g.seen = next, worst, false
		g.nak(out, code, next)
		if worst == sevFatal {
			g.fatal(who, code, out)
		}
		return
	}
}

// raise sets A to the minimum over the receiving branches and says so to the
// source if it is news. With nobody to wait for, all that was forwarded counts.
// Under Quorum it is not the minimum but what enough of them have.
func (g *group) raise(out *Output) bool {
	var m rocev2.PSN
	if g.quorum > 0 {
		m = g.reached()
	} else {
		m = g.minimum()
	}
	if m.LessEq(g.a) {
		return false
	}
	g.past = saturate(g.past, m.Sub(g.a))
	g.a = m
	if g.nsev != noPend && m.Sub(g.nout) >= flight {
		g.nsev, g.seen = noPend, false // the source went on instead of coming back (R62)
	}
	g.msgs.ack(m)
	if g.targets != nil {
		g.targets.ack(m)
	}
	if g.store != nil {
		g.release(out)
	} else if g.timed.LessEq(m) {
		g.timing = false
	}
	g.ack(out)
	if g.nfresh > 0 && g.freshTo.LessEq(m) {
		g.settle()
	}
	return true
}

// minimum returns what every receiver has, and counts those that have no more.
func (g *group) minimum() rocev2.PSN {
	m := g.hi.Prev()
	first := true
	for i := range g.branches {
		b := &g.branches[i]
		if b.bits&receiving == 0 {
			continue
		}
		switch {
		case first || b.a.Less(m):
			m, g.low, first = b.a, 1, false
		case b.a == m:
			g.low++
		}
	}
	return m
}

// worst returns the highest severity pending at A+1, the leg it comes from
// (nobody: the switch itself) and the syndrome to send: of several RNR NAKs
// the one with the longest wait.
func (g *group) worst() (sev severity, who int, code rocev2.Syndrome) {
	who = nobody
	for i := range g.branches {
		b := &g.branches[i]
		if b.pend == noPend || b.bits&receiving == 0 || b.a != g.a {
			continue
		}
		if b.pend > sev || b.pend == sevRNR && sev == sevRNR && b.info.RNRCode().Duration() > code.RNRCode().Duration() {
			sev, who, code = b.pend, i, b.info
		}
	}
	if g.refused.code != 0 && g.refused.psn == g.a.Next() && sev < sevFatal {
		return sevFatal, nobody, g.refused.code
	}
	if sev == noPend && g.turn.over && g.hi == g.a.Next() {
		return sevRNR, nobody, turnSoon.RNR()
	}
	if sev == noPend && g.numbers.resume && g.hi == g.a.Next() {
		return sevSequence, nobody, rocev2.SyndromeNAKSequence // as a receiver of its first packet would
	}
	return sev, who, code
}

// fatal follows a fatal NAK to the source. One of a receiver's is the end of
// the group; one of the switch's own is the end of the source's queue pair
// only: nothing reached a receiver, and another member may send.
func (g *group) fatal(who int, code rocev2.Syndrome, out *Output) {
	if who == nobody {
		if !g.told {
			g.told = true
			g.event(out, SourceRefused, MemberID(g.src), g.nout, code)
		}
		return
	}
	g.fail(g.legs[who].member, g.nout, code, code, out)
}

// abort fails the group because of member m: the source gets a fatal NAK for the
// first PSN that is not acknowledged, so what came before completes. The NAK is
// the member's own, if it gave one.
func (g *group) abort(m MemberID, why rocev2.Syndrome, out *Output) {
	code := why
	if why.Kind() != rocev2.KindFatal {
		code = rocev2.SyndromeNAKOpErr
	}
	g.nout, g.nsev, g.seen = g.a.Next(), sevFatal, false
	if g.nout.Less(g.hi) || g.numbers.busy() {
		g.nak(out, code, g.nout)
	} // else the source has not sent it, and is answered when it does (R75)
	g.fail(m, g.nout, code, why, out)
}

func (g *group) fail(m MemberID, psn rocev2.PSN, code, why rocev2.Syndrome, out *Output) {
	g.dead, g.failPSN, g.failCode = true, psn, code
	g.armed = false
	g.forget(g.hi, out)
	g.tell(out, Event{Kind: GroupFailed, Group: g.id, Member: m, PSN: psn, Syndrome: code, Cause: why})
	if g.src != nobody { // a source that is registered with too high a PSN begins in the middle of a message
		g.tellMismatch(MemberID(g.src), SendPSN, out)
	}
}

// evict removes a leg whose receiver cannot go on.
func (g *group) evict(i int, why rocev2.Syndrome, out *Output) {
	a := g.branches[i].a
	if g.branches[i].bits&receiving == 0 {
		a = g.hi.Prev() // nothing was for it yet
	}
	for m := range g.members {
		if g.members[m].leg == LegID(i) && g.members[m].live {
			g.members[m].live = false
			g.event(out, MemberEvicted, MemberID(m), a, why)
		}
	}
	g.legs[i].members = 0
	g.cut(i)
	g.unneeded(out)
}

// saturate adds n PSNs to past, which says how far back a duplicate may be.
func saturate(past, n int32) int32 { return min(past+n, pastWindow) }
