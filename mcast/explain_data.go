// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"strings"

	"github.com/gleam-rdma/gleam/rocev2"
)

// rulesOfReason returns the rules by which the packet is not served.
func (x *explainer) rulesOfReason() []string {
	g := x.was
	r := x.Reason.Rules()
	switch {
	case x.Reason == PSNOutOfRange && x.op&rocev2.OpRequest != 0 && (x.g.is(quarantined) || x.g.extra != nil && len(x.g.extra.history) != 0):
		return rules("R63", "R68")
	case x.Reason == DuplicateData && !x.isFromSource():
		return rules("R29")
	case x.Reason == FailedGroup && !x.isFromSource() && len(x.out.Feedback) != 0:
		return rules("R80")
	case x.Reason == FeedbackStale && x.p.Syndrome.Kind() == rocev2.KindACK:
		return rules("R03")
	case x.Reason == FeedbackStale && x.p.Neighbor != 0 && g.src.member != none && rocev2.KeyOf(x.p.Src) != g.src.addr:
		return rules("R18")
	case x.Reason == NoToken && g.is(frozen) && x.isFromSource():
		return rules("R84", "R86")
	case x.Reason == AwaitsStorage && g.fwd.nxt.Less(x.psn):
		return rules("R83", "R102")
	case x.Reason == WindowViolation && g.fwd.targets != nil && x.p.RKey == g.fwd.targetKey:
		return rules("R41")
	}
	return r
}

// describeTurn says whether the packet begins its sender's turn.
func (x *explainer) describeTurn() {
	for i := range x.out.Events {
		e := &x.out.Events[i]
		if e.Kind != SourceChanged {
			continue
		}
		x.add(rules("R16", "R18", "R29"), "The turn of %s begins, with PSN 0x%06x: PSNs are translated for it from now on.", x.g.memberIP(e.Member), e.PSN)
		if n := x.psn.Sub(e.PSN); n > 0 {
			x.add(rules("R16"), "The first PSN is that of its registration, or of its last turn, and is not learnt from a packet: %s not passed here.", packets(n, "has", "have"))
		}
	}
}

// describeEffects says what goes out, and how the group's state differs afterwards.
func (x *explainer) describeEffects() {
	x.describeEvents()
	switch {
	case x.op&rocev2.OpRequest == 0:
		x.describeFeedbackEffects()
	case x.Verdict == VerdictForwarded && !x.hasRole(leads):
		x.describeCopies()
	case x.Verdict == VerdictForwarded:
		x.add(rules("R107"), "The packet goes to the source alone, as PSN 0x%06x of the leader's stream.", x.out.Copies[0].PSN)
	}
	x.describeAnswers()
	x.describeResends()
	for i := range x.out.Reports {
		x.add(rules("R84", "R89"), "A report goes to neighbour %d: who may send, and what is had behind the edge.", x.out.Reports[i].Neighbor)
	}
}

// hasRole reports whether the packet's sender is a member of that role.
func (x *explainer) hasRole(r role) bool {
	k, ok := x.was.memberAt(x.p.Src)
	return ok && x.was.members[k].role == r
}

// describeCopies says for each leg whether a copy of the packet goes there.
func (x *explainer) describeCopies() {
	g := x.g
	copies := make(map[LegID]*Copy, len(x.out.Copies))
	for _, c := range x.ownCopies() {
		copies[c.Leg] = c
	}
	byXDP := x.isForXDP()
	how := g.rewriteOf(x.p, x.op)
	for i := range g.legs {
		c := copies[LegID(i)]
		if c == nil && byXDP && g.activityOf(i).recovery.gateOpen && g.ackStateOf(i).flags&isReceiver != 0 {
			c = x.copyByXDP(i, how)
		}
		if c != nil {
			x.describeCopy(i, c)
		} else if why, text := x.whyNoCopy(i); text != "" {
			x.add(why, "No copy to %s: %s.", g.legName(i), text)
		}
	}
	if x.out.Retained {
		x.add(rules("R42"), "The packet is retained for repairs, until every receiver has acknowledged 0x%06x.", x.psn)
	} else if g.repair.store != nil && g.agg.acked.Less(x.psn) {
		x.add(rules("R42"), "The packet is not retained: the store has no room for it.")
	}
	if n := x.psn.Sub(x.was.fwd.nxt); x.was.src.member == g.src.member && n > 0 {
		x.add(rules("R14", "R47"), "What is missing is requested from the source when a receiver has sent its NAK, and all before it is acknowledged.")
	}
	if x.op&rocev2.OpEnd != 0 && !x.psn.Less(x.was.fwd.nxt) {
		x.add(rules("R20"), "The packet ends a message: MSN %d is due with its acknowledgement.", g.agg.messages.last())
	}
	if x.was.agg.request.awaits(x.psn) && x.was.src.member == g.src.member {
		x.add(rules("R05", "R09"), "The source has served the NAK of 0x%06x: another one of that PSN may follow.", x.psn)
	}
	x.describeServedNAKs()
}

// copyByXDP returns the copy that the XDP program makes for leg i.
func (x *explainer) copyByXDP(i int, how rewriteKind) *Copy {
	g := x.g
	b := g.ackStateOf(i)
	c := Copy{Group: g.id, Leg: LegID(i), Frame: x.p.Frame, PSN: (x.psn + rocev2.PSN(b.delta)) & rocev2.PSNMask}
	if how != rewriteNone && b.flags&isConnected != 0 && !g.rewriteCopy(&c, how, x.p.VA, x.psn) {
		return nil
	}
	x.ByXDP = append(x.ByXDP, c)
	return &x.ByXDP[len(x.ByXDP)-1]
}

// describeCopy says how the copy for leg i differs from the packet.
func (x *explainer) describeCopy(i int, c *Copy) {
	g := x.g
	if !g.legs[i].connected() {
		x.add(rules("R24"), "A copy to %s: PSN, address, VA and R_Key stay the source's.", g.legName(i))
	} else {
		r, text := rules("R18", "R24"), fmt.Sprintf("A copy to %s: PSN 0x%06x in its numbering", g.legName(i), c.PSN)
		switch {
		case c.Flags&EmptyWrite != 0:
			r, text = append(r, "R41"), text+", a WRITE of no bytes in place of the target message"
		case c.Flags&SetRETH != 0 && g.rewriteOf(x.p, x.op) == rewriteByTarget:
			r, text = append(r, "R41"), text+fmt.Sprintf(", VA 0x%x and R_Key of its target", c.VA)
		case c.Flags&SetRETH != 0:
			r, text = append(r, "R27"), text+fmt.Sprintf(", VA 0x%x and R_Key of its window", c.VA)
		case c.Flags&SetIETH != 0:
			r, text = append(r, "R27"), text+", R_Key of its window"
		}
		x.add(r, "%s.", text)
	}
	switch {
	case c.Flags&SetAckReq == 0:
	case g.legs[i].connected() && g.repair.asks(x.p.PSN&rocev2.PSNMask):
		x.add(rules("R112"), "The copy to %s has AckReq, as each packet whose PSN is %d modulo %d.", g.legName(i), g.repair.ackMask, g.repair.ackMask+1)
	default:
		x.add(rules("R45", "R48", "R56", "R57"), "The copy to %s is a probe: AckReq is set.", g.legName(i))
	}
}

// whyNoCopy says why leg i gets no copy of a packet that is forwarded; "" if there is nobody.
func (x *explainer) whyNoCopy(i int) (why []string, text string) {
	g := x.g
	l, b := &g.legs[i], g.ackStateOf(i)
	m := &g.activityOf(i).recovery
	switch {
	case int32(i) == g.src.leg:
		return rules("R15"), "it is the source"
	case l.members == 0:
		return rules("R31"), "it has left, or was removed"
	case g.unproven(i):
		return rules("R52"), "it has not shown yet which PSN it expects"
	case l.joining:
		return rules("R30"), "it receives from the next message on"
	case b.flags&isUnplaced != 0:
		return rules("R89"), "what the members behind it have is not known yet"
	case b.flags&isReceiver == 0:
		return rules("R31"), "it does not receive in this turn"
	case x.psn.LessEq(b.acked):
		return rules("R12"), fmt.Sprintf("it has acknowledged all up to 0x%06x", b.acked)
	case m.state == waiting && g.isDraining(x.now):
		return rules("R98"), "copies of the fast path are on their way to it: it gets the packet from the store then"
	case m.state != inSync && m.escalated:
		return rules("R43", "R44"), fmt.Sprintf("it gets what the source sends from 0x%06x on, in order", m.cursor)
	case m.state != inSync:
		return rules("R44"), fmt.Sprintf("it is being repaired, and gets this packet from the store after 0x%06x", m.cursor)
	case x.psn.Less(x.was.fwd.nxt):
		return rules("R48", "R63"), "it was sent this packet before, and a probe shows what it lacks"
	case g.fwd.targets != nil && x.p.RKey == g.fwd.targetKey:
		return rules("R41"), "no target message has named its memory"
	}
	return rules("R70"), "its port takes no more now"
}

// describeServedNAKs names the receivers whose pending NAKs end because their packet passes.
func (x *explainer) describeServedNAKs() {
	var served []string
	for i := range x.was.acks {
		if i < len(x.g.acks) && x.was.acks[i].pending != sevNone && x.g.acks[i].pending == sevNone && x.g.acks[i].flags&isReceiver != 0 {
			served = append(served, x.g.legName(i))
		}
	}
	if len(served) != 0 {
		x.add(rules("R08"), "This is the packet that the NAK of %s waits for: the NAK ends.", strings.Join(served, ", "))
	}
}

// describeResends says which packets go out again from the store, by leg.
func (x *explainer) describeResends() {
	first, count := make(map[LegID]rocev2.PSN), make(map[LegID]int)
	for i := range x.out.Copies {
		if c := &x.out.Copies[i]; c.Frame != x.p.Frame {
			if count[c.Leg]++; count[c.Leg] == 1 {
				first[c.Leg] = c.PSN
			}
		}
	}
	for i := range x.g.legs {
		if n := count[LegID(i)]; n != 0 {
			x.add(rules("R43", "R44"), "%s to %s again from the store, from PSN 0x%06x of its numbering on.", packets(int32(n), "goes", "go"), x.g.legName(i), first[LegID(i)])
		}
	}
}
