// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"math"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// policyParams is how many receivers an ACK stands for, and how many have to remain. Only
// Apply changes it.
type policyParams struct {
	kind         Policy
	replies      bool  // extra.replies is set
	stored       bool  // GroupSpec.Stored
	quorum       int32 // receivers that must have the acknowledged data; 0: all
	minReceivers int32 // receivers that must remain after an eviction; under Strict more than there are
}

// judge decides on leg i, of which cause is true: it is evicted, the group fails because of it, or it stays.
// It reports whether one of the first two is so.
//
//	cause              under Evict toward the root         if too few others would be left
//	Lagging            stays (R108)                        stays
//	Silent             checkLiveness does not ask (R108)   fails, if acked waits for the leg
//	Stranded, a NAK    evicted                             fails, if acked waits for the leg
//	Misnumbered        evicted                             fails
func (g *group) judge(i int, cause rocev2.Syndrome, out *Output) bool {
	switch spare := g.canEvict(i); {
	case g.ackStateOf(i).flags&isReceiver == 0:
		return g.judgeUnproven(i, cause, spare, out)
	case cause == Lagging && (!spare || g.isKept(i)):
		return false
	case spare:
		g.evict(i, cause, out)
	case cause == Misnumbered || g.acks[i].acked.LessEq(g.agg.acked):
		g.failBecauseOf(g.legs[i].member, cause, out)
	default:
		return false
	}
	return true
}

// judgeUnproven is judge for a leg that is not verified: a message may wait for it, or a file may have named it that
// is older than what its member has had. Without a source such a file is older than the last turn, and fits no member.
func (g *group) judgeUnproven(i int, cause rocev2.Syndrome, spare bool, out *Output) bool {
	l, source := &g.legs[i], g.presentSource()
	waits := g.is(blocked) && l.joining
	fromFile := g.numbering.checks[i].restored && (cause == Misnumbered || g.is(learning))
	switch {
	case spare && (waits || fromFile && source != none && int32(i) != source):
		g.evict(i, cause, out)
	case waits && g.src.member != none && g.agg.acked == g.fwd.nxt.Prev(): // all before the message that waits is complete
		g.failBecauseOf(l.member, cause, out)
	case fromFile:
		g.failResume(l.member, cause, out)
	default:
		return false
	}
	return true
}

// canEvict reports whether the group can go on without leg i: enough others remain that have got, or will get, all
// that is in flight. For a leg that is not verified all others count, receiving or not.
func (g *group) canEvict(i int) bool {
	b, n := g.ackStateOf(i), g.recv.count-g.recv.joinedInFlight
	if b.flags&isReceiver == 0 {
		n = 0
		for j := range g.legs {
			if j != i && int32(j) != g.presentSource() && g.legs[j].members > 0 {
				n++
			}
		}
	} else if b.flags&joinedInFlight == 0 {
		n--
	}
	if g.servesOthers() {
		n++
	}
	return n >= g.policy.minReceivers
}

// servesOthers reports whether the switch is the root under Evict, and the source is behind another switch that has
// receivers too. That switch keeps the leg toward the root (R108), so the root alone decides about its own receivers.
func (g *group) servesOthers() bool {
	source := g.presentSource()
	return g.policy.kind == Evict && source != none && g.legs[source].neighbor != 0 && g.legs[source].members > 1 && g.isRoot()
}

// isRoot reports whether the switch is the root of a tree.
func (g *group) isRoot() bool {
	return g.extra != nil && g.extra.tree != nil && g.extra.tree.place.Parent == 0
}

// presentSource returns the leg of the source, also after a restart.
func (g *group) presentSource() int32 {
	if g.is(learning) {
		return int32(g.members[g.extra.resume.source].leg)
	}
	return g.src.leg
}

// isKept reports whether receiver i is not removed for its silence or its lag (R108): under
// Evict a leg toward the root of the tree. The master hears of removals from the root.
func (g *group) isKept(i int) bool {
	return g.policy.kind == Evict && g.legs[i].neighbor != 0 && g.extra.tree != nil && g.legs[i].neighbor == g.extra.tree.place.Parent
}

func (g *group) setPolicy(spec *GroupSpec) {
	switch spec.Policy {
	case Strict:
		g.policy.minReceivers = math.MaxInt32
	case Evict:
		g.policy.minReceivers = 1
	case Quorum:
		g.policy.quorum, g.policy.minReceivers = int32(spec.Quorum), int32(spec.Quorum)
	}
	g.setReceivers(0)
	g.turn.sourceTimeout, g.turn.time = orDefault(spec.SourceTimeout, DefaultSourceTimeout), orDefault(spec.TurnTime, DefaultTurnTime)
	g.live.deadAfter, g.live.deadAfterMax = spec.DeadAfter, spec.DeadAfterMax
	g.live.setAllDeadAfter(spec.AllDeadAfter)
	g.lag.time, g.lag.psns = spec.LagTime, int32(spec.LagPSNs)
	if g.policy.quorum != 0 && g.lag.psns == 0 {
		g.lag.psns = maxBehind // circular comparison would take a leg that is further behind for one ahead (R61)
	}
	g.live.period = g.live.deadAfter / livenessChecks
	if g.lag.time != 0 && (g.live.period == 0 || g.lag.time/2 < g.live.period) {
		g.live.period = max(g.lag.time/2, time.Millisecond)
	}
}

// orDefault returns d; the default if d is 0, and 0, which means any time, if d is below 0.
func orDefault(d, standard time.Duration) time.Duration {
	if d == 0 {
		return standard
	}
	return max(d, 0)
}

// failure is the fatal NAK that the source of a failed group gets. The gate failed says that
// the group has failed: it forwards nothing and acknowledges nothing more, its store is
// empty, and no timer of it runs.
type failure struct {
	psn      rocev2.PSN      `state:"encoded"` // the source's packet with this PSN is answered with the NAK
	syndrome rocev2.Syndrome `state:"encoded"` // 0: no NAK was sent
}

// fatalSent acts on a fatal NAK that was sent to the source. A receiver's NAK ends the
// group. The switch's own NAK ends the source's queue pair only: nothing reached a
// receiver, and another member may send.
func (g *group) fatalSent(from int, code rocev2.Syndrome, out *Output) {
	if from == none {
		if !g.turn.refusalReported {
			g.turn.refusalReported = true
			g.emitCause(out, SourceRefused, MemberID(g.src.member), g.agg.request.psn, code)
		}
		return
	}
	g.fail(g.legs[from].member, g.agg.request.psn, code, code, out)
}

// failBecauseOf fails the group because of member m: the source gets a fatal NAK of the
// first PSN that is not acknowledged, so what came before completes. The syndrome is why
// if that is the member's own fatal NAK, else remote operational error.
func (g *group) failBecauseOf(m MemberID, why rocev2.Syndrome, out *Output) {
	code := why
	if why.Kind() != rocev2.KindFatal {
		code = rocev2.SyndromeNAKOpErr
	}
	una := g.agg.acked.Next()
	g.agg.request = request{psn: una, severity: sevFatal}
	if una.Less(g.fwd.nxt) || g.is(blocking) {
		g.sendNAK(out, code, una)
	} // else the source has not sent una, and is answered when it does (R75)
	g.fail(m, una, code, why, out)
}

func (g *group) fail(m MemberID, psn rocev2.PSN, code, why rocev2.Syndrome, out *Output) {
	g.set(failed, true)
	g.failure = failure{psn, code}
	g.due.stop(livenessCheck)
	g.clearStore(g.fwd.nxt, out)
	g.emitEvent(out, Event{Kind: GroupFailed, Group: g.id, Member: m, PSN: psn, Syndrome: code, Cause: why})
	if g.src.member != none { // a source that is registered with too high a PSN begins in the middle of a message
		g.reportMismatch(MemberID(g.src.member), SendPSN, out)
	}
}

// evict removes leg i, whose receiver cannot go on.
func (g *group) evict(i int, why rocev2.Syndrome, out *Output) {
	a := g.acks[i].acked
	if g.acks[i].flags&isReceiver == 0 {
		a = g.fwd.nxt.Prev() // nothing that was forwarded is for it
	}
	for m := range g.members {
		if g.members[m].leg == LegID(i) && g.members[m].live {
			g.members[m].live = false
			g.emitCause(out, MemberEvicted, MemberID(m), a, why)
		}
	}
	g.legs[i].members = 0
	g.removeLeg(i)
	g.freeAfterEviction(out)
}

// The policy Quorum: an ACK means that a quorum of the receivers has the data, so a
// receiver may be behind the group's acked (R36, R37).

// maxSourceFlight is how far acked may be beyond the PSN of a request before it is clear that the source
// does not send that again. It is more than the source had in flight when it got the
// NAK.
const maxSourceFlight = 1024

// quorumAcked returns the highest PSN up to which a quorum has all, and sets numAtAcked to
// the number of receivers that have no more or joined in flight.
func (g *group) quorumAcked() rocev2.PSN {
	n := 0
	for i := range g.acks {
		if b := &g.acks[i]; b.flags&(isReceiver|joinedInFlight) == isReceiver {
			g.sw.sortScratch[n] = b.acked.Sub(g.agg.acked)
			n++
		}
	}
	s := g.sw.sortScratch[:n]
	slices.Sort(s)
	at := n - int(g.policy.quorum)
	d := s[at]
	for at < n && s[at] == d {
		at++
	}
	g.agg.numAtAcked = int32(at) + g.recv.joinedInFlight
	return g.agg.acked.Add(d)
}

// numLacking returns how many receivers lack psn, which is acknowledged.
func (g *group) numLacking(psn rocev2.PSN) (n int) {
	for i := range g.acks {
		if b := &g.acks[i]; b.flags&isReceiver != 0 && b.acked.Less(psn) {
			n++
		}
	}
	return n
}

// forwardAgain serves a packet that is acknowledged and that some receiver lacks: the
// source repeats it, so that receiver gets it.
func (g *group) forwardAgain(now time.Duration, p *Packet, psn rocev2.PSN, f rocev2.OpFlags, out *Output) Reason {
	if code, _ := g.checkRequest(p, f); code != 0 || g.is(failed) {
		return g.answerDuplicate(now, p, psn, out)
	}
	if !p.Verified {
		out.NeedVerify = true
		return None
	}
	g.answerDuplicate(now, p, psn, out)
	g.counters.rare().RepeatedBytes += uint64(p.Payload)
	g.forward(now, p, psn, f, out)
	return None
}

// removeStranded gives up one receiver whose pending NAK is of a PSN that the source will
// not send again, because it is acknowledged. It reports whether there was one.
func (g *group) removeStranded(out *Output) bool {
	for i := range g.acks {
		b := &g.acks[i]
		if b.pending == sevNone || !b.acked.Less(g.agg.acked) {
			continue
		}
		if b.pending != sevFatal && g.expectedFromSource(b.acked.Next()) {
			continue
		}
		if b.pending == sevSequence && g.nakCrossesCopy(i, b.acked.Next()) {
			g.setPending(b, sevNone, 0)
			continue
		}
		code := Stranded
		if b.pending == sevFatal {
			code = b.pendingSyndrome
		}
		g.judge(i, code, out)
		return true
	}
	return false
}

// noteRepeat records that psn goes to the receiver again.
func (l *legActivity) noteRepeat(psn rocev2.PSN) {
	if !l.repeatedSinceNAK || psn.Less(l.repeatFirst) {
		l.repeatFirst = psn
	}
	l.repeatedSinceNAK, l.repeatLast = true, psn
}

// nakCrossesCopy reports whether NAK(e) of receiver i, of an acknowledged PSN, may have
// crossed a copy of the packet that it is for: it is the first NAK since that packet went
// to the receiver again (R74).
func (g *group) nakCrossesCopy(i int, e rocev2.PSN) bool {
	l := &g.activity[i]
	if !l.repeatedSinceNAK || e.Less(l.repeatFirst) || l.repeatLast.Less(e) || g.agg.acked.Less(e) {
		return false
	}
	l.repeatedSinceNAK = false
	return true
}

// expectedFromSource reports whether the source is likely to send e again: it was sent a
// NAK of e or of an earlier PSN and has not gone back yet, or it has gone back and is not
// yet past e. A switch above sends the packet that it was sent a NAK of, and perhaps nothing
// behind it (R92).
func (g *group) expectedFromSource(e rocev2.PSN) bool {
	r := &g.agg.request
	if g.src.neighbor != 0 {
		return r.awaits(e)
	}
	return r.isOpen() && r.psn.LessEq(e) || g.src.hasLastPSN && g.src.lastPSN.Less(e)
}

// evictBehind evicts the receivers that lack data that is acknowledged to the source,
// which leaves: nobody else could send it to them.
func (g *group) evictBehind(out *Output) {
	for i := range g.acks {
		if b := &g.acks[i]; b.flags&isReceiver != 0 && b.acked.Less(g.agg.acked) {
			g.evict(i, Stranded, out)
		}
	}
}
