// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Fair turns of members that share a group as sources (R77, R78, R79). In a tree of switches
// see tree_turn.go.
//
// No timer runs here. A waiting member sends its first packet again by itself, and so
// does a source whose message was refused. The source changes as under R29, when nothing
// is in flight; the end of a turn only brings that about.

const (
	// DefaultTurnTime replaces a GroupSpec.TurnTime of 0. A change of the source costs a
	// round trip and an RNR timer of turnSoon, about 2 ms: a tenth of a turn.
	DefaultTurnTime = 20 * time.Millisecond
	// turnReserved is how long a turn is reserved for a member that does not send. A waiting
	// member repeats its first packet after each timer of turnRNRCode, so four of its
	// packets have been lost by then.
	turnReserved = 20 * time.Millisecond
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
// endingSince is set while the turn is to end; over and drainedSince only then.
type turn struct {
	requestedAt    time.Duration // when the member next last sent its first packet
	contendedSince time.Duration // since when members have waited during the present turn; 0: no member has
	drainedSince   time.Duration // since when all before the refused message is acknowledged; 0: it is not
	time           time.Duration // the least time that a turn lasts while other members wait; 0: any time
	sourceTimeout  time.Duration // how long the source may send nothing while another member waits; 0: any time

	next            int32         // the member that has waited longest, or none
	refusalReported bool          // SourceRefused was emitted in this turn
	misses          uint8         // how often the source's turn has ended for a member that did not use its own
	endingSince     time.Duration // since when the turn is to end with the message under way; 0: it is not
	silentSince     time.Duration // since when the source has sent nothing while another member waits; 0: no member waits
}

// waitForTurn notes that member k waits for a turn, and answers it with the RNR timer code
// of its wait. Member k has sent its first packet, which is verified.
func (g *group) waitForTurn(now time.Duration, k MemberID, out *Output) {
	t := &g.turn
	if g.turn.time <= 0 {
		g.deferSource(k, turnRNRCode, out)
		return
	}
	if h := g.newHistory(k); h.waits == 0 {
		h.waits = max(now, 1)
	}
	if t.contendedSince == 0 {
		t.contendedSince = max(now, 1)
	}
	if t.next != none && t.next != int32(k) && now-t.requestedAt >= turnReserved {
		g.dismissNext(now)
	}
	if t.next == none {
		g.chooseNext(now)
	}
	code := turnRNRCode
	if t.next == int32(k) {
		t.requestedAt = now
		if !g.is(ending) && now-t.contendedSince >= g.turn.time<<t.misses && !g.waitsForFile() {
			g.setEnding(max(now, 1))
		}
		if g.is(ending) && now-t.endingSince < turnReserved {
			code = turnSoon
		}
	}
	g.deferSource(k, code, out)
}

// chooseNext makes the live member that has waited longest the next one.
func (g *group) chooseNext(now time.Duration) {
	t := &g.turn
	t.next, t.requestedAt = none, now
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
	if g.is(ending) {
		t.misses = min(t.misses+1, maxMisses)
		t.contendedSince = max(now, 1)
	}
	g.setEnding(0)
	g.newHistory(MemberID(t.next)).waits = 0
	g.chooseNext(now)
}

// reservedForAnother reports whether the turn that comes next is reserved for another
// member than k.
func (g *group) reservedForAnother(now time.Duration, k MemberID) bool {
	t := &g.turn
	return g.is(ending) && t.next != int32(k) && now-t.requestedAt < turnReserved
}

// yields reports whether the source's packet is refused because its turn is over: the
// message under way is the last one of the turn. Targets belong to their source (R41), so
// a source that has named targets goes on until its next target message.
func (g *group) yields(now time.Duration, p *Packet, psn rocev2.PSN) bool {
	t := &g.turn
	switch {
	case !g.is(ending) || g.is(refused) || psn.Less(g.fwd.nxt):
		return false
	case g.fwd.midMessage:
		t.drainedSince = 0
		g.set(messageRefused, false) // nxt-1 did not end the message after all
		return false
	case !g.is(messageRefused) && g.fwd.targets != nil && g.fwd.targets.named && (psn != g.fwd.nxt || !g.isTargetMessage(p)):
		return false
	case g.tree() == nil && (now-t.requestedAt >= turnReserved || t.drainedSince != 0 && now-t.drainedSince >= turnReserved): // in a tree the token goes to who waits, wherever
		g.dismissNext(now)
		return false
	}
	g.set(awaitsFile|asking, false) // it waits for the source's next turn
	if t.drainedSince == 0 && g.agg.acked == g.fwd.nxt.Prev() {
		t.drainedSince = max(now, 1)
	}
	return true
}

// setEnding sets since when the turn is to end; 0: the source goes on.
func (g *group) setEnding(since time.Duration) {
	g.turn.endingSince = since
	if g.set(ending, since != 0); since == 0 {
		g.turn.drainedSince = 0
		g.set(messageRefused, false)
	}
}

// noteTurnBegins notes that the turn of member k begins.
func (g *group) noteTurnBegins(now time.Duration, k MemberID) {
	t := &g.turn
	if g.historyOf(k).waits != 0 {
		g.newHistory(k).waits = 0
	}
	t.contendedSince, t.misses = 0, 0
	if g.is(wanted) {
		t.contendedSince = max(now, 1) // in a tree
	}
	if t.next == int32(k) {
		g.chooseNext(now)
	}
}
