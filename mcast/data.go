// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// maxBehind is how far behind acked a PSN is still valid: half of what a requester may
// have outstanding (RC.md §3.1). maxAhead is how far ahead of acked a PSN is valid. A
// receiver may be maxBehind behind another one: it is less than half of the PSN space
// behind nxt then, which is the limit of circular comparisons (R61).
const (
	maxBehind = 1 << 22
	maxAhead  = maxBehind - 2
)

// quarantine is how long no packet of a member is served, and nothing is acknowledged to
// it, after a packet with a PSN below all that its registration has seen (R68). A
// requester that goes back begins with its lowest PSN that is not acknowledged, so a
// queue pair with lower PSNs shows one of them each time.
const quarantine = 20 * time.Millisecond

// handleRequest serves a request packet of a member.
func (g *group) handleRequest(now time.Duration, p *Packet, f rocev2.OpFlags, out *Output) Reason {
	if g.source != none && keyOf(p.Src) == g.sourceAddr && p.Neighbor == g.sourceNeighbor {
		return g.handleData(now, p, f, out)
	}
	return g.requestOfNonSource(now, p, f, out)
}

// handleData serves a packet of the current source: DATA of RC.md §6.2.
//
// Without a verified ICRC nothing is done that leaves a lasting mark: a packet in order
// is forwarded (a corrupted one stays corrupted, and receivers drop it), and a duplicate
// is answered with ACK(acked), which is true for every sender.
func (g *group) handleData(now time.Duration, p *Packet, f rocev2.OpFlags, out *Output) Reason {
	psn := p.PSN & rocev2.PSNMask
	d := psn.Sub(g.acked)
	if d <= -g.ackedCount || d > maxAhead {
		if d <= 0 {
			if !p.Verified {
				out.NeedVerify = true
				return None
			}
			g.sourceQuarantined, g.quarantinedUntil = true, now+quarantine
		}
		g.noteMismatch(MemberID(g.source), SendPSN, psn, g.nxt, out)
		return PSNOutOfRange
	}
	if g.sourceQuarantined {
		if now < g.quarantinedUntil {
			return PSNOutOfRange
		}
		g.sourceQuarantined = false
	}
	if d <= 0 {
		if g.quorum > 0 && g.numLacking(psn) > 0 {
			return g.forwardAgain(now, p, psn, f, out)
		}
		return g.answerDuplicate(now, p, psn, out)
	}
	code, why := g.checkRequest(p, f)
	starts := f&rocev2.OpStart != 0
	update := g.isTargetMessage(p)
	inOrder := psn == g.nxt && code == 0 && !g.failed && g.refusal.syndrome == 0 && !update && g.turn.ends == 0 &&
		g.numReceivers > 0 && g.allowedBehind >= 0 && (g.numJoining == 0 || !starts) && !g.numbering.isBlocking()
	if !p.Verified && (!inOrder || g.mayBeDamaged(now, psn)) {
		out.NeedVerify = true
		return None
	}
	if !inOrder {
		if g.yields(now, p, psn) {
			return g.yieldTurn(now, psn, out)
		}
		if r := g.slowPath(now, psn, code, why, out); r != None {
			return r
		}
		if !psn.Less(g.nxt) && g.mustBlock(now, psn, starts, out) {
			return AwaitsVerification
		}
		if g.allowedBehind < 0 {
			return g.reject(now, psn, rocev2.SyndromeNAKOpErr, QuorumLost, out)
		}
		if update && !g.noteTargets(psn, p.Targets) {
			return TargetMessagesFull
		}
		if psn.Less(g.nxt) {
			g.recheckMismatch(psn, out)
		}
	}
	g.counters.DataIn++
	g.noteReceived(now, psn)
	if g.nakSeverity != sevNone && psn == g.nakPSN {
		if !g.nakServed && g.deadAfter > 0 {
			g.restartLiveness(now)
		}
		g.nakServed = true
	}
	if psn != g.nxt || starts {
		g.noteMessageStart(p, psn, f)
	}
	g.forward(now, p, psn, f, out)
	g.noteForwarded(psn, f)
	if p.AckReq {
		if g.store != nil {
			g.noteAckReq(now, psn)
		} else if g.deadAfterMax > 0 {
			g.startRTT(now, psn)
		}
	}
	if g.livenessPeriod > 0 && !g.livenessArmed {
		g.startLiveness(now)
	}
	if g.numReceivers == 0 {
		g.evaluate(out)
	}
	g.resend(now, out)
	return None
}

// maxInOrderGap is how long after the packet before it a packet in order is forwarded
// unverified. A source that goes back without a NAK has been silent for its timeout, and
// no requester sets one so short.
const maxInOrderGap = 100 * time.Microsecond

// mayBeDamaged reports whether a packet with PSN nxt may be an earlier packet with a
// damaged PSN: the source goes back, or may be about to (R64).
func (g *group) mayBeDamaged(now time.Duration, psn rocev2.PSN) bool {
	return !g.hasLastPSN || g.lastPSN != psn.Prev() || now-g.lastPSNAt > maxInOrderGap || g.nakSeverity != sevNone && !g.nakServed
}

// noteReceived records that the source has sent psn.
func (g *group) noteReceived(now time.Duration, psn rocev2.PSN) {
	g.lastPSN, g.lastPSNAt, g.hasLastPSN, g.waitedSince = psn, now, true, 0
}

// noteForwarded records that psn went out to the receivers.
func (g *group) noteForwarded(psn rocev2.PSN, f rocev2.OpFlags) {
	ends := f&rocev2.OpEnd != 0
	if psn != g.nxt {
		g.numbering.noteGap(psn, g.nxt)
	}
	switch d := psn.Sub(g.nxt); {
	case d >= 0:
		g.nxt = psn.Next()
		g.midMessage = !ends
		if ends {
			g.messages.addEnd(psn)
		}
	default:
		g.sourceRewound = true
		if d == -1 {
			g.midMessage = !ends
		}
		g.messages.correctEnd(psn, ends)
	}
}

// answerDuplicate answers a packet that is acknowledged, and makes no copies: they would
// only make every receiver acknowledge again (R12).
func (g *group) answerDuplicate(now time.Duration, p *Packet, psn rocev2.PSN, out *Output) Reason {
	rewind := g.hasLastPSN && psn.LessEq(g.lastPSN)
	if g.nakSeverity != sevNone && psn == g.nakPSN {
		g.nakServed = true
	}
	g.noteReceived(now, psn)
	g.counters.DataIn++
	g.sourceRewound = true
	if p.AckReq || rewind {
		g.sendACK(out)
	}
	return DuplicateData
}

// slowPath handles a verified packet that is not inOrder (handleData). It returns None
// if the packet is to be forwarded after all.
func (g *group) slowPath(now time.Duration, psn rocev2.PSN, code rocev2.Syndrome, why Reason, out *Output) Reason {
	if g.failed {
		if psn == g.failPSN && g.failSyndrome != 0 {
			g.sendNAK(out, g.failSyndrome, psn)
		}
		return FailedGroup
	}
	if g.refusal.syndrome != 0 {
		if g.refusal.psn.Less(psn) {
			return g.refusal.reason // the source goes back to the refused PSN
		}
		if g.refusal.psn == psn {
			g.refusal = refusal{}
		}
	}
	if code != 0 {
		return g.reject(now, psn, code, why, out)
	}
	if g.numReceivers == 0 && g.numJoining == 0 && g.nxt.Less(psn) {
		g.noteMismatch(MemberID(g.source), SendPSN, psn, g.nxt, out)
		return PSNOutOfRange // no receiver is there to send a NAK of the gap
	}
	return None
}

// arrived records a packet of the source that is not forwarded.
func (g *group) arrived(now time.Duration, psn rocev2.PSN) {
	g.counters.DataIn++
	g.noteReceived(now, psn)
	if g.nakSeverity != sevNone && psn == g.nakPSN {
		g.nakServed = true
	}
}

// reject answers psn with a fatal NAK of the switch's own, when psn is acked+1.
func (g *group) reject(now time.Duration, psn rocev2.PSN, code rocev2.Syndrome, why Reason, out *Output) Reason {
	g.arrived(now, psn)
	g.refusal = refusal{psn, code, why}
	g.evaluate(out)
	return why
}

// forward makes the copies of p for the legs that lack it.
func (g *group) forward(now time.Duration, p *Packet, psn rocev2.PSN, f rocev2.OpFlags, out *Output) {
	how := g.rewriteOf(p, f)
	again := psn.Less(g.nxt)
	if again && psn == g.rttPSN {
		g.rttPending = false // an ACK may be of either passage
	}
	if g.store != nil && g.numReceivers > 0 && g.acked.Less(psn) && !g.store.retain(p, psn, g.nxt, g.acked, how, out) {
		g.counters.rare().NotRetained++
	}
	n := len(out.Copies)
	for i := range g.acks {
		b := &g.acks[i]
		if b.flags&isReceiver == 0 {
			continue
		}
		d := psn.Sub(b.acked)
		if d <= 0 {
			continue
		}
		ask := false
		if g.store != nil && (b.flags&recovering != 0 || again && g.store.bytes > 0) {
			var yes bool
			if yes, ask = g.takesFromSource(now, i, psn); !yes {
				continue
			}
		}
		// The copy is made in place: to move it costs as much as to make it.
		out.Copies = append(out.Copies, Copy{Group: g.id, Leg: LegID(i), Frame: p.Frame, PSN: (psn + rocev2.PSN(b.delta)) & rocev2.PSNMask})
		c := &out.Copies[len(out.Copies)-1]
		if how == rewriteByWindow && b.flags&isConnected != 0 { // the usual WRITE, without a call
			l := &g.legs[i]
			c.Flags, c.VA, c.RKey = SetRETH, l.base+(p.VA-g.window.Base), l.rkey
		} else if how != rewriteNone && b.flags&isConnected != 0 && !g.rewriteCopy(c, how, p.VA, psn) {
			out.Copies = out.Copies[:len(out.Copies)-1]
			continue
		}
		if ask && !p.AckReq {
			c.Flags |= SetAckReq
		}
		if again && g.quorum > 0 {
			g.activity[i].noteRepeat(psn)
		}
		if d == 1 && b.pending != sevNone && b.pending != sevFatal {
			g.setPending(b, sevNone, 0) // this is the packet that the NAK is for
			if g.store != nil {
				g.armProbe(now, i)
			}
		}
	}
	g.counters.Copies += uint64(len(out.Copies) - n)
}
