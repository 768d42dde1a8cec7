// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Members that share a group as sources in fair turns (R77, R78, R79).
//
// Nothing here has a timer of its own: those that wait ask again by themselves, and so
// does a source whose message was refused. A source change is the one of R29, when
// nothing is in flight; the end of a turn only brings that about.

const (
	// DefaultTurnTime is GroupSpec.TurnTime if that is 0. A change of the source costs
	// the round trip and an RNR timer of turnSoon, some 2 ms: a tenth of a turn.
	DefaultTurnTime = 20 * time.Millisecond
	// turnKept is how long a turn is kept for a member that does not come for it. A
	// member that waits asks again every turnRNRCode, so four of its questions are lost then.
	turnKept = 20 * time.Millisecond
	// maxMisses bounds by how many doublings a turn is longer after members that did
	// not come for theirs.
	maxMisses = 6
)

// RNR timer codes.
const (
	turnRNRCode rocev2.RNRCode = 18 // 5.12 ms: for a member whose turn is not near
	turnSoon    rocev2.RNRCode = 14 // 1.28 ms: for the next one, when the turn before its own ends, and for the source whose turn that was
)

// turn is what a group knows of the members that wait for their turn.
type turn struct {
	next   int32         // the member that has waited longest, or nobody
	over   bool          // the source has sent its next message, which was refused
	misses uint8         // times that the source's turn has ended in vain
	asked  time.Duration // when next last asked
	since  time.Duration // since when members have waited for the present source; 0: none has
	ends   time.Duration // since when the source's turn ends with its message; 0: it does not
	held   time.Duration // since when nothing before the refused message is missing; 0: something is
}

// wait notes that member k asks for a turn, and answers how long it has to wait. Its
// packet is its first one, and verified.
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

// chooseNext makes the member next that has waited longest.
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

// dismissNext lets the source go on, and another member be next: the one that was has
// not come for its turn, or could not have it.
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

// kept says whether the turn, which nobody has, is kept for another member than k.
func (g *group) kept(now time.Duration, k MemberID) bool {
	t := &g.turn
	return t.ends != 0 && t.next != int32(k) && now-t.asked < turnKept
}

// yields says whether the source's packet is refused because its turn is over: with
// the message that is open everything ends that it may send. Targets are the source's
// own (R41), so one that has named some goes on until it names others.
func (g *group) yields(now time.Duration, p *Packet, psn rocev2.PSN) bool {
	t := &g.turn
	switch {
	case t.ends == 0 || g.failed || g.refusal.syndrome != 0 || psn.Less(g.nxt):
		return false
	case g.midMessage:
		t.over, t.held = false, 0 // hi-1 is not the end that it seemed to be
		return false
	case !t.over && g.targets != nil && g.targets.named && (psn != g.nxt || !g.isTargetMessage(p)):
		return false
	case now-t.asked >= turnKept || t.held != 0 && now-t.held >= turnKept:
		g.dismissNext(now)
		return false
	}
	return true
}

// yieldTurn refuses the source's packet psn, of a message that does not begin in this
// turn. The source is told so when all before it is acknowledged: eval.
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

// taken begins the turn of member k.
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
