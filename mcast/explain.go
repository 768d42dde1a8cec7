// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Explanations of packets, for operators. A packet is given to a clone of the switch (Clone), by
// the functions that serve packets. The rules follow from the reason of a drop, the output, and
// the group's state before and after the call: the data path itself notes nothing.

// Verdict is what becomes of an explained packet.
type Verdict uint8

// Verdicts.
const (
	VerdictDropped   Verdict = iota // not served, for Explanation.Reason, and not answered
	VerdictForwarded                // copies of it go out
	VerdictAnswered                 // no copies of it go out, and the switch answers
	VerdictHeld                     // the packet waits in the switch
	VerdictRecorded                 // feedback that changes the group's state
)

// String returns the name of v in the API.
func (v Verdict) String() string {
	return [...]string{"dropped", "forwarded", "answered", "held", "recorded"}[v]
}

// Step is one fact about an explained packet, with the rules of docs/AGGREGATION.md that it
// follows from.
type Step struct {
	Rules []string // such as R14; empty if no rule is needed
	Text  string
}

// Explanation is what a switch does with a packet, and why.
type Explanation struct {
	Verdict Verdict
	Reason  Reason // the reason in Output.Drop
	BadICRC bool   // true: it is dropped for its ICRC, with nothing changed
	Steps   []Step
	ByXDP   []Copy // copies that the programs of the fast path make (R97); the others are in Output
}

// Explain gives packet p to the group, which is one of a Clone, and explains what happens. out is
// as after Input. p.Verified says whether the ICRC is right.
func (v Group) Explain(now time.Duration, p *Packet, out *Output) *Explanation {
	was := v.Clone()
	if was == nil {
		out.reset()
		out.Drop = UnknownGroup
		return &Explanation{Reason: UnknownGroup, Steps: []Step{{Text: UnknownGroup.Text()}}}
	}
	x := &explainer{sw: v.g.sw, now: now, p: p, op: p.Op.Flags(), psn: p.PSN & rocev2.PSNMask, out: out, was: was.groups[v.id], g: v.g}
	x.identify()
	if x.run() {
		x.describeTurn()
		x.judge()
		x.describeEffects()
	}
	return &x.Explanation
}

// explainer makes an Explanation.
type explainer struct {
	Explanation
	sw     *Switch
	now    time.Duration
	p      *Packet
	op     rocev2.OpFlags
	psn    rocev2.PSN
	out    *Output
	was, g *group // the group before and after
}

func (x *explainer) add(rules []string, format string, args ...any) {
	x.Steps = append(x.Steps, Step{rules, fmt.Sprintf(format, args...)})
}

func rules(r ...string) []string { return r }

// run makes the calls that a driver makes for the packet. It returns false if its ICRC is asked
// for and wrong.
func (x *explainer) run() bool {
	p := *x.p
	p.Verified = false
	input := func() { x.sw.InputGroup(x.now, x.g.id, &p, x.out) }
	if x.isForXDP() {
		x.add(rules("R97", "R98"), "The group is on the fast path, and this is its next packet: the XDP program makes the copies of receivers that are in sync, and reports it.")
		input = func() { x.sw.InputForwarded(x.now, x.g.id, &p, x.out) }
	}
	input()
	for range 2 { // each is asked for once
		switch {
		case !x.out.NeedVerify && !x.out.NeedRevoke:
			return true
		case x.out.NeedRevoke:
			x.add(rules("R97"), "The group is on the fast path, and this packet needs a decision: the group is taken back from XDP first.")
			x.sw.Revoked(x.now, x.g.id, x.out)
		case !x.p.Verified:
			x.add(x.rulesOfCheck(), "The ICRC is asked for before this packet is believed, and it is wrong: the packet is dropped, and nothing changes.")
			x.BadICRC = true
			return false
		default:
			x.add(x.rulesOfCheck(), "The ICRC is checked before this packet is believed: it is right.")
			p.Verified = true
		}
		input()
	}
	return true
}

// rulesOfCheck are the rules by which the ICRC is asked for.
func (x *explainer) rulesOfCheck() []string {
	if x.isFromSource() && x.psn == x.was.fwd.nxt && x.was.mayBeDamaged(x.now, x.psn) {
		return rules("R33", "R64")
	}
	return rules("R33")
}

// isFromSource reports whether the packet is a request of the source, as that was before.
func (x *explainer) isFromSource() bool {
	s := &x.was.src
	return x.op&rocev2.OpRequest != 0 && s.member != none && rocev2.KeyOf(x.p.Src) == s.addr && x.p.Neighbor == s.neighbor
}

// isForXDP reports whether the programs of the fast path forward the packet by themselves.
func (x *explainer) isForXDP() bool {
	g := x.was
	if g.repair.path != fastPath || !x.isFromSource() || x.psn != g.fwd.nxt || !x.psn.Less(g.offloadLimit()) || x.p.DestQP != g.qpn {
		return false
	}
	code, _ := g.checkRequest(x.p, x.op)
	return code == 0
}

// identify says what the packet is, and whose.
func (x *explainer) identify() {
	g, p := x.was, x.p
	switch {
	case x.op&rocev2.OpKnown == 0 || p.DestQP != g.qpn:
		return
	case x.op&(rocev2.OpRequest|rocev2.OpSend|rocev2.OpWrite) == rocev2.OpRequest:
		x.add(rules("R22"), "%s is a request of a member.", p.Op.Name())
	case x.op&rocev2.OpRequest != 0:
		x.add(rules("R22"), "%s is a request: data of a member, for all other members.", p.Op.Name())
	case isSelectiveNAK(p):
		x.add(rules("R22", "R106"), "%s with syndrome 0x%02x is a selective NAK of another switch: it names packets that are missing there.", p.Op.Name(), uint8(p.Syndrome))
	case p.Op == rocev2.Acknowledge:
		x.add(rules("R22"), "%s is feedback of a receiver, %s.", p.Op.Name(), syndromeText(p.Syndrome))
	case p.Op == rocev2.CNP:
		x.add(rules("R22"), "%s is feedback of a receiver: its RNIC has seen congestion marks.", p.Op.Name())
	default:
		return
	}
	k, ok := g.memberAt(p.Src)
	switch {
	case !ok:
		return // the reason says it
	case x.op&rocev2.OpRequest == 0:
		x.identifyReceiver()
	case x.isFromSource():
		x.add(rules("R17"), "%s is the group's source. %s", p.Src, x.flight())
		x.placePSN()
	case g.members[k].role >= leads:
		x.add(rules("R107"), "%s replies to the only source, %s.", p.Src, g.memberIP(g.extra.replies.to))
	case g.src.member == none:
		x.add(rules("R17", "R29"), "The group has no source yet. The first PSN of %s is 0x%06x, from its registration.", p.Src, g.members[k].sqPSN)
	default:
		x.add(rules("R17", "R29"), "%s is not the source: %s is. %s The next PSN of %s is 0x%06x.", p.Src, g.memberIP(MemberID(g.src.member)), x.flight(), p.Src, g.members[k].sqPSN)
	}
}

// flight says what is in flight of the source.
func (x *explainer) flight() string {
	g := x.was
	if n := g.fwd.nxt.Sub(g.agg.acked) - 1; n > 0 {
		return fmt.Sprintf("All before 0x%06x is acknowledged, and %s in flight, up to 0x%06x.", g.agg.acked.Next(), packets(n, "is", "are"), g.fwd.nxt.Prev())
	}
	if g.fwd.midMessage {
		return fmt.Sprintf("All before 0x%06x is acknowledged, and its message is not complete.", g.fwd.nxt)
	}
	return fmt.Sprintf("All before 0x%06x is acknowledged: nothing is in flight.", g.fwd.nxt)
}

// placePSN says where the PSN of the source's packet lies.
func (x *explainer) placePSN() {
	g := x.was
	d := x.psn.Sub(g.agg.acked)
	switch n := x.psn.Sub(g.fwd.nxt); {
	case d <= -g.src.ackedCount || d > maxAhead: // the reason says it
	case d <= 0:
		x.add(rules("R12"), "PSN 0x%06x is at or below the last acknowledged one, 0x%06x: a duplicate.", x.psn, g.agg.acked)
	case n == 0:
		x.add(rules("R34"), "PSN 0x%06x is the next one in order.", x.psn)
	case n > 0:
		x.add(rules("R14", "R47"), "PSN 0x%06x is behind a gap: %s not passed here, beginning with 0x%06x. Receivers answer what comes behind a gap with NAKs.", x.psn, packets(n, "has", "have"), g.fwd.nxt)
	default:
		x.add(rules("R12"), "PSN 0x%06x was forwarded before, and is not acknowledged: only receivers that lack it get it.", x.psn)
	}
}

// judge says whether the packet is served.
func (x *explainer) judge() {
	x.Reason = x.out.Drop
	request := x.op&rocev2.OpRequest != 0
	copies := len(x.ownCopies()) != 0 || x.isForXDP()
	switch {
	case x.Reason != None && request && len(x.out.Feedback) != 0:
		x.Verdict = VerdictAnswered
	case x.Reason != None:
		x.Verdict = VerdictDropped
	case x.g.is(holding) && !copies && x.out.Retained:
		x.Verdict = VerdictHeld
		x.add(rules("R96"), "The packet is held here: it waits as its message does, and is served then as if it came then.")
	case request || copies:
		x.Verdict = VerdictForwarded
	default:
		x.Verdict = VerdictRecorded
	}
	if r := &x.was.refusal; x.Reason != None && r.syndrome != 0 && r.reason == x.Reason && x.isFromSource() && r.psn.Less(x.psn) {
		x.add(append(rules("R28"), r.reason.Rules()...), "Packet 0x%06x was refused, reason %s: what is behind it is dropped for the same reason, until it comes again as one that a group can execute.", r.psn, r.reason)
	} else if x.Reason != None {
		x.add(x.rulesOfReason(), "Not served, reason %s: %s.", x.Reason, x.Reason.Text())
	}
}

// ownCopies returns the copies of the packet itself.
func (x *explainer) ownCopies() (own []*Copy) {
	for i := range x.out.Copies {
		if c := &x.out.Copies[i]; c.Frame == x.p.Frame {
			own = append(own, c)
		}
	}
	return own
}

func (g *group) memberIP(k MemberID) string { return g.members[k].ip.Addr().String() }

// packets returns "1 packet is", "2 packets are" and so on.
func packets(n int32, one, many string) string {
	if n == 1 {
		return "1 packet " + one
	}
	return fmt.Sprintf("%d packets %s", n, many)
}

// legName names the member or the switch that a leg leads to.
func (g *group) legName(i int) string {
	if l := &g.legs[i]; !l.connected() {
		return fmt.Sprintf("the switch behind leg %d", i)
	}
	return g.memberIP(g.legs[i].member)
}

// syndromeText says what a syndrome means.
func syndromeText(s rocev2.Syndrome) string {
	switch s.Kind() {
	case rocev2.KindACK:
		return "an ACK"
	case rocev2.KindRNR:
		return fmt.Sprintf("an RNR NAK (0x%02x): its receive queue is empty, wait %v", uint8(s), s.RNRCode().Duration())
	case rocev2.KindSequence:
		return "a sequence NAK (0x60): packets before it are missing"
	case rocev2.KindFatal:
		return fmt.Sprintf("a fatal NAK (0x%02x): its queue pair is in error", uint8(s))
	}
	return fmt.Sprintf("with the reserved syndrome 0x%02x", uint8(s))
}

// Complete sets fields of p, a packet to be explained, that follow from the group's state: the
// PSN, unless it is known, the tag of feedback from another switch, and the payload of the LAST of
// the newest WRITE, unless it is known. A request gets its sender's next PSN. An ACK is of
// everything that was sent to its receiver, a NAK of the first packet that the receiver lacks.
func (v Group) Complete(p *Packet, knownPSN, knownPayload bool) {
	g := v.g
	if g == nil {
		return
	}
	k, ok := g.memberAt(p.Src)
	if !ok {
		return
	}
	if p.Neighbor != 0 && p.Op == rocev2.Acknowledge && g.tree() != nil {
		p.MSN = g.tagOf(k)
	}
	defer func() {
		w := &g.fwd.writeMessage
		left := int64(w.length) - int64((p.PSN&rocev2.PSNMask).Sub(w.first))*int64(g.fwd.pmtu)
		if f := p.Op.Flags(); !knownPayload && w.known && f&rocev2.OpWrite != 0 && f&rocev2.OpLast != 0 && left > 0 && left <= int64(g.fwd.pmtu) {
			p.Payload = uint16(left)
		}
	}()
	if knownPSN {
		return
	}
	i := int(g.members[k].leg)
	if b := g.ackStateOf(i); b.flags&isReceiver != 0 && !p.Op.Is(rocev2.OpRequest) {
		psn := g.fwd.nxt.Prev()
		if p.Syndrome.Kind() != rocev2.KindACK {
			psn = b.acked.Next()
		}
		p.PSN = (psn + rocev2.PSN(b.delta)) & rocev2.PSNMask
		return
	}
	if p.PSN = g.members[k].sqPSN; int32(k) == g.src.member {
		p.PSN = g.fwd.nxt
	}
}
