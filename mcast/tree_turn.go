// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Turns in a tree of switches (R84, R85): the switch that a source is connected to ends its
// turn. Time decides here, not the next request of a member, which may be anywhere.

// begun reports whether the member that is served has sent something in its turn.
func (t *tree) begun() bool {
	return t.g.src.member != none && t.g.src.hasLastPSN && t.serves(MemberID(t.g.src.member))
}

// unfinished reports whether the member that is served is in the middle of its data.
func (t *tree) unfinished() bool {
	return t.g.src.member != none && t.serves(MemberID(t.g.src.member)) && !t.g.isQuiescent()
}

// rests reports whether the turn of the member that is served ends now: others wait for
// it, and its data is complete. Data that waits here is not.
func (t *tree) rests() bool {
	return t.machine.Wanted() && t.begun() && t.g.isQuiescent() && !t.g.is(failed|awaitsFile|blocking)
}

// rest gives the token to those that wait, if the source is at rest.
func (t *tree) rest(now time.Duration, out *Output) {
	if t.rests() {
		t.machine.Rested(now, &t.g.sw.tokens)
		t.carryOut(now, out)
		return
	}
	t.armTurn() // the source may have begun
}

// turnEvent is what is due about the turn of the member that is served, while others wait.
type turnEvent uint8

const (
	noTurnEvent  turnEvent = iota
	turnTimeOver           // the turn has lasted for TurnTime: it ends with the message under way (R77)
	turnNotUsed            // the member that is served has sent nothing since its request (R78)
	sourceSilent           // the source has sent nothing for SourceTimeout (R65)
)

// turnDeadline returns when something is due about the turn, and what.
func (t *tree) turnDeadline() (time.Duration, turnEvent) {
	g := t.g
	k, ok := t.memberOf(t.machine.Serving())
	if !ok || !t.machine.Wanted() || g.is(failed) || g.is(learning) {
		return 0, noTurnEvent
	}
	since, begun := g.turn.contendedSince, t.begun()
	if int32(k) != g.src.member && !t.mayFollow() {
		return 0, noTurnEvent // the last source's data is not complete here
	}
	if !begun && !t.unfinished() { // it has the token since it asked, or since it might have been unfinished
		return since + turnReserved, turnNotUsed
	}
	at, e := time.Duration(0), noTurnEvent
	if begun && g.turn.time > 0 && !g.is(ending) && !g.waitsForFile() {
		at, e = since+g.turn.time, turnTimeOver
	}
	if begun {
		since = max(since, g.src.lastPSNAt)
	}
	if s := since + g.turn.sourceTimeout; g.turn.sourceTimeout > 0 && (e == noTurnEvent || s < at) {
		at, e = s, sourceSilent
	}
	return at, e
}

// advance does what is due.
func (t *tree) advance(now time.Duration, out *Output) {
	if at, ok := t.machine.NextDeadline(); ok && at <= now {
		t.machine.Advance(now, &t.g.sw.tokens)
		t.carryOut(now, out)
	}
	switch at, e := t.turnDeadline(); {
	case e == noTurnEvent || now < at:
	case e == turnTimeOver:
		t.g.setEnding(max(now, 1))
	default:
		t.giveUp(now, out)
	}
	t.arm()
	t.rest(now, out)
}

// mayFollow reports whether a member may begin that has the token: the last source is at
// rest. If only that is not known, whether its message has ended, the token shows it.
// Data of a source without the token that waits for the file is not forwarded before that
// source has the token again.
func (t *tree) mayFollow() bool {
	g := t.g
	return g.isQuiescent() || g.endUnknown() || g.is(frozen) && g.isComplete()
}

// giveUp ends the turn of a member that sends nothing.
func (t *tree) giveUp(now time.Duration, out *Output) {
	if t.unfinished() {
		t.g.abandonSource(out)
	}
	if t.g.is(failed) || !t.mayFollow() {
		return
	}
	if k, ok := t.memberOf(t.machine.Serving()); ok {
		t.g.newHistory(k).waits = 0
	}
	t.machine.Rested(now, &t.g.sw.tokens)
	t.carryOut(now, out)
}

// requestInTree serves a packet of member k, not the present source.
func (g *group) requestInTree(now time.Duration, k MemberID, p *Packet, f rocev2.OpFlags, out *Output) Reason {
	t, m, free := g.tree(), &g.members[k], g.isQuiescent()
	if p.Neighbor != 0 {
		switch {
		case !t.machine.Accepts(t.legOf(m.leg)):
			return NoToken
		case !t.mayFollow():
			if g.noteConflict(now, k, p.Verified, out) {
				out.NeedVerify = true
				return None
			}
			return NotSource
		}
	} else if !free && p.PSN&rocev2.PSNMask != m.sqPSN {
		return NotSource
	}
	if !p.Verified {
		out.NeedVerify = true
		return None
	}
	if p.Neighbor == 0 && !(t.request(now, k, out) && t.mayFollow()) {
		if !free {
			g.deferSource(k, turnRNRCode, out)
			return NotSource
		}
		code := turnSoon // nobody sends here: perhaps only the token has to come
		if now-g.historyOf(k).waits >= turnReserved {
			code = turnRNRCode
		}
		g.deferSource(k, code, out)
		return NoToken
	}
	if g.endUnknown() { // the token has left the source, so that is at rest
		g.endResume()
		g.fwd.midMessage = false
	}
	return g.beginTurn(now, k, p, f, out)
}
