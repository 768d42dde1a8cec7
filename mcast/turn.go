// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Fair turns of members that share a group as sources (R77, R78, R79). In a tree of switches
// see tree.go.
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
	requestedAt    time.Duration `state:"past(turnReserved) if x.next != none"` // time at which the member next last sent its first packet
	contendedSince time.Duration `state:"past(c.g.longestTurn())"`              // time from which on members have waited during the present turn; 0: no member has
	drainedSince   time.Duration `state:"past(turnReserved)"`                   // time from which on all before the refused message is acknowledged; 0: it is not
	time           time.Duration `state:"constant"`                             // the least time that a turn lasts while other members wait; 0: any time
	sourceTimeout  time.Duration `state:"constant"`                             // how long the source may send nothing while another member waits; 0: any time

	next            int32         `state:"encoded"`               // the member that has waited longest, or none
	refusalReported bool          `state:"encoded"`               // SourceRefused was emitted in this turn
	misses          uint8         `state:"encoded"`               // how often the source's turn has ended for a member that did not use its own
	endingSince     time.Duration `state:"past(turnReserved)"`    // time from which on the turn is to end with the message under way; 0: it is not
	silentSince     time.Duration `state:"past(x.sourceTimeout)"` // time from which on the source has sent nothing while another member waits; 0: no member waits
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

// stopWaiting lets member k, which has left, wait no longer. A turn that was to end for it
// ends for the member that has waited longest of the others, and goes on if none waits.
func (g *group) stopWaiting(now time.Duration, k MemberID) {
	t := &g.turn
	if g.historyOf(k).waits != 0 {
		g.newHistory(k).waits = 0
	}
	if t.next != int32(k) {
		return
	}
	switch g.chooseNext(now); {
	case t.next == none:
		g.setEnding(0)
		t.contendedSince = 0
	case g.is(ending):
		g.setEnding(max(now, 1))
		t.drainedSince = 0 // the other member has all the time to begin
	}
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
	case psn != g.fwd.nxt && g.isDoubted(): // the packet at nxt, which shows it, was lost
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

// requestOfNonSource serves a request of a member that is not the current source.
func (g *group) requestOfNonSource(now time.Duration, p *Packet, f rocev2.OpFlags, out *Output) Reason {
	k, ok := g.memberAt(p.Src)
	if !ok || !g.members[k].live {
		return NotMember
	}
	m := &g.members[k]
	if p.Neighbor != g.legs[m.leg].neighbor {
		return NotMember // not from the neighbour that it was registered behind
	}
	if m.role >= leads {
		return g.serveReply(k, p, f, out)
	}
	if t := g.tree(); t != nil && t.isUnknown(k) && !g.is(failed) {
		return t.requestOfUnknown(now, k, p, out)
	}
	psn := p.PSN & rocev2.PSNMask
	d := psn.Sub(m.sqPSN)
	if d < -m.ackedCount {
		return g.quarantineMember(now, MemberID(k), p, out)
	}
	if now < g.historyOf(MemberID(k)).quarantinedUntil {
		return PSNOutOfRange
	}
	if d < 0 && !(g.tree() != nil && g.tree().knows(k) == positionMoved && !g.is(failed)) {
		return g.answerFormerSource(MemberID(k), p, out)
	}
	if g.repair.path == fastPath {
		out.NeedVerify, out.NeedRevoke = !p.Verified, p.Verified
		return None
	}
	if m.role == receivesOnly {
		return g.rejectReceiveOnly(MemberID(k), p, out)
	}
	if g.is(failed) {
		return g.rejectFailed(MemberID(k), p, out)
	}
	if g.tree() != nil {
		return g.requestInTree(now, k, p, f, out)
	}
	free := g.isQuiescent() && !g.reservedForAnother(now, MemberID(k))
	if !free && psn != m.sqPSN {
		return NotSource
	}
	if !p.Verified {
		out.NeedVerify = true
		return None
	}
	if !free && !g.sourceTimedOut(now, out) {
		if g.is(failed) {
			return g.rejectFailed(MemberID(k), p, out)
		}
		if m.live { // else evicted by sourceTimedOut
			g.waitForTurn(now, MemberID(k), out)
		}
		return NotSource
	}
	if !m.live {
		return NotMember // evicted by sourceTimedOut: it lacked data of the last source
	}
	return g.beginTurn(now, k, p, f, out)
}

// beginTurn makes member k the source, and serves its packet p.
func (g *group) beginTurn(now time.Duration, k MemberID, p *Packet, f rocev2.OpFlags, out *Output) Reason {
	was, first := g.openTurn(now, k, out), g.members[k].sqPSN
	if psn := p.PSN & rocev2.PSNMask; psn != first && was != positionLearnt && !(was == positionMoved && psn.Less(first)) {
		if g.noteMismatch(k, SendPSN, psn, first, out); p.Neighbor != 0 && g.tree().edges.rejoined {
			g.tree().joinLate() // the mismatch may be a lost first packet
		}
	}
	if r := g.handleData(now, p, f, out); r != None {
		return g.hold(now, p, r, out)
	}
	return None
}

// openTurn makes member k the source. It returns what was known of its first PSN.
func (g *group) openTurn(now time.Duration, k MemberID, out *Output) (was knowledge) {
	g.activate(now)
	g.endTurn(out)
	g.startTurn(now, k, out)
	g.noteTurnBegins(now, k)
	if t := g.tree(); t != nil {
		was = t.takeOverTurn(now, k, out)
	}
	g.emitCause(out, SourceChanged, k, g.members[k].sqPSN, 0)
	g.storeBeforeData(out)
	return was
}

// quarantineMember serves a packet of member k, not the source, with a PSN below all that
// was acknowledged to it: a queue pair with other PSNs (R63). An acknowledgement of later
// packets would complete this packet as well (R68).
func (g *group) quarantineMember(now time.Duration, k MemberID, p *Packet, out *Output) Reason {
	if !p.Verified {
		out.NeedVerify = true
		return None
	}
	m := &g.members[k]
	g.newHistory(k).quarantinedUntil = now + quarantine
	g.noteMismatch(k, SendPSN, p.PSN&rocev2.PSNMask, m.sqPSN, out)
	return PSNOutOfRange
}

// answerFormerSource answers a former source that has missed its last ACK: every receiver
// acknowledged all that it sent before sqPSN, or its turn would not have ended. Nothing
// is forwarded, and the current source goes on.
func (g *group) answerFormerSource(k MemberID, p *Packet, out *Output) Reason {
	m := &g.members[k]
	g.counters.DataIn++
	g.counters.rare().Repeated++
	if p.AckReq || p.Op.Is(rocev2.OpEnd) {
		g.counters.FeedbackOut++
		out.Feedback = append(out.Feedback, Feedback{
			Group: g.id, To: k, Op: rocev2.Acknowledge,
			PSN: m.sqPSN.Prev(), Syndrome: rocev2.SyndromeACK, MSN: g.msnTo(k, m.messages),
		})
	}
	return DuplicateData
}

// isQuiescent reports whether another member may become the source: everything
// forwarded is acknowledged, and the source is not in the middle of a message (a
// receiver that got the start of another message there would go into error). A source whose
// data waits for the file is not at rest: otherwise each turn could end before its first
// packet is forwarded, and two sources would end each other's turns for ever.
func (g *group) isQuiescent() bool {
	return g.src.member == none || g.isComplete() && !g.waitsForFile()
}

// isComplete reports whether everything that was forwarded of the source is acknowledged, and
// ends with a message.
func (g *group) isComplete() bool {
	return g.repair.path != fastPath && !g.is(unplaced) && g.agg.acked == g.fwd.nxt.Prev() && !g.fwd.midMessage && (g.policy.quorum == 0 || g.allCaughtUp())
}

// allCaughtUp reports whether every receiver has all that was forwarded. Without a
// quorum the group's acked shows that.
func (g *group) allCaughtUp() bool {
	for i := range g.acks {
		if g.acks[i].flags&isReceiver != 0 && g.acks[i].acked.Less(g.fwd.nxt.Prev()) {
			return false
		}
	}
	return true
}

// endTurn ends the source's turn, and saves the positions of the source and of the
// receivers. It saves the source's quarantine too: R68 withholds the ACK that the source
// would get as a former source, and its next turn.
func (g *group) endTurn(out *Output) {
	if g.src.member == none {
		return
	}
	m := &g.members[g.src.member]
	m.sqPSN, m.messages, m.ackedCount = g.fwd.nxt, g.agg.messages.completed, g.src.ackedCount
	if g.is(quarantined) {
		g.newHistory(MemberID(g.src.member)).quarantinedUntil = g.src.quarantinedUntil
		g.set(quarantined, false)
	}
	for i := range g.acks {
		g.stopReceiving(i)
	}
	if g.is(resumes) {
		g.endResume()
	}
	g.clearStore(g.fwd.nxt, out)
	g.src.member, g.src.leg = none, none
	g.setEnding(0)
}

// startTurn makes member k the source. Its first PSN is known from registration and from
// its earlier turns. It is never learnt from the packet, which may not be the first one
// that it sent (R16).
func (g *group) startTurn(now time.Duration, k MemberID, out *Output) {
	g.activate(now)
	g.beginCosts()
	m := &g.members[k]
	g.src.member, g.src.leg = int32(k), int32(m.leg)
	g.src.addr = m.ip
	g.src.neighbor = g.legs[m.leg].neighbor
	g.setNxt(m.sqPSN, g.fwd.limit)
	g.agg.acked, g.src.ackedCount = m.sqPSN.Prev(), m.ackedCount
	g.agg.request, g.src.hasLastPSN, g.fwd.midMessage = request{}, false, false
	g.fwd.writeMessage = writeMessage{}
	g.setRefusal(refusal{})
	g.turn.refusalReported, g.src.becnDue, g.live.sourceRewound, g.turn.silentSince = false, false, false, 0
	g.due.stop(livenessCheck)
	g.rtt.pending, g.cost.aloneSince = false, 0
	g.agg.numAtAcked, g.agg.numPending, g.fwd.numWithoutWindow, g.recv.joinedInFlight = 0, 0, 0, 0
	g.setReceivers(0)
	g.lag.floor = g.agg.acked
	g.clearStore(g.fwd.nxt, out)
	g.numbering.gap = false
	g.set(unplaced|frozen|asking, false) // but a blocked message stays blocked, of whatever source
	g.agg.messages.reset(m.messages)
	if g.fwd.targets != nil {
		g.fwd.targets.reset()
	}
	for i := range g.legs {
		l := &g.legs[i]
		join := int32(i) != g.src.leg && l.members != 0
		g.acks[i].flags &^= isUnplaced
		switch {
		case join && !g.unproven(i):
			g.startReceiving(i, m.sqPSN)
		case join != l.joining: // an unverified leg joins when it has shown its numbering
			g.setJoining(i, join)
		}
	}
}
