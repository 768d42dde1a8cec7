// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"math"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// localRepair is the part of a group that sends lost packets again. It is armed whenever a
// leg waits for a time.
type localRepair struct {
	store         *store        `state:"encoded"`                                 // nil without local repair
	ackReqPSN     rocev2.PSN    `state:"encoded"`                                 // the highest PSN that the receivers were sent with AckReq
	numRecovering int32         `state:"encoded"`                                 // recovering legs
	ackMask       rocev2.PSN    `state:"constant"`                                // GroupSpec.AckEvery - 1, or neverAsks
	tries         uint8         `state:"constant"`                                // RepairSpec.Tries
	path          offloadState  `state:"encoded = c.path() if c.g.hasFastPath()"` // who forwards new packets; only a group with a store may be offloaded
	timeout       time.Duration `state:"constant"`                                // RepairSpec.Timeout
}

// DefaultAckEvery is the GroupSpec.AckEvery of a switch: what 64 active groups with packets of 4 KiB find
// room for in the memory for repair that a switch has by default (lab/sim, TestRepairMemory). Requesters
// leave 0 to 1,023 packets between two with AckReq, rdma_rxe 65 (RC.md §11).
const DefaultAckEvery = 32

// neverAsks is the ackMask of a group whose source alone asks: no PSN has that bit.
const neverAsks = rocev2.PSNMask + 1

func ackMask(every uint32) rocev2.PSN {
	if every == 0 {
		return neverAsks
	}
	return rocev2.PSN(every - 1)
}

// asks reports whether members are sent psn with AckReq, whoever sends it and however often (R112).
func (r *localRepair) asks(psn rocev2.PSN) bool { return psn&r.ackMask == r.ackMask }

// RepairSpec sets the local repair of a group. The zero value means none.
type RepairSpec struct {
	// Bytes bounds the packet memory of the source's frames that are retained; 0: none
	// are.
	Bytes int64
	// Timeout is the shortest time after which a receiver that owes an ACK is
	// probed. It grows with the measured round trips, to four mean deviations
	// above their mean, at most 64 times Timeout.
	Timeout time.Duration
	// Tries is how often the same PSN is sent again before it is left to the
	// source.
	Tries int // 1 to 255
}

// Defaults of RepairSpec, for drivers. A receiver that answers nothing is probed after
// 4, 20, 36 and 52 ms, and left to the source after 68 ms: when a requester with the
// usual local ACK timeout (exponent 14, 67 ms) retransmits by itself.
const (
	DefaultRepairTimeout = 4 * time.Millisecond
	DefaultRepairTries   = 4
)

// freeUnneeded frees the frames that every receiver has acknowledged.
func (g *group) freeUnneeded(out *Output) {
	m := g.agg.acked
	if g.policy.quorum != 0 {
		for i := range g.acks {
			if b := &g.acks[i]; b.flags&isReceiver != 0 && b.acked.Less(m) {
				m = b.acked
			}
		}
	}
	g.repair.store.freeBelow(m.Next(), out)
	if g.rtt.pending && g.rtt.psn.LessEq(m) {
		g.rtt.pending = false
	}
}

// freeAfterEviction frees the frames that only an evicted receiver lacked (R49).
func (g *group) freeAfterEviction(out *Output) {
	if g.repair.store != nil {
		g.freeUnneeded(out)
	}
}

// clearStore frees all frames. Those that are retained from now on begin at psn.
func (g *group) clearStore(psn rocev2.PSN, out *Output) {
	if g.repair.store == nil {
		return
	}
	if g.is(holding) {
		g.dropHeld(out)
	}
	g.repair.store.reset(psn, out)
	g.due.stop(repairTimer)
	g.rtt.pending = false
	g.repair.ackReqPSN = psn.Prev()
}

// resend sends the recovering legs what the store has for them, as far as the caller
// has memory.
func (g *group) resend(now time.Duration, out *Output) {
	if g.repair.numRecovering == 0 || g.is(failed) {
		return
	}
	asked := false
	for i := range g.acks {
		if g.acks[i].flags&recovering == 0 {
			continue
		}
		if !g.resendToLeg(now, i, out) {
			g.armRecovery(now) // no more memory in this call
			break
		}
		if g.requestFromSource(i) {
			asked = true
		}
	}
	if asked {
		g.evaluate(out)
	}
}

// copyRetained makes a copy, for leg i, of the retained frame of psn. ask sets AckReq.
func (g *group) copyRetained(i int, e *retained, psn rocev2.PSN, ask bool, out *Output) {
	b := &g.acks[i]
	c := Copy{Group: g.id, Leg: LegID(i), Frame: e.frame, PSN: (psn + rocev2.PSN(b.delta)) & rocev2.PSNMask}
	if b.flags&isConnected != 0 && !g.rewriteCopy(&c, e.rewrite, e.va, psn) {
		return
	}
	if (ask || b.flags&isConnected != 0 && g.repair.asks(psn)) && !e.ackReq {
		c.Flags |= SetAckReq
	}
	out.resends++
	out.Copies = append(out.Copies, c)
	g.counters.Copies++
	g.counters.rare().Resent++
}

// canServe reports whether the store can serve a NAK of e: everything from e to nxt-1 is
// retained. If e is acknowledged (under Quorum) the frame of e alone is enough: nobody
// else can send it.
func (g *group) canServe(i int, e rocev2.PSN) bool {
	if g.acks[i].flags&isConnected == 0 || g.src.neighbor != 0 {
		return g.repair.store.find(e) != nil
	}
	return g.repair.store.contiguousFrom.LessEq(e) && g.repair.store.first.LessEq(e) || e.LessEq(g.agg.acked) && g.repair.store.find(e) != nil
}

// resendsExhausted reports whether the caller has no memory for another copy from the
// store.
func (o *Output) resendsExhausted() bool { return o.MaxResends != 0 && o.resends >= o.MaxResends }

// portRoom returns how many copies from the store the port of a leg takes, and when it
// may take more.
func (o *Output) portRoom(id GroupID, leg LegID) (copies int, until time.Duration) {
	if o.PortRoom == nil {
		return math.MaxInt, 0
	}
	copies, until = o.PortRoom(id, leg)
	return max(copies, 0), until
}

// rttMeasurement is the packet whose round trip is being measured. At most one is, and it
// was sent once (Karn's rule, RFC 6298 §3).
type rttMeasurement struct {
	pending bool          `state:"encoded"`
	alone   bool          `state:"ignored"` // nothing was outstanding when psn was sent
	kept    bool          `state:"ignored"` // the round trips are kept in the costs
	psn     rocev2.PSN    `state:"encoded if x.pending"`
	sentAt  time.Duration `state:"time if x.pending"`           // time at which psn was sent
	pauses  uint64        `state:"derived = c.sw.ports.pauses"` // the switch's count of pauses at that time
}

// startRTT begins to measure the round trip of psn, which goes out for the first time and
// with AckReq, unless a measurement is under way. A measurement over a pause of the switch is void.
func (g *group) startRTT(now time.Duration, psn rocev2.PSN) {
	if !g.isTiming() {
		g.rtt.alone, g.rtt.kept = psn == g.agg.acked.Next(), g.cost.keepsRoundTrip(now)
		g.rtt.pending, g.rtt.psn, g.rtt.sentAt, g.rtt.pauses = true, psn, now, g.sw.ports.pauses
	}
}

// isTiming reports whether a round trip is being measured.
func (g *group) isTiming() bool { return g.rtt.pending && g.rtt.pauses == g.sw.ports.pauses }

// rttStart returns when the packet whose round trip is measured was sent to leg i: later than to
// others, if it has waited for the leg in the store (R45).
func (g *group) rttStart(i int) time.Duration {
	return max(g.rtt.sentAt, g.activityOf(i).recovery.rttFrom)
}

// rttVoid reports whether the measurement under way is void for leg i: the leg has lacked an
// earlier packet since, and could not acknowledge this one.
func (g *group) rttVoid(i int) bool {
	return g.isTiming() && g.rttStart(i) < g.activityOf(i).recovery.lossAt
}

// updateRTT updates the smoothed round trip of leg i, whose acked was before, if the
// leg acknowledges rttPSN now.
func (g *group) updateRTT(now time.Duration, i int, before rocev2.PSN) {
	b, m := &g.acks[i], &g.activity[i].recovery
	if !g.isTiming() || !before.Less(g.rtt.psn) || b.acked.Less(g.rtt.psn) || g.rtt.psn.LessEq(m.resentPSN) || g.rttVoid(i) {
		return // not that packet, or it was sent to this leg again, or it has waited for another one, or the switch has paused
	}
	g.noteRTT(i, now-g.rttStart(i), g.rtt.kept, g.rtt.alone)
}

// noteRTT updates the smoothed round trip of leg i by d. kept: it is kept in the costs; alone: nothing was
// outstanding when the packet was sent.
func (g *group) noteRTT(i int, d time.Duration, kept, alone bool) {
	m := &g.activity[i].recovery
	if kept {
		g.cost.legs[i].addRoundTrip(d, alone)
	}
	if m.rtt == 0 {
		m.rtt, m.rttVar = d, d/2
		return
	}
	off := d - m.rtt
	m.rttVar += (max(off, -off) - m.rttVar) / 4
	m.rtt += off / 8
}
