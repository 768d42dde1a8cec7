// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// A group that is put with positions resumes (R83): the switch has restarted, and the
// group's members have not. What each receiver has is learnt from its answer to a
// keepalive probe. Until all have answered nothing is forwarded, acknowledged or refused.

// resume is the state of a group that resumes.
type resume struct {
	source     MemberID `state:"encoded"` // source of the turn that goes on
	unknownEnd bool     `state:"encoded"` // true: it is not known whether nxt-1 ends a message
	lacking    bool     `state:"encoded"` // receivers lacked something when forwarding began, and the source has not sent it since
	// unconfirmed: the source has not shown yet where it goes on, by the first packet that a receiver lacks. The
	// receivers behind other switches may have more.
	unconfirmed bool `state:"encoded"`
	// goneBack is the number of times in a row that the source has gone back to a PSN beyond what a receiver lacks. From
	// strandedAfter on the source is known to send nothing before lowest.
	goneBack uint8 `state:"encoded"`
	// lowest is the lowest PSN of these times: the first packet of one of them may be lost.
	lowest rocev2.PSN `state:"encoded if x.goneBack != 0"`
	seen   bool       `state:"encoded"`           // last is known
	last   rocev2.PSN `state:"encoded if x.seen"` // the PSN of its last packet, forwarded or not
}

// strandedAfter is how often the source goes back to a PSN beyond what a receiver lacks
// before it is certain that it will not send the rest: one packet of three may be lost.
const strandedAfter = 3

// endUnknown reports whether every receiver has all that was forwarded, and only the
// source knows whether that ends a message.
func (g *group) endUnknown() bool {
	return g.is(resumes) && !g.is(unplaced) && g.extra.resume.unknownEnd && g.agg.acked == g.fwd.nxt.Prev() && g.allCaughtUp() &&
		!(g.src.hasLastPSN && g.fwd.nxt.LessEq(g.src.lastPSN) && !g.is(frozen))
}

// isUnconfirmed reports whether receivers behind other switches may have more than is known.
func (g *group) isUnconfirmed() bool { return g.is(resumes) && g.extra.resume.unconfirmed }

// isUnfinished reports whether the source is certainly not at rest. After a restart that is so
// only if a part of a message, or what a receiver lacks, is known here.
func (g *group) isUnfinished() bool {
	switch {
	case g.isQuiescent():
		return false
	case g.is(unplaced), g.isUnconfirmed(), g.endUnknown():
	default:
		return true
	}
	if g.fwd.midMessage && !(g.is(resumes) && g.extra.resume.unknownEnd) || g.waitsForFile() {
		return true
	}
	for i := range g.acks {
		if b := &g.acks[i]; b.flags&(isReceiver|isConnected) == isReceiver|isConnected && b.acked.Less(g.fwd.nxt.Prev()) {
			return true
		}
	}
	return false
}

// endResume forgets what is left to learn: everything is known, or the group has failed.
func (g *group) endResume() {
	if g.is(resumes) {
		g.extra.resume = resume{}
	}
	g.set(resumes|learning, false)
}

// startResume gives the members of g, which is new, their positions. With a source, the
// group resumes its turn. Without one, the next turn may begin when the receivers are
// verified. What is on its way from a receiver has come a quarantine after the switch has last
// sent to it, and silent of that has passed.
func (g *group) startResume(now time.Duration, p *Positions, silent time.Duration) {
	if g.isStale(p) {
		p = &Positions{Members: make([]Position, len(g.members))}
	}
	x := g.newExtra()
	x.firstPSN = make([]rocev2.PSN, len(g.members))
	for i := range g.members {
		x.firstPSN[i] = g.members[i].ePSN
	}
	if p.HasSource {
		x.resume = resume{source: p.Source}
		g.activate(now)
	}
	for i := range g.members {
		m, at := &g.members[i], &p.Members[i]
		if t := g.tree(); t != nil && at.Known && !g.legs[m.leg].connected() {
			if t.note(MemberID(i), positionKnown); t.place.Rebuilt {
				t.note(MemberID(i), positionMoved)
			}
		}
		if at.Known {
			m.ackedCount = addAckedCount(0, int32((at.Send-m.sqPSN)&rocev2.PSNMask))
			if at.FullHistory {
				m.ackedCount = maxBehind
			}
			m.sqPSN, m.ePSN = at.Send, at.Receive
		}
	}
	for i := range g.legs {
		g.startVerification(now, LegID(i))
		l, v := &g.legs[i], &g.numbering.checks[i]
		if !l.connected() {
			continue
		}
		at := &p.Members[l.member]
		v.returning, v.restored, v.positioned = true, true, p.HasSource && at.Known && !at.Joining
		h := g.sw.ports.port(l.port)
		if wait := quarantine + h.txDelay - silent; wait > 0 {
			g.activate(now)
			t := &g.activity[i]
			t.probedFrom, t.pausesApplied = max(t.probedFrom, now+wait), h.paused
		}
	}
	if !p.HasSource {
		return
	}
	g.setNxt(p.Members[p.Source].Send, g.fwd.limit)
	g.agg.acked = g.fwd.nxt.Prev()
	g.set(resumes|learning|blocked, true)
	g.holdJoining(p)
	g.restartKeepalives(now)
}

// positionAnswer serves an answer of the member behind leg i, which has a position, to a
// keepalive probe. Two answers in a row, to a probe and to the next one, show what the
// member expects.
func (g *group) positionAnswer(now time.Duration, p *Packet, i int, kind rocev2.AckKind, out *Output) {
	v, k := &g.numbering.checks[i], g.legs[i].member
	m, first := &g.members[k], g.extra.firstPSN[k]
	expects := p.PSN & rocev2.PSNMask
	if kind == rocev2.KindACK {
		expects = expects.Next()
	}
	empty := isEmptyAnswer(p) && first != 0 && m.ePSN.LessEq(first)
	if empty {
		expects = first // it has received nothing yet
	}
	beyond := expects.Sub(m.ePSN)
	wrong := kind != rocev2.KindACK || beyond < 0 || beyond >= maxUnstored || k == g.extra.resume.source && beyond != 0
	switch {
	case !v.answeredOnce || v.answeredPSN != expects || v.wrongAnswer != wrong:
		*v = verification{pending: true, positioned: true, restored: true, returning: true, probesSent: v.probesSent, answeredOnce: true, answeredPSN: expects, wrongAnswer: wrong}
		g.restartKeepalives(now)
	case wrong || !v.probedAgain: // judgeProbed counts the probes
	default:
		v.isRXE, v.acceptedNothing = empty, empty
		g.endVerification(LegID(i))
		g.endProbes(now, out)
	}
}

// probePatience returns how long leg i, which was probed, may be silent while data waits for
// it; 0: without end.
func (g *group) probePatience(i int) time.Duration {
	switch {
	case !g.numbering.checks[i].positioned:
		return g.live.deadAfter
	case g.live.deadAfter == 0:
		return g.turn.sourceTimeout
	}
	return g.livenessTimeout(i)
}

// failResume fails a group whose positions cannot be learnt. No NAK goes to the source: it
// would acknowledge what came before its PSN.
func (g *group) failResume(m MemberID, why rocev2.Syndrome, out *Output) {
	g.endResume()
	g.set(blocked, false)
	g.fail(m, g.fwd.nxt, 0, why, out)
	g.src.member, g.src.leg = none, none
}

// endProbes begins to forward if the positions of all members are known.
func (g *group) endProbes(now time.Duration, out *Output) {
	if !g.is(learning) || g.is(failed) {
		return
	}
	for i := range g.legs {
		if v := &g.numbering.checks[i]; v.pending && v.restored {
			return
		}
	}
	g.set(blocked, false)
	base := g.fwd.nxt
	k := g.extra.resume.source
	var joining, waiting []LegID // legs from the next message on, to members here and to other switches
	for i := range g.legs {
		switch v, l := &g.numbering.checks[i], &g.legs[i]; {
		case l.joining:
			waiting = append(waiting, LegID(i))
		case !v.positioned && l.members != 0 && l.member != k && l.connected():
			joining = append(joining, LegID(i))
		}
	}
	g.startTurn(now, k, out)
	if g.turn.contendedSince != 0 {
		g.turn.contendedSince = max(now, 1) // the source could not send before
	}
	g.unplaceReceivers()
	for _, i := range waiting {
		g.setJoining(int(i), g.src.neighbor == 0)
	}
	for _, i := range joining { // those without a position receive from the next message on
		g.stopReceiving(int(i))
		g.setJoining(int(i), true)
	}
	hi := base.Prev()
	for i := range g.acks {
		if b := &g.acks[i]; b.flags&isReceiver != 0 {
			v := &g.numbering.checks[i]
			g.noteAcked(b, base.Add(v.answeredPSN.Sub(g.members[g.legs[i].member].ePSN)-1))
			hi = rocev2.MaxPSN(hi, b.acked)
		}
	}
	g.setNxt(hi.Next(), g.fwd.limit)
	g.fwd.midMessage = true
	g.clearStore(g.fwd.nxt, out)
	g.extra.resume = resume{source: k, unknownEnd: true, unconfirmed: true, lacking: g.firstLacking() != g.fwd.nxt}
	g.set(learning, false)
	for i := range g.acks {
		g.resumeLeg(i)
	}
	if g.policy.stored {
		g.setNxt(g.fwd.nxt, base.Add(maxUnstored))
		g.set(awaitsFile, false)
	}
	g.emitCause(out, SourceChanged, k, base, 0)
	g.evaluate(out)
	if g.is(failed) {
		return
	}
	for i := range g.numbering.checks {
		g.numbering.checks[i].positioned = false
	}
	if n, una := &g.numbering, g.firstLacking(); una != g.fwd.nxt {
		n.gap, n.gapFrom, n.gapNext = true, una, g.fwd.nxt
	}
	if t := g.tree(); t != nil {
		t.announce(now, out)
	}
	if g.policy.stored {
		g.reportPositions(out)
		g.set(mayHold, true)
	}
	if g.live.period != 0 {
		g.startLiveness(now)
	}
	g.resend(now, out)
}

// firstLacking returns the first PSN that a receiver lacks, nxt if none does.
func (g *group) firstLacking() rocev2.PSN {
	una := g.fwd.nxt
	for i := range g.acks {
		if b := &g.acks[i]; b.flags&isReceiver != 0 && b.acked.Next().Less(una) {
			una = b.acked.Next()
		}
	}
	return una
}

// resumeLeg lets leg i, if it lacks something below nxt, get it from the source.
func (g *group) resumeLeg(i int) {
	b := &g.acks[i]
	if b.flags&isReceiver == 0 || b.acked == g.fwd.nxt.Prev() {
		return
	}
	if g.repair.store == nil {
		g.setPending(b, sevSequence, rocev2.SyndromeNAKSequence)
		return
	}
	m := &g.activity[i].recovery
	m.ackReqPSN, m.resentPSN, m.expectedACK = b.acked, b.acked, b.acked
	g.deliver(i, nakServed)
	m.resendFrom(b.acked.Next())
	if b.flags&isConnected == 0 {
		m.firstUnsent = m.cursor // whatever it has been sent: nobody knows
	}
}

// noteResumed notes what the source's packet psn, which is verified, shows after a
// restart: whether the source sends what receivers lack, and whether nxt-1 ends a message. A
// source behind another switch shows it there: the neighbour is asked.
func (g *group) noteResumed(now time.Duration, psn rocev2.PSN, f rocev2.OpFlags, out *Output) {
	if d := psn.Sub(g.agg.acked); d <= -g.src.ackedCount || d > maxAhead {
		return
	}
	r := &g.extra.resume
	switch una := g.agg.acked.Next(); {
	case g.is(unplaced):
	case psn.LessEq(una):
		r.lacking, r.unconfirmed, r.goneBack = false, false, 0
	case r.unconfirmed && g.src.neighbor != 0:
		if t := g.tree(); t.mayPoll(now) {
			t.notePolled(now)
			t.poll(now, LegID(g.src.leg), out)
		}
	case r.unconfirmed && r.goneBack < strandedAfter && r.seen && psn.LessEq(r.last):
		if r.goneBack++; r.goneBack == 1 || psn.Less(r.lowest) {
			r.lowest = psn
		}
		if r.goneBack == strandedAfter {
			g.passOver(now, r.lowest, out)
		}
	}
	r.seen, r.last = true, psn
	switch {
	case !r.unknownEnd:
	case psn.Next() == g.fwd.nxt:
		r.unknownEnd, g.fwd.midMessage = false, f&rocev2.OpEnd == 0
	case psn == g.fwd.nxt: // the packet may be refused
		r.unknownEnd, g.fwd.midMessage = false, f&rocev2.OpStart == 0
	}
	g.endWatch()
}

// noteEnd notes that the source's packet before psn ends a message, as a neighbour has said.
func (g *group) noteEnd(psn rocev2.PSN) {
	if g.is(resumes) && g.extra.resume.unknownEnd && psn == g.fwd.nxt && !g.is(learning) {
		g.extra.resume.unknownEnd, g.fwd.midMessage = false, false
		g.endWatch()
	}
}

// endWatch forgets what is left to learn if the source has shown all.
func (g *group) endWatch() {
	if r := &g.extra.resume; !r.unknownEnd && !r.unconfirmed {
		g.endResume()
	}
}

// removeJoining removes joining members, under any policy: their first message may be before where the source goes on.
func (g *group) removeJoining(out *Output) {
	for i := range g.legs {
		if g.legs[i].joining {
			g.evict(i, Stranded, out)
		}
	}
}

// passOver acts on a source that sends nothing before psn (R115). A receiver that lacks a packet before psn,
// and lacked it when forwarding began, is stranded. A joining member whose first message may be there is removed
// under any policy: it has had nothing. A switch below is told, does the same, and then says what its members have.
func (g *group) passOver(now time.Duration, psn rocev2.PSN, out *Output) {
	g.activate(now)
	if g.fwd.nxt.Less(psn) {
		g.removeJoining(out)
		if g.src.neighbor != 0 || g.is(noReceivers) {
			g.raiseNxt(psn)
		}
	}
	r := g.watchTurn()
	r.goneBack, r.lowest = strandedAfter, psn
	for i := range g.acks {
		if b := &g.acks[i]; r.lacking && b.flags&(isReceiver|isConnected) == isReceiver|isConnected && b.acked.Next().Less(psn) && !g.is(failed) {
			g.judge(i, Stranded, out)
		}
	}
	if g.is(failed) {
		return
	}
	g.evaluate(out)
	g.resend(now, out)
	if t := g.tree(); t != nil {
		t.announce(now, out)
	}
}

// passedOver returns the PSN before which the source is known to send nothing, if there is one.
func (g *group) passedOver() (rocev2.PSN, bool) {
	r := &g.extra.resume
	return r.lowest, g.is(resumes) && r.goneBack >= strandedAfter
}

// isPassedOver reports whether it is news that the source sends nothing before psn, and a receiver lacks it.
func (g *group) isPassedOver(psn rocev2.PSN) bool {
	known, ok := g.passedOver()
	return g.agg.acked.Next().Less(psn) && !(ok && psn.LessEq(known))
}
