// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Verification of a receiver's numbering (R52 to R55).
//
// A responder takes a PSN below the one that it expects for a duplicate: it
// acknowledges it, unread, with the last PSN that it has (C9-105). An ACK therefore
// proves nothing about a receiver that was registered with a PSN lower than the one
// that it expects. So before a new receiver gets data, a keepalive probe (RFC 9293
// 3.8.4: a segment from before the window) has it say which PSN it expects: a WRITE
// of no bytes with AckReq, and a PSN that is a duplicate to any receiver whose
// numbering is not more than probeBack off. It has no effect.

const (
	// maxProbeWait times PSNProbe is the longest wait between two probes.
	maxProbeWait = 64
	// probeBack is how far below the registered PSN a probe is: half of what a
	// responder takes for duplicates.
	probeBack = 1 << 22
	// probeBurst is how many probes one call sends.
	probeBurst = 64
	// idleProbes is how many rounds of probes there are while no data waits for an
	// answer.
	idleProbes = 10
	// wrongAnswers is after how many more probes an answer with a wrong PSN is
	// believed. A single one may be a late packet of the member's last queue pair.
	wrongAnswers = 2
)

// Probe is a keepalive probe to build and send to the member behind a connected
// leg: a WRITE_ONLY of no bytes with AckReq.
type Probe struct {
	Group GroupID
	Leg   LegID
	PSN   rocev2.PSN // in the member's space
}

// verification is what a receiver has shown of its numbering.
type verification struct {
	expects rocev2.PSN // the PSN that its last answer names, if wrong; in the member's space
	before  rocev2.MSN // the source's messages before its first one, if fresh
	pending bool       // it has not shown the registered PSN yet, and gets no data
	fresh   bool       // it had accepted nothing, and did not say what it expects: MSN has to prove it
	wrong   bool       // its last answer names another PSN
	probes  uint8      // sent since it first gave that answer
	rxe     bool       // it is rdma_rxe, and says ffffff before it has accepted anything
	sent    uint8      // probes in all, at most 255
	empty   uint8      // ... and answers to them of that kind that came after its first data, if rxe

	back  bool // it was a member lately (R73): track.from says when it may be probed
	once  bool // it has given the right answer once ...
	twice bool // ... and was probed since
}

// numbering is a group's part of the verification.
type numbering struct {
	every   time.Duration // first wait for an answer; 0: nothing is verified
	wait    time.Duration // the present one between two rounds of probes
	pending int32         // legs that have not shown their numbering
	next    LegID         // to be probed next in this round
	rounds  uint8         // since the first, or since data began to wait
	armed   bool
	at      time.Duration // of the next probes, if armed
	later   time.Duration // the first of those that could not be probed in this round yet may be then; 0: there is none
	since   time.Duration // when the message began to wait, if held
	held    bool          // a message waits for receivers to show their numbering
	resume  bool          // it need not wait any more: the source is to be asked for it

	gap              bool       // some of these PSNs of the source may not have passed:
	gapFrom, gapNext rocev2.PSN // gapFrom to gapNext - 1
}

// passes keeps account of gaps in what has passed. hi is the PSN after the highest
// before psn.
func (n *numbering) passes(psn, hi rocev2.PSN) {
	switch {
	case hi.Less(psn) && !n.gap:
		n.gap, n.gapFrom, n.gapNext = true, hi, psn
	case hi.Less(psn):
		n.gapNext = psn
	case n.gap && psn == n.gapFrom:
		n.gapFrom = psn.Next()
		n.gap = n.gapFrom != n.gapNext
	}
}

// unverify begins the verification of a leg that a new member is behind.
func (g *group) unverify(now time.Duration, i LegID) {
	l := &g.legs[i]
	if g.numbers.every == 0 || !l.connected() {
		return
	}
	v := &g.checks[i]
	if !v.pending {
		g.numbers.pending++
	}
	*v = verification{pending: true}
	if t := g.sw.departed.since(now, &g.sw.hearing, g.ip, g.members[l.member].ip); t > 0 {
		g.activate(now)
		v.back = true
		g.tracks[i].from, g.tracks[i].unheard = t, g.sw.hearing.at(l.port).unheard
	}
	g.probeSoon(now)
}

// unproven says whether leg i has not shown its numbering, and has to.
func (g *group) unproven(i int) bool { return g.checks != nil && g.checks[i].pending }

// verified ends the verification of leg i: it has shown its numbering, or is gone.
func (g *group) verified(i LegID) {
	if g.unproven(int(i)) {
		v := &g.checks[i]
		v.pending = false
		g.numbers.pending--
	}
}

// probeSoon begins a new series of probes.
func (g *group) probeSoon(now time.Duration) {
	n := &g.numbers
	n.wait, n.rounds, n.next, n.later = n.every, 0, 0, 0
	n.armed, n.at = true, now
}

// probe sends a round of probes, or the next part of one, and gives up receivers
// that a message waits for in vain.
func (g *group) probe(now time.Duration, out *Output) {
	n := &g.numbers
	n.armed = false
	sent := 0
	for ; int(n.next) < len(g.legs) && n.pending > 0 && !g.dead; n.next++ {
		v := &g.checks[n.next]
		if !v.pending {
			continue
		}
		if t := g.quiet(now, int(n.next)); t > 0 {
			if n.later == 0 || t < n.later {
				n.later = t
			}
			continue
		}
		if g.dismissed(now, int(n.next), out) {
			continue
		}
		if sent == probeBurst {
			n.armed, n.at = true, now
			return
		}
		sent++
		if v.sent == 0 && v.back {
			n.wait, n.rounds, g.tracks[n.next].from = n.every, 0, now
		}
		v.twice = v.once
		v.sent = min(v.sent, 254) + 1
		if v.wrong {
			v.probes = min(v.probes+1, wrongAnswers)
		}
		out.Probes = append(out.Probes, Probe{Group: g.id, Leg: n.next, PSN: g.members[g.legs[n.next].member].r.Add(-probeBack)})
	}
	later := n.later
	n.next, n.later = 0, 0
	g.resumeHeld(out)
	if n.pending == 0 || g.dead || !n.held && later == 0 && n.rounds >= idleProbes {
		return
	}
	n.rounds = min(n.rounds+1, idleProbes)
	n.armed, n.at = true, now+n.wait
	if later > 0 {
		n.at = min(n.at, later)
	}
	if end := n.since + g.deadAfter; n.held && g.deadAfter > 0 && now < end {
		n.at = min(n.at, end)
	}
	n.wait = min(2*n.wait, maxProbeWait*n.every)
}

// dismissed reports whether unverified leg i was given up: a message waits for it,
// and it expects another PSN, or is silent while others are not.
func (g *group) dismissed(now time.Duration, i int, out *Output) bool {
	n, l := &g.numbers, &g.legs[i]
	v := &g.checks[i]
	why := Silent
	switch {
	case v.wrong && v.probes >= wrongAnswers:
		g.tellMisnumbered(i, v.expects, out)
		why = Misnumbered
	case v.wrong || v.back && v.sent == 0 || g.deadAfter == 0 || !n.held || now-max(n.since, g.probedFrom(i)) < g.deadAfter || !g.anyVerified():
		return false
	}
	switch {
	case !n.held || !l.joining:
		return false
	case g.dispensable(i):
		g.evict(i, why, out)
		return true
	case g.src != nobody && g.a == g.hi.Prev(): // all before the message that waits is complete
		g.abort(l.member, why, out)
		return true
	}
	return false
}

// tellMisnumbered says that the member behind leg i expects another PSN, once.
func (g *group) tellMisnumbered(i int, expects rocev2.PSN, out *Output) {
	l := &g.legs[i]
	m := g.newMismatch(l.member, ReceivePSN)
	m.Seen, m.Want, m.Times = expects, g.members[l.member].r, m.Times+1
	g.tellMismatch(l.member, ReceivePSN, out)
}

// anyVerified says whether some receiver has shown its numbering: if none has, the
// fault is more likely on this side.
func (g *group) anyVerified() bool {
	for i := range g.legs {
		if l := &g.legs[i]; int32(i) != g.srcLeg && l.members > 0 && !g.unproven(i) {
			return true
		}
	}
	return false
}

// dispensable is spare for a leg that does not receive yet: as many others as the
// policy wants are live, receiving or not.
func (g *group) dispensable(i int) bool {
	n := int32(0)
	for j := range g.legs {
		if j != i && int32(j) != g.srcLeg && g.legs[j].members > 0 {
			n++
		}
	}
	return n >= g.keep
}

// ready says whether the message at hi may begin: all receivers that wait for it have
// shown their numbering or, under Quorum, enough of all receivers have.
func (g *group) ready() bool {
	if g.numbers.pending == 0 {
		return true
	}
	n := int32(0)
	for i := range g.legs {
		l := &g.legs[i]
		if int32(i) == g.srcLeg || l.members == 0 {
			continue
		}
		switch {
		case !g.unproven(i):
			n++
		case g.quorum == 0 && l.joining:
			return false
		}
	}
	return n >= g.quorum
}

// busy says whether data has waited for receivers, or does.
func (n *numbering) busy() bool { return n.held || n.resume }

// waits says whether new data at psn has to wait for receivers to show their
// numbering. If not, and a message begins at psn, those that wait for one join.
//
// Nothing behind a gap is forwarded while some wait to join: the packet in which a
// message begins for them may be the missing one. The source is asked for it.
func (g *group) waits(now time.Duration, psn rocev2.PSN, starts bool, out *Output) bool {
	n := &g.numbers
	switch {
	case psn != g.hi && !n.held && g.njoin > 0:
		g.differs(MemberID(g.src), SendPSN, psn, g.hi, out)
		n.resume = true
		g.eval(out)
		return true
	case psn != g.hi:
		n.resume = false // receivers ask for what is before
		return n.held
	case n.held && g.ready():
		n.held = false
	case n.held, starts && g.njoin > 0 && !g.ready():
		g.hold(now, psn)
		return true
	}
	n.resume = false
	if starts && g.njoin > 0 {
		g.join(psn)
	}
	return false
}

// hold has the message at psn wait for receivers to show their numbering.
func (g *group) hold(now time.Duration, psn rocev2.PSN) {
	g.count.DataIn++
	if g.nsev != noPend && psn == g.nout {
		g.seen = true
	}
	if n := &g.numbers; !n.held {
		n.held, n.resume, n.since = true, false, now
		for i := range g.checks {
			g.checks[i].probes = 0 // its queue pair may be another one by now
		}
		g.probeSoon(now)
	}
}

// resumeHeld asks the source for the message that has waited, if it need not wait
// any more: the source would find out by its own timeout only.
func (g *group) resumeHeld(out *Output) {
	if n := &g.numbers; n.held && !g.dead && g.ready() {
		n.held, n.resume = false, g.src != nobody
		if n.resume {
			g.eval(out)
		}
	}
}

// unverifiedLeg returns the leg of the member that p is from, if it has not shown its
// numbering yet.
func (g *group) unverifiedLeg(p *Packet) (leg int, ok bool) {
	if g.numbers.pending == 0 || p.Neighbor != 0 {
		return 0, false
	}
	m, ok := g.memberAt(p.Src)
	if !ok || !g.members[m].live {
		return 0, false
	}
	i := int(g.members[m].leg)
	return i, g.unproven(i)
}

// probeAnswer serves an acknowledgement of the member behind leg i, which is
// unverified: no data has gone to it, so it answers a probe, or is late.
func (g *group) probeAnswer(now time.Duration, p *Packet, i int, kind rocev2.AckKind, out *Output) Reason {
	if g.dead {
		return GroupDead
	}
	if !p.Verified {
		out.NeedVerify = true
		return None
	}
	g.count.FeedbackIn++
	l := &g.legs[i]
	v, r := &g.checks[i], g.members[l.member].r
	if v.sent == 0 {
		return FeedbackStale // to data of an earlier registration, of which more may be on the way
	}
	expects := p.PSN & rocev2.PSNMask
	if kind == rocev2.KindACK {
		expects = expects.Next()
	}
	fresh := kind == rocev2.KindACK && nothingYet(p) && r != 0
	if expects == r && kind == rocev2.KindACK || fresh { // a probe is a duplicate to a receiver that expects r: no NAK answers it
		if v.back && !v.twice {
			if !v.once {
				v.once = true
				g.probeSoon(now)
			}
			return None
		}
		v.rxe, v.fresh, v.wrong = fresh, fresh, false
		if m := g.mismatch(l.member, ReceivePSN); m != nil {
			m.Times = 0
		}
		g.verified(LegID(i))
		g.resumeHeld(out)
		return None
	}
	v.once, v.twice = false, false
	if !v.wrong || v.expects != expects {
		v.wrong, v.expects, v.probes = true, expects, 0
	}
	return None
}

// misnumbered ends receiver i, whose acknowledgement p cannot be of what it was sent:
// it has another numbering (R54).
func (g *group) misnumbered(p *Packet, i int, out *Output) {
	l := &g.legs[i]
	g.tellMisnumbered(i, p.PSN.Next()&rocev2.PSNMask, out)
	if g.spare(i) {
		g.evict(i, Misnumbered, out)
		g.eval(out)
		return
	}
	g.abort(l.member, Misnumbered, out)
}

// nothingYet says whether p is how rdma_rxe acknowledges a duplicate before it has
// accepted anything: whatever it expects, with PSN ffffff, and with no message.
func nothingYet(p *Packet) bool { return p.PSN == rocev2.PSNMask && p.MSN == 0 }

// surplus is how many answers there may be to a probe beyond the one: networks
// duplicate.
const surplus = 4

// stale says whether acknowledgement p of receiver i must not count: it may be a late
// answer to a probe, or it covers a gap in what has passed. When there are more such
// answers than there were probes, some of them answer data, which the receiver has
// taken for duplicates.
func (g *group) stale(p *Packet, i int, acks rocev2.PSN) bool {
	if g.checks == nil {
		return false
	}
	v, n := &g.checks[i], &g.numbers
	if v.fresh && n.gap && n.gapFrom.LessEq(acks) && g.branches[i].a.Less(acks) {
		return true // messages may have ended that were not counted
	}
	if !v.rxe || p.Syndrome.Kind() != rocev2.KindACK || !nothingYet(p) {
		return false
	}
	v.empty = min(v.empty, 254) + 1
	return !v.fresh || int(v.empty) <= int(v.sent)+surplus
}

// unread says whether acknowledgement p of receiver i, which had accepted nothing when it
// answered the probe, is for messages that it did not execute: MSN counts those
// that it did.
func (g *group) unread(p *Packet, i int, psn rocev2.PSN) bool {
	if g.checks == nil {
		return false
	}
	v := &g.checks[i]
	had := g.branches[i].a
	acks := acknowledged(p.Syndrome.Kind(), psn)
	switch {
	case !v.fresh:
		return false
	case p.Syndrome.Kind() == rocev2.KindSequence && (p.PSN & rocev2.PSNMask).Less(g.members[g.legs[i].member].r):
		return true // it never had what is before
	case p.Syndrome.Kind() == rocev2.KindACK && nothingYet(p):
		if psn.Less(had) || g.hi.LessEq(psn) {
			return true // of nothing that it was sent
		}
	case acks.LessEq(had):
		return false
	}
	due, exact := g.msgs.through(acks)
	if !exact || acks.Less(g.a) { // behind a quorum, nobody knows how many messages these were
		return false
	}
	v.fresh = due == v.before // the first message's end tells
	return p.MSN != (due-v.before)&rocev2.PSNMask
}
