// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// What all receivers have acknowledged before it was reported (R114). The fast path moves its limit with the
// lowest of the words of the legs, so such packets may have left its ring: nobody asks for them again. The
// core is told of them in one step. They need no check of their own: a receiver accepts a packet whose
// ICRC is right, in order, so each of them exists, is whole, and is what the receivers have judged.

// maxUnreported is how far the fast path may go on beyond what was reported.
const maxUnreported = 1 << 21

// Covered are the packets from nxt on that were not reported, and that every receiver has acknowledged.
type Covered struct {
	Last Packet        // the last one; it is not retained
	Ends uint32        // how many of them end a message
	At   time.Duration // the last one did not come before
}

// InputCovered tells the switch of packets that were not reported, and of the ACKs of all of them: legs has every
// receiver, with the PSN of c.Last. It returns false if the state of the group is none in which they may
// be skipped, and then nothing has changed. There was no other call for the group since the driver has had
// the fast path move its limit. The rest is as for InputAcked.
func (s *Switch) InputCovered(now time.Duration, id GroupID, c *Covered, legs []LegACK, sent SentACK, out *Output) bool {
	out.reset()
	g := s.group(id)
	if g == nil || !g.mayCover(c.Last.PSN&rocev2.PSNMask, legs) {
		return false
	}
	g.skipCovered(now, c)
	g.countACKs(now, legs, sent, out)
	s.endACKs(now, g, out)
	return true
}

// mayCover reports whether the packets from nxt to last, which legs have acknowledged, may be skipped.
func (g *group) mayCover(last rocev2.PSN, legs []LegACK) bool {
	if g.is(failed) || g.repair.path != fastPath || g.src.neighbor != 0 || g.fwd.targets != nil || g.leavesACKs(len(legs)) != "" || last.Less(g.fwd.nxt) {
		return false
	}
	for i := range legs {
		if l := &legs[i]; int(l.Leg) >= len(g.acks) || g.acks[l.Leg].flags&isReceiver == 0 || l.Acked != last {
			return false
		}
	}
	return true
}

// skipCovered is dataForwarded for packets of which nothing is left but their ACKs.
func (g *group) skipCovered(now time.Duration, c *Covered) {
	psn, f := c.Last.PSN&rocev2.PSNMask, c.Last.Op.Flags()
	n := uint64(psn.Sub(g.fwd.nxt)) + 1
	g.counters.DataIn += n
	g.src.lastPSN, g.src.lastPSNAt, g.src.hasLastPSN, g.turn.silentSince = psn, max(g.src.lastPSNAt, c.At), true, 0
	if n > 1 || f&rocev2.OpStart != 0 {
		g.noteMessageStart(&c.Last, psn, f)
	}
	copies := n * uint64(g.recv.count)
	g.extra.offload.copies += copies
	g.counters.Copies += copies
	g.setNxt(psn.Next(), g.fwd.limit)
	g.fwd.midMessage = f&rocev2.OpEnd == 0
	if c.Ends != 0 {
		g.agg.messages.addMany(psn, c.Ends)
	}
	g.repair.ackReqPSN = rocev2.MaxPSN(g.repair.ackReqPSN, psn)
	if g.live.period != 0 && !g.due.armed(livenessCheck) {
		g.startLiveness(now)
	}
}

// OffloadCeiling returns the PSN beyond which the fast path must not move its limit itself: no position is stored
// for it (R83), or too much is not reported.
func (v Group) OffloadCeiling() rocev2.PSN {
	g := v.g
	if g == nil || g.repair.path == notOffered {
		return 0
	}
	to := g.fwd.nxt.Add(maxUnreported)
	if g.policy.stored {
		to = rocev2.MinPSN(to, g.fwd.limit)
	}
	return to
}
