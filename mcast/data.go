// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// pastWindow is how far behind A a PSN still means something: half of what a
// requester may have outstanding (RC.md §3.1). aheadWindow is how far ahead of A
// one does. A receiver may be pastWindow behind another one, and is less than half
// of the PSN space behind hi then: so far do circular comparisons go (R61).
const (
	pastWindow  = 1 << 22
	aheadWindow = pastWindow - 2
)

// quarantine is for how long nothing of a member is served, and nothing acknowledged
// to it, after a packet with a PSN below all that its registration has seen (R68). A
// requester that goes back begins with the lowest PSN that it has not had
// acknowledged, so a queue pair with lower numbers shows it each time.
const quarantine = 20 * time.Millisecond

// request serves a request packet of a member.
func (g *group) request(now time.Duration, p *Packet, f rocev2.OpFlags, out *Output) Reason {
	if g.src != nobody && keyOf(p.Src) == g.srcKey && p.Neighbor == g.srcNbr {
		return g.data(now, p, f, out)
	}
	return g.newSource(now, p, f, out)
}

// data serves a packet of the current source: DATA of RC.md §6.2.
//
// Only what leaves no lasting mark is done without a verified ICRC: a packet
// in order is forwarded (a corrupted one stays corrupted, and receivers drop
// it), and a duplicate is answered with ACK(A), which is true whoever asks.
func (g *group) data(now time.Duration, p *Packet, f rocev2.OpFlags, out *Output) Reason {
	psn := p.PSN & rocev2.PSNMask
	d := psn.Sub(g.a)
	if d <= -g.past || d > aheadWindow {
		if d <= 0 {
			if !p.Verified {
				out.NeedVerify = true
				return None
			}
			g.muted, g.quietTill = true, now+quarantine
		}
		g.differs(MemberID(g.src), SendPSN, psn, g.hi, out)
		return OutOfWindow
	}
	if g.muted {
		if now < g.quietTill {
			return OutOfWindow
		}
		g.muted = false
	}
	if d <= 0 {
		if g.quorum > 0 && g.npast(psn) > 0 {
			return g.repeat(now, p, psn, f, out)
		}
		return g.duplicate(now, p, psn, out)
	}
	code, why := g.refuse(p, f)
	starts := f&rocev2.OpStart != 0
	update := g.isUpdate(p)
	plain := psn == g.hi && code == 0 && !g.dead && g.refused.code == 0 && !update && g.turn.ends == 0 &&
		g.nrecv > 0 && g.slack >= 0 && (g.njoin == 0 || !starts) && !g.numbers.busy()
	if !p.Verified && (!plain || g.doubtful(now, psn)) {
		out.NeedVerify = true
		return None
	}
	if !plain {
		if g.yields(now, p, psn) {
			return g.endTurn(now, psn, out)
		}
		if r := g.special(now, psn, code, why, out); r != None {
			return r
		}
		if !psn.Less(g.hi) && g.waits(now, psn, starts, out) {
			return AwaitsMembers
		}
		if g.slack < 0 {
			return g.turnDown(now, psn, rocev2.SyndromeNAKOpErr, QuorumLost, out)
		}
		if update && !g.note(psn, p.Targets) {
			return UpdatesFull
		}
		if psn.Less(g.hi) {
			g.repeated(psn, out)
		}
	}
	g.count.DataIn++
	g.came(now, psn)
	if g.nsev != noPend && psn == g.nout {
		if !g.seen && g.deadAfter > 0 {
			g.rewatch(now)
		}
		g.seen = true
	}
	if psn != g.hi || starts {
		g.begins(p, psn, f)
	}
	g.forward(now, p, psn, f, out)
	g.pass(psn, f)
	if p.AckReq {
		if g.store != nil {
			g.asks(now, psn)
		} else if g.deadMost > 0 {
			g.clock(now, psn)
		}
	}
	if g.period > 0 && !g.armed {
		g.watchAll(now)
	}
	if g.nrecv == 0 {
		g.eval(out)
	}
	g.resend(now, out)
	return None
}

// certain is how long after the packet before it a packet in order is what it
// seems to be. A source that goes back without having been asked has been silent for
// its timeout, which no requester sets as short.
const certain = 100 * time.Microsecond

// doubtful says whether a packet that reads as the next one may be an earlier one
// with a damaged PSN: one of a source that goes back, or may be about to (R64).
func (g *group) doubtful(now time.Duration, psn rocev2.PSN) bool {
	return !g.hasPrev || g.prev != psn.Prev() || now-g.prevAt > certain || g.nsev != noPend && !g.seen
}

// came notes that the source has sent psn.
func (g *group) came(now time.Duration, psn rocev2.PSN) {
	g.prev, g.prevAt, g.hasPrev, g.awaited = psn, now, true, 0
}

// pass notes that psn went out to the receivers.
func (g *group) pass(psn rocev2.PSN, f rocev2.OpFlags) {
	ends := f&rocev2.OpEnd != 0
	if psn != g.hi {
		g.numbers.passes(psn, g.hi)
	}
	switch d := psn.Sub(g.hi); {
	case d >= 0:
		g.hi = psn.Next()
		g.open = !ends
		if ends {
			g.msgs.extend(psn)
		}
	default:
		g.rewound = true
		if d == -1 {
			g.open = !ends
		}
		g.msgs.correct(psn, ends)
	}
}

// duplicate answers a packet that every receiver has. Its copies would only
// make every receiver acknowledge again (R12).
func (g *group) duplicate(now time.Duration, p *Packet, psn rocev2.PSN, out *Output) Reason {
	rewind := g.hasPrev && psn.LessEq(g.prev)
	if g.nsev != noPend && psn == g.nout {
		g.seen = true
	}
	g.came(now, psn)
	g.count.DataIn++
	g.rewound = true
	if p.AckReq || rewind {
		g.ack(out)
	}
	return DuplicateData
}

// special handles a verified packet that is not plain data in order. None
// means that it is to be forwarded after all.
func (g *group) special(now time.Duration, psn rocev2.PSN, code rocev2.Syndrome, why Reason, out *Output) Reason {
	if g.dead {
		if psn == g.failPSN && g.failCode != 0 {
			g.nak(out, g.failCode, psn)
		}
		return GroupDead
	}
	if g.refused.code != 0 {
		if g.refused.psn.Less(psn) {
			return g.refused.reason // the source will come back to what was refused
		}
		if g.refused.psn == psn {
			g.refused = refusal{}
		}
	}
	if code != 0 {
		return g.turnDown(now, psn, code, why, out)
	}
	if g.nrecv == 0 && g.njoin == 0 && g.hi.Less(psn) {
		g.differs(MemberID(g.src), SendPSN, psn, g.hi, out)
		return OutOfWindow // nobody will ask for what is missing
	}
	return None
}

// arrived notes a packet of the source that goes no further.
func (g *group) arrived(now time.Duration, psn rocev2.PSN) {
	g.count.DataIn++
	g.came(now, psn)
	if g.nsev != noPend && psn == g.nout {
		g.seen = true
	}
}

// turnDown answers psn with a fatal NAK of the switch's own, when its turn comes.
func (g *group) turnDown(now time.Duration, psn rocev2.PSN, code rocev2.Syndrome, why Reason, out *Output) Reason {
	g.arrived(now, psn)
	g.refused = refusal{psn, code, why}
	g.eval(out)
	return why
}

// forward makes the copies of p for those that do not have it yet.
func (g *group) forward(now time.Duration, p *Packet, psn rocev2.PSN, f rocev2.OpFlags, out *Output) {
	how := g.translation(p, f)
	again := psn.Less(g.hi)
	if again && psn == g.timed {
		g.timing = false // nobody could say which of the two an ACK is for
	}
	if g.store != nil && g.nrecv > 0 && g.a.Less(psn) && !g.store.keep(p, psn, g.hi, g.a, how, out) {
		g.count.rare().NotKept++
	}
	n := len(out.Copies)
	for i := range g.branches {
		b := &g.branches[i]
		if b.bits&receiving == 0 {
			continue
		}
		d := psn.Sub(b.a)
		if d <= 0 {
			continue
		}
		ask := false
		if g.store != nil && (b.bits&late != 0 || again && g.store.bytes > 0) {
			var yes bool
			if yes, ask = g.inTurn(now, i, psn); !yes {
				continue
			}
		}
		// Made where it stays: to move it costs as much as to make it.
		out.Copies = append(out.Copies, Copy{Group: g.id, Leg: LegID(i), Frame: p.Frame, PSN: (psn + rocev2.PSN(b.delta)) & rocev2.PSNMask})
		c := &out.Copies[len(out.Copies)-1]
		if how == byWindow && b.bits&rewrites != 0 { // the usual WRITE: worth its own lines
			l := &g.legs[i]
			c.Flags, c.VA, c.RKey = SetRETH, l.base+(p.VA-g.window.Base), l.rkey
		} else if how != asItIs && b.bits&rewrites != 0 && !g.translate(c, how, p.VA, psn) {
			out.Copies = out.Copies[:len(out.Copies)-1]
			continue
		}
		if ask && !p.AckReq {
			c.Flags |= SetAckReq
		}
		if again && g.quorum > 0 {
			g.tracks[i].repeats(psn)
		}
		if d == 1 && b.pend != noPend && b.pend != sevFatal {
			g.setPend(b, noPend, 0) // this is what it asked for
			if g.store != nil {
				g.expect(now, i)
			}
		}
	}
	g.count.Copies += uint64(len(out.Copies) - n)
}
