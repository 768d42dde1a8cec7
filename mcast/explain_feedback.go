// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"strings"

	"github.com/gleam-rdma/gleam/rocev2"
)

// identifyReceiver says whose feedback the packet is, and of which PSN of the source.
func (x *explainer) identifyReceiver() {
	g, p := x.was, x.p
	if g.isAnswerToReply(p) {
		x.add(rules("R107"), "It is the only source's: it goes to the member whose replies the source gets, verified.")
		return
	}
	if i, ok := g.unverifiedLeg(p); ok {
		x.add(rules("R52"), "%s has not shown yet that it expects PSN 0x%06x: this may answer a keepalive probe, and acknowledges nothing.", p.Src, g.members[g.legs[i].member].ePSN)
		return
	}
	i, r := g.legOf(p)
	if r != None {
		return
	}
	if p.Neighbor != 0 {
		x.add(rules("R18", "R21", "R87"), "It is of the leg to neighbour %d, for the present source and registration: its PSN is the source's.", p.Neighbor)
	} else {
		x.add(rules("R21"), "It is of the leg of %s.", p.Src)
	}
	if p.Op != rocev2.Acknowledge || isSelectiveNAK(p) {
		return
	}
	b := &g.acks[i]
	psn := (x.psn - rocev2.PSN(b.delta)) & rocev2.PSNMask
	if b.delta != 0 {
		x.add(rules("R18"), "PSN 0x%06x of its numbering is 0x%06x of the source's.", x.psn, psn)
	}
	acks := ackedBy(p.Syndrome.Kind(), psn)
	implied := ""
	if p.Syndrome.Kind() != rocev2.KindACK {
		implied = fmt.Sprintf(" It is a NAK of 0x%06x, so it acknowledges the PSN before that.", psn)
	}
	x.add(rules("R01", "R03"), "It acknowledges all up to 0x%06x; so far this leg had 0x%06x, the group 0x%06x, and 0x%06x is the next new PSN.%s", acks, b.acked, g.agg.acked, g.fwd.nxt, implied)
}

// describeFeedbackEffects says what feedback changes.
func (x *explainer) describeFeedbackEffects() {
	if x.Verdict == VerdictForwarded {
		x.add(rules("R107"), "The packet goes to the leader, in its PSNs.")
		return
	}
	if x.Verdict != VerdictRecorded {
		return
	}
	if isSelectiveNAK(x.p) {
		x.add(rules("R106"), "A selective NAK names missing packets: those that are retained go there at once, and nothing is acknowledged.")
		return
	}
	if i, ok := x.was.unverifiedLeg(x.p); ok {
		if x.g.unproven(i) {
			x.add(rules("R55", "R73"), "The answer is noted; it does not verify the receiver yet.")
		} else {
			x.add(rules("R52", "R53"), "The answer is the right one: the receiver is verified, and receives from the next message on.")
		}
		return
	}
	if x.p.Op == rocev2.CNP {
		x.add(rules("R32"), "The leg counts as the most congested one: its notification passes.")
		return
	}
	i, r := x.was.legOf(x.p)
	if r == None && i < len(x.g.acks) {
		x.describeLeg(i)
	}
	x.describeAcked()
	if x.p.BECN {
		text := "is filtered: another leg is more congested"
		if x.g.src.becnDue || len(x.out.Feedback) != 0 && x.out.Feedback[0].BECN {
			text = "passes to the source with the next ACK"
		}
		x.add(rules("R32"), "BECN of this packet %s.", text)
	}
}

// describeLeg says what the feedback changes in the state of its leg.
func (x *explainer) describeLeg(i int) {
	was, is := &x.was.acks[i], &x.g.acks[i]
	name := x.g.legName(i)
	if was.acked.Less(is.acked) {
		x.add(rules("R01"), "%s has all up to 0x%06x now, %s.", name, is.acked, packets(is.acked.Sub(was.acked), "more", "more"))
	}
	m := &x.g.activity[i].recovery
	kind := x.p.Syndrome.Kind()
	switch {
	case is.pending != sevNone && (was.pending != is.pending || was.acked != is.acked):
		text, r := "is the group's next one: it is due", rules("R07", "R14")
		if is.acked != x.g.agg.acked {
			text = fmt.Sprintf("waits until all receivers have all before it; the group has 0x%06x", x.g.agg.acked)
		}
		if kind == rocev2.KindRNR {
			r = append(r, "R19")
		} else if kind == rocev2.KindFatal {
			r = append(r, "R25")
		}
		x.add(r, "The NAK of 0x%06x is pending, and %s.", is.acked.Next(), text)
	case was.pending != sevNone && is.pending == sevNone:
		x.add(rules("R08"), "The pending NAK of 0x%06x ends: that packet is acknowledged.", was.acked.Next())
	case was.pending != sevNone && kind != rocev2.KindACK:
		x.add(rules("R09", "R19"), "A NAK of the same PSN, as severe or more, is pending already.")
	case kind != rocev2.KindACK && !x.g.legs[i].connected() && x.g.counters.rare().NAKsServed != x.was.counters.counters().NAKsServed:
		x.add(rules("R43", "R92"), "The store serves the NAK of the other switch: packet 0x%06x goes there, and others that it may lack.", is.acked.Next())
	case kind != rocev2.KindACK && m.state == waiting:
		x.add(rules("R43", "R46"), "The store serves the NAK: the packet goes to %s again in %v, when its RNR timer has passed, and the source is not told.", name, max(0, m.resumeAt-x.now))
	case kind != rocev2.KindACK && m.state != inSync:
		x.add(rules("R43", "R44"), "The store serves the NAK from 0x%06x on, and the source is not told.", is.acked.Next())
	case kind == rocev2.KindSequence && x.g.policy.quorum != 0:
		x.add(rules("R74"), "The packet has gone to it again since: the NAK has met the copy on its way.")
	}
}

// describeAcked says whether the group's acked moves, and what it waits for if it does not.
func (x *explainer) describeAcked() {
	g := x.g
	if g.src.member == none || g.is(failed) {
		return
	}
	if x.was.agg.acked != g.agg.acked {
		if q := g.policy.quorum; q != 0 {
			x.add(rules("R36"), "%d receivers have all up to 0x%06x: the group's acked moves there from 0x%06x.", q, g.agg.acked, x.was.agg.acked)
			return
		}
		x.add(rules("R01", "R02"), "Every receiver has all up to 0x%06x: the group's acked moves there from 0x%06x.", g.agg.acked, x.was.agg.acked)
		return
	}
	if g.agg.acked == g.fwd.nxt.Prev() {
		return
	}
	held := g.holders()
	names, more := held, ""
	if len(names) > 4 {
		names, more = names[:4], fmt.Sprintf(" and %d others", len(held)-4)
	}
	if len(names) != 0 {
		x.add(rules("R02", "R11"), "The group's acked stays at 0x%06x, and no ACK goes out: it waits for %s%s.", g.agg.acked, strings.Join(names, ", "), more)
	}
}

// holders names the receivers that acked waits for.
func (g *group) holders() (names []string) {
	for i := range g.acks {
		if b := &g.acks[i]; b.flags&isReceiver != 0 && b.acked.LessEq(g.agg.acked) {
			names = append(names, g.legName(i))
		}
	}
	return names
}

// describeAnswers says what goes to the source, or to another member, and by which rules.
func (x *explainer) describeAnswers() {
	for i := range x.out.Feedback {
		f := &x.out.Feedback[i]
		to := x.g.memberIP(f.To)
		if f.Op == rocev2.CNP {
			x.add(rules("R32"), "A CNP goes to the source %s.", to)
			continue
		}
		switch f.Syndrome.Kind() {
		case rocev2.KindACK:
			x.add(x.rulesOfACK(f), "An ACK of 0x%06x goes to %s.", f.PSN, to)
		case rocev2.KindRNR:
			x.add(x.rulesOfRNR(f), "An RNR NAK of 0x%06x goes to %s: it waits %v and sends that packet again.", f.PSN, to, f.Syndrome.RNRCode().Duration())
		case rocev2.KindSequence:
			x.add(x.rulesOfSequenceNAK(), "A sequence NAK of 0x%06x goes to %s: it sends from there on again.", f.PSN, to)
		default:
			r, status := x.rulesOfFatal(f), map[rocev2.Syndrome]int{rocev2.SyndromeNAKInvalid: 9, rocev2.SyndromeNAKAccess: 10, rocev2.SyndromeNAKOpErr: 11}[f.Syndrome]
			x.add(r, "A fatal NAK (0x%02x) of 0x%06x goes to %s: its work request completes with status %d.", uint8(f.Syndrome), f.PSN, to, status)
		}
	}
}

func (x *explainer) rulesOfACK(f *Feedback) []string {
	switch {
	case x.hasRole(follows) || x.g.policy.replies && x.g.isAnswerToReply(x.p):
		return rules("R107")
	case int32(f.To) != x.g.src.member:
		return rules("R29")
	case x.Reason == DuplicateData:
		r := rules("R11", "R12", "R20")
		if x.p.Neighbor != 0 {
			r = append(r, "R13")
		}
		return r
	}
	return rules("R11", "R20")
}

func (x *explainer) rulesOfRNR(f *Feedback) []string {
	switch {
	case x.Reason == NoToken && int32(f.To) == x.g.src.member:
		return rules("R86")
	case x.Reason == NoToken:
		return rules("R66", "R84")
	case int32(f.To) != x.g.src.member:
		return rules("R66")
	case x.g.is(messageRefused):
		return rules("R77")
	}
	return rules("R14", "R19")
}

func (x *explainer) rulesOfSequenceNAK() []string {
	switch {
	case x.was.is(lostNxt) || x.g.is(lostNxt):
		return rules("R103")
	case x.was.is(asking) || x.g.is(asking):
		return rules("R53", "R102")
	case x.g.repair.numRecovering != 0:
		return rules("R09", "R14", "R47")
	}
	return rules("R09", "R14")
}

func (x *explainer) rulesOfFatal(f *Feedback) []string {
	switch {
	case x.Reason == NotSender:
		return rules("R76")
	case x.hasRole(follows):
		return rules("R107")
	case x.Reason == FailedGroup && int32(f.To) != x.g.src.member:
		return rules("R80")
	case x.g.is(refused):
		return append(rules("R14"), x.g.refusal.reason.Rules()...)
	case x.g.is(failed) && f.Syndrome == rocev2.SyndromeNAKOpErr && x.g.failure.syndrome == f.Syndrome:
		return rules("R25", "R39", "R75")
	}
	return rules("R14", "R25")
}

// describeEvents says what the control plane is told.
func (x *explainer) describeEvents() {
	for i := range x.out.Events {
		e := &x.out.Events[i]
		who := ""
		if int(e.Member) < len(x.g.members) {
			who = x.g.memberIP(e.Member)
		}
		switch e.Kind {
		case MemberEvicted:
			x.add(evictionRules(e.Cause), "%s is removed: it had all up to 0x%06x.", who, e.PSN)
		case GroupFailed:
			r := rules("R25", "R39")
			if e.Cause == SourceStalled {
				r = rules("R65")
			} else if e.Cause == Misnumbered {
				r = rules("R54")
			}
			x.add(r, "The group fails, because of %s: nothing is acknowledged any more.", who)
		case SourceRefused:
			x.add(x.Reason.Rules(), "An event says that the request of %s was refused.", who)
		case PositionsDue:
			x.add(rules("R83"), "The members' positions are to be written to the state file.")
		case NumberMismatch:
			x.add(rules("R72"), "An event says that the numbers of %s differ from its registration.", who)
		case SourceConflict:
			x.add(rules("R99"), "An event says that the switches disagree on the source.")
		}
	}
}

// evictionRules returns the rules of a removal for cause.
func evictionRules(cause rocev2.Syndrome) []string {
	switch cause {
	case Silent:
		return rules("R23")
	case Lagging:
		return rules("R38")
	case Stranded:
		return rules("R37")
	case Misnumbered:
		return rules("R54", "R55")
	}
	return rules("R26")
}
