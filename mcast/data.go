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

// handleRequest serves a request packet of a member.
func (g *group) handleRequest(now time.Duration, p *Packet, f rocev2.OpFlags, out *Output) Reason {
	if g.is(learning) && !g.is(failed) {
		return Resuming
	}
	if g.src.member != none && rocev2.KeyOf(p.Src) == g.src.addr && p.Neighbor == g.src.neighbor {
		if g.repair.path == fastPath {
			if g.behindGap(now, p, f, out) {
				return BehindGap
			}
			out.NeedRevoke = true
			return None
		}
		again := p.Neighbor != 0 && p.AckReq && (p.PSN & rocev2.PSNMask).Less(g.fwd.nxt)
		r := g.handleData(now, p, f, out)
		if (again || r != None) && g.isProbe(now, p, out) {
			g.sendACK(out)
		}
		if r != None {
			return g.hold(now, p, r, out)
		}
		return None
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
	if g.is(resumes) && !g.is(failed) {
		if !p.Verified {
			out.NeedVerify = true
			return None
		}
		g.noteResumed(now, psn, f, out)
	}
	d := psn.Sub(g.agg.acked)
	if d <= -g.src.ackedCount || d > maxAhead {
		if d <= 0 {
			if !p.Verified {
				out.NeedVerify = true
				return None
			}
			g.set(quarantined, true)
			g.src.quarantinedUntil = now + quarantine
		}
		g.noteMismatch(MemberID(g.src.member), SendPSN, psn, g.fwd.nxt, out)
		return PSNOutOfRange
	}
	if g.is(quarantined) {
		if now < g.src.quarantinedUntil {
			return PSNOutOfRange
		}
		g.set(quarantined, false)
	}
	if d <= 0 {
		if g.policy.quorum != 0 && g.numLacking(psn) != 0 {
			return g.forwardAgain(now, p, psn, f, out)
		}
		return g.answerDuplicate(now, p, psn, out)
	}
	code, why := g.checkRequest(p, f)
	starts, update := f&rocev2.OpStart != 0, g.isTargetMessage(p)
	shut := g.gates & stops
	if !starts {
		shut &^= joiners
	}
	inOrder := psn == g.fwd.nxt && shut == 0 && code == 0 && !update
	if !p.Verified && (!inOrder || g.mayBeDamaged(now, psn)) {
		out.NeedVerify = true
		return None
	}
	if !inOrder {
		if r := g.stop(now, p, psn, refusal{psn, code, why}, out); r != None {
			return r
		}
		if update && !g.noteTargets(psn, p.Targets) {
			return TargetMessagesFull
		}
		if psn.Less(g.fwd.nxt) {
			g.recheckMismatch(psn, out)
		}
	}
	g.noteServed(now, psn)
	if psn != g.fwd.nxt || starts {
		g.noteMessageStart(p, psn, f)
	}
	again := psn.Less(g.fwd.nxt)
	if again {
		g.noteRepeated(p, psn)
	}
	g.forward(now, p, psn, f, out)
	if out.Retained && g.fwd.nxt.Less(psn) {
		g.nakGap(psn, out)
	}
	g.noteForwarded(psn, f)
	if p.AckReq || g.repair.asks(psn) {
		if !again && (g.repair.store != nil || g.live.deadAfterMax != 0) {
			g.startRTT(now, psn)
		}
		if g.repair.store != nil {
			g.noteAckReq(now, psn)
		}
	}
	if g.live.period != 0 && !g.due.armed(livenessCheck) {
		g.startLiveness(now)
	}
	if g.is(noReceivers) {
		g.evaluate(out)
	}
	g.resend(now, out)
	return None
}

// noteRepeated counts psn, which the source sends again. Its payload is new if the packet was lost
// before the switch.
func (g *group) noteRepeated(p *Packet, psn rocev2.PSN) {
	c := g.counters.rare()
	c.Repeated++
	if n := &g.numbering; !n.gap || psn.Less(n.gapFrom) || !psn.Less(n.gapNext) || g.repair.store != nil && g.repair.store.find(psn) != nil {
		c.RepeatedBytes += uint64(p.Payload)
	}
}

// answerDuplicate answers a packet that is acknowledged, and makes no copies: they would
// only make every receiver acknowledge again (R12).
func (g *group) answerDuplicate(now time.Duration, p *Packet, psn rocev2.PSN, out *Output) Reason {
	rewind := g.src.hasLastPSN && psn.LessEq(g.src.lastPSN)
	g.noteReceived(now, psn)
	g.counters.rare().Repeated++
	g.live.sourceRewound = true
	if p.AckReq || rewind {
		g.sendACK(out)
	}
	return DuplicateData
}

// source is the group's current source. acked - ackedCount < psn <= acked + maxAhead holds
// for every packet that is served.
type source struct {
	addr             rocev2.AddrKey `state:"derived"`                 // its address
	neighbor         Neighbor       `state:"derived"`                 // the switch that it is behind; 0: none
	member           int32          `state:"encoded"`                 // its MemberID, or none
	leg              int32          `state:"derived"`                 // its LegID, or none
	ackedCount       int32          `state:"encoded"`                 // PSNs up to acked that were acknowledged to it since its registration; maxBehind: that many or more
	lastPSN          rocev2.PSN     `state:"encoded if x.hasLastPSN"` // PSN of its last packet, if hasLastPSN
	hasLastPSN       bool           `state:"encoded"`
	becnDue          bool           `state:"encoded"`                                   // BECN is to be set in the next ACK to it
	lastPSNAt        time.Duration  `state:"past(c.g.oldestLastPSN()) if x.hasLastPSN"` // time of its last packet
	quarantinedUntil time.Duration  `state:"ahead"`                                     // end of its quarantine, if quarantined
}

// quarantine is how long no packet of a member is served, and nothing is acknowledged to
// it, after a packet with a PSN below all that its registration has seen (R68). A
// requester that goes back begins with its lowest PSN that is not acknowledged, so a
// queue pair with lower PSNs shows one of them each time.
const quarantine = 20 * time.Millisecond

// noteReceived counts psn, which the source has sent.
func (g *group) noteReceived(now time.Duration, psn rocev2.PSN) {
	g.counters.DataIn++
	g.src.lastPSN, g.src.lastPSNAt, g.src.hasLastPSN, g.turn.silentSince = psn, now, true, 0
	g.agg.request.serve(psn)
}

// noteServed is noteReceived for a packet that is forwarded.
func (g *group) noteServed(now time.Duration, psn rocev2.PSN) {
	if g.live.deadAfter != 0 && g.agg.request.awaits(psn) {
		g.restartLiveness(now)
	}
	g.noteReceived(now, psn)
}

// MaxInOrderGap is how long after the packet before it a packet in order is forwarded
// unverified. A source that goes back without a NAK has been silent for its timeout, and
// no requester sets one so short.
const MaxInOrderGap = 100 * time.Microsecond

// mayBeDamaged reports whether a packet with PSN nxt may be an earlier packet with a
// damaged PSN: the source goes back, or may be about to (R64).
func (g *group) mayBeDamaged(now time.Duration, psn rocev2.PSN) bool {
	return !g.src.hasLastPSN || g.src.lastPSN != psn.Prev() || now-g.src.lastPSNAt > MaxInOrderGap || g.agg.request.isOpen()
}
