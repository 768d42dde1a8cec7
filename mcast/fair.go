// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Fair turns of members that share a group as sources (R77, R78, R79).
//
// No timer runs here. A waiting member sends its first packet again by itself, and so
// does a source whose message was refused. The source changes as under R29, when nothing
// is in flight; the end of a turn only brings that about.

const (
	// DefaultTurnTime replaces a GroupSpec.TurnTime of 0. A change of the source costs a
	// round trip and an RNR timer of turnSoon, about 2 ms: a tenth of a turn.
	DefaultTurnTime = 20 * time.Millisecond
	// turnKept is how long a turn is reserved for a member that does not send. A waiting
	// member repeats its first packet after each timer of turnRNRCode, so four of its
	// packets have been lost by then.
	turnKept = 20 * time.Millisecond
	// maxMisses is the number of times that a turn's length is doubled at most, once for
	// each member that did not use its turn.
	maxMisses = 6
)

// RNR timer codes.
const (
	turnRNRCode rocev2.RNRCode = 18 // 5.12 ms: for a member that is not next, or whose turn is not near
	turnSoon    rocev2.RNRCode = 14 // 1.28 ms: for the next member while the turn before its own ends, and for the source of that turn
)

// turn is the state of the source's turn, and of the members that wait for theirs.
type turn struct {
	next   int32         // the member that has waited longest, or none
	over   bool          // the source has begun its next message, which was refused
	misses uint8         // how often the source's turn has ended for a member that did not use its own
	asked  time.Duration // when the member next last sent its first packet
	since  time.Duration // since when members have waited during the present turn; 0: no member has
	ends   time.Duration // since when the turn is to end with the message under way; 0: it is not
	held   time.Duration // since when all before the refused message is acknowledged; 0: it is not
}

// wait notes that member k waits for a turn, and answers it with the RNR timer code of its
// wait. Member k has sent its first packet, which is verified.
func (g *group) wait(now time.Duration, k MemberID, out *Output) {
	t := &g.turn
	if g.turnTime <= 0 {
		g.deferSource(k, turnRNRCode, out)
		return
	}
	if h := g.newHistory(k); h.waits == 0 {
		h.waits = max(now, 1)
	}
	if t.since == 0 {
		t.since = max(now, 1)
	}
	if t.next != none && t.next != int32(k) && now-t.asked >= turnKept {
		g.dismissNext(now)
	}
	if t.next == none {
		g.chooseNext(now)
	}
	code := turnRNRCode
	if t.next == int32(k) {
		t.asked = now
		if t.ends == 0 && len(g.forwardedLegs()) == 0 && now-t.since >= g.turnTime<<t.misses {
			t.ends = max(now, 1)
		}
		if t.ends != 0 && now-t.ends < turnKept {
			code = turnSoon
		}
	}
	g.deferSource(k, code, out)
}

// chooseNext makes the live member that has waited longest the next one.
func (g *group) chooseNext(now time.Duration) {
	t := &g.turn
	t.next, t.asked = none, now
	for i := range g.members {
		h := g.historyOf(MemberID(i))
		if h.waits != 0 && g.members[i].live && (t.next == none || h.waits < g.historyOf(MemberID(t.next)).waits) {
			t.next = int32(i)
		}
	}
}

// dismissNext lets the source go on, and chooses another next member: the former one has
// not used its turn, or could not get it.
func (g *group) dismissNext(now time.Duration) {
	t := &g.turn
	if t.ends != 0 {
		t.misses = min(t.misses+1, maxMisses)
		t.since = max(now, 1)
	}
	t.ends, t.over, t.held = 0, false, 0
	g.newHistory(MemberID(t.next)).waits = 0
	g.chooseNext(now)
}

// kept reports whether the turn that comes next is reserved for another member than k.
func (g *group) kept(now time.Duration, k MemberID) bool {
	t := &g.turn
	return t.ends != 0 && t.next != int32(k) && now-t.asked < turnKept
}

// yields reports whether the source's packet is refused because its turn is over: the
// message under way is the last one of the turn. Targets belong to their source (R41), so
// a source that has named targets goes on until its next target message.
func (g *group) yields(now time.Duration, p *Packet, psn rocev2.PSN) bool {
	t := &g.turn
	switch {
	case t.ends == 0 || g.failed || g.refusal.syndrome != 0 || psn.Less(g.nxt):
		return false
	case g.midMessage:
		t.over, t.held = false, 0 // nxt-1 did not end the message after all
		return false
	case !t.over && g.targets != nil && g.targets.named && (psn != g.nxt || !g.isTargetMessage(p)):
		return false
	case now-t.asked >= turnKept || t.held != 0 && now-t.held >= turnKept:
		g.dismissNext(now)
		return false
	}
	return true
}

// yieldTurn refuses the source's packet psn, whose message does not begin in this turn.
// evaluate sends the source an RNR NAK when all before that message is acknowledged.
func (g *group) yieldTurn(now time.Duration, psn rocev2.PSN, out *Output) Reason {
	t := &g.turn
	g.arrived(now, psn)
	t.over = true
	if t.held == 0 && g.acked == g.nxt.Prev() {
		t.held = max(now, 1)
	}
	g.evaluate(out)
	return TurnOver
}

// taken notes that the turn of member k begins.
func (g *group) taken(now time.Duration, k MemberID) {
	t := &g.turn
	if g.historyOf(k).waits != 0 {
		g.newHistory(k).waits = 0
	}
	t.since, t.misses = 0, 0
	if t.next == int32(k) {
		g.chooseNext(now)
	}
}
