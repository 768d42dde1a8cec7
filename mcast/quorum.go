// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// What is different where an ACK means that a quorum of the receivers has the
// data: a receiver may be behind A (R36, R37).

// flight is how many PSNs may be acknowledged beyond one that the source was asked
// for before it is clear that the source does not come back to it. What it had sent
// before it was asked is less.
const flight = 1024

// reached returns what the quorum has, and counts those that have no more.
func (g *group) reached() rocev2.PSN {
	n := 0
	for i := range g.branches {
		if b := &g.branches[i]; b.bits&(receiving|fresh) == receiving {
			g.sw.scratch[n] = b.a.Sub(g.a)
			n++
		}
	}
	s := g.sw.scratch[:n]
	slices.Sort(s)
	at := n - int(g.quorum)
	d := s[at]
	for at < n && s[at] == d {
		at++
	}
	g.low = int32(at) + g.nfresh
	return g.a.Add(d)
}

// npast returns how many receivers lack psn, which is acknowledged.
func (g *group) npast(psn rocev2.PSN) (n int) {
	for i := range g.branches {
		if b := &g.branches[i]; b.bits&receiving != 0 && b.a.Less(psn) {
			n++
		}
	}
	return n
}

// repeat serves what is acknowledged, but lacking at some receiver: the source
// repeats it, so that receiver gets it.
func (g *group) repeat(now time.Duration, p *Packet, psn rocev2.PSN, f rocev2.OpFlags, out *Output) Reason {
	if code, _ := g.refuse(p, f); code != 0 || g.dead {
		return g.duplicate(now, p, psn, out)
	}
	if !p.Verified {
		out.NeedVerify = true
		return None
	}
	g.duplicate(now, p, psn, out)
	g.forward(now, p, psn, f, out)
	return None
}

// strand gives up one receiver that asks for what the source will not send
// again, because it is acknowledged. It reports whether there was one.
func (g *group) strand(out *Output) bool {
	for i := range g.branches {
		b := &g.branches[i]
		if b.pend == noPend || b.bits&receiving == 0 || !b.a.Less(g.a) {
			continue
		}
		if b.pend != sevFatal && g.coming(b.a.Next()) {
			continue
		}
		if b.pend == sevSequence && g.crosses(i, b.a.Next()) {
			g.setPend(b, noPend, 0)
			continue
		}
		code := Stranded
		if b.pend == sevFatal {
			code = b.info
		}
		g.giveUp(i, code, out)
		return true
	}
	return false
}

// repeats notes that psn goes to a receiver again.
func (l *track) repeats(psn rocev2.PSN) {
	if !l.repeated || psn.Less(l.first) {
		l.first = psn
	}
	l.repeated, l.last = true, psn
}

// crosses says whether NAK(e) of receiver i, for what is acknowledged, may have met
// the packet that it asks for on its way: it is the first one since that packet went to
// the receiver again (R74).
func (g *group) crosses(i int, e rocev2.PSN) bool {
	l := &g.tracks[i]
	if !l.repeated || e.Less(l.first) || l.last.Less(e) || g.a.Less(e) {
		return false
	}
	l.repeated = false
	return true
}

// coming says whether the source, which has been told of a loss, is likely to
// pass e again: it was told at or before e and has not come back yet, or it has
// and is not yet past e.
func (g *group) coming(e rocev2.PSN) bool {
	return g.nsev != noPend && !g.seen && g.nout.LessEq(e) || g.hasPrev && g.prev.Less(e)
}

// giveUp removes receiver i if it can be spared. If not, and it is what A waits
// for, the group fails.
func (g *group) giveUp(i int, why rocev2.Syndrome, out *Output) {
	switch {
	case g.spare(i):
		g.evict(i, why, out)
	case g.branches[i].a.LessEq(g.a):
		g.abort(g.legs[i].member, why, out)
	}
}

// leaveBehind removes the receivers that lack what their source, which leaves,
// has had acknowledged: nobody else could send it to them.
func (g *group) leaveBehind(out *Output) {
	for i := range g.branches {
		if b := &g.branches[i]; b.bits&receiving != 0 && b.a.Less(g.a) {
			g.evict(i, Stranded, out)
		}
	}
}

// shed removes the receivers that are more than lagPSNs behind best, which
// another one has (R38). It is asked when best is so far above least, which then
// becomes exact, so that the scans are rare.
func (g *group) shed(best rocev2.PSN, out *Output) {
	least := best
	for i := range g.branches {
		b := &g.branches[i]
		if b.bits&receiving == 0 {
			continue
		}
		if best.Sub(b.a) > g.lagPSNs && g.spare(i) {
			g.evict(i, Lagging, out)
		} else if b.a.Less(least) {
			least = b.a
		}
	}
	g.least = least
}
