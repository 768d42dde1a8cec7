// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Wrong ways to make one feedback of many.
var _ = []mutant.Mutant{
	mutant.New("A is the maximum", "R01", mutant.In((*group).lowestAcked,
		"case b.acked.Less(m):",
		"case m.Less(b.acked):")),
	mutant.New("the first ACK counts for all", "R01", mutant.In((*group).handleFeedback,
		`if !g.ackReceived(now, i, psn, out) {
			return FeedbackStale
		}`,
		`if !g.ackReceived(now, i, psn, out) {
			return FeedbackStale
		}
		if g.$5.$1.$2(psn) {
			g.$5.$1 = psn
			g.$3(out)
			return $4
		}`, aggregation{}.acked, rocev2.PSN.Less, (*group).sendACK, None, group{}.agg)),
	mutant.New("only the last leg to acknowledge releases the ACK", "R02", mutant.In((*group).handleFeedback,
		`	if m := &g.activity[i].recovery; g.repair.store != nil {
		m.expectedSince = max(m.expectedSince, now) // what is stale does not count: it may be all that gets through
	}
	if g.lag.psns != 0 && b.acked.Sub(g.lag.floor) > g.lag.psns {
		g.evictLaggards(b.acked, out)
	}
	// A can move only when the last of the lowest branches has, and a NAK can
	// be due only at A+1 (below it, under Quorum: then its branch is stranded).
	if g.agg.numAtAcked <= g.agg.allowedBehind || raised || b.pending != sevNone && b.acked.LessEq(g.agg.acked) {`,
		`	if m := &g.activity[i].recovery; g.repair.store != nil {
		m.expectedSince = max(m.expectedSince, now) // what is stale does not count: it may be all that gets through
	}
	if g.lag.psns != 0 && b.acked.Sub(g.lag.floor) > g.lag.psns {
		g.evictLaggards(b.acked, out)
	}
	// A can move only when the last of the lowest branches has, and a NAK can
	// be due only at A+1 (below it, under Quorum: then its branch is stranded).
	if g.agg.numAtAcked <= g.agg.allowedBehind && i == len(g.$1)-1 || raised || b.pending != sevNone && b.acked.LessEq(g.agg.acked) {`, group{}.acks)),
	mutant.New("a NAK is not evaluated before A moves", "R03", mutant.In((*group).handleFeedback,
		"if g.agg.numAtAcked <= g.agg.allowedBehind || raised || b.pending != sevNone && b.acked.LessEq(g.agg.acked) {",
		"if g.agg.numAtAcked <= g.agg.allowedBehind {")),
	mutant.New("ACKs compare as plain numbers", "R04", mutant.In((*group).noteAcked,
		`if psn.LessEq(b.acked) {
		return false
	}
	if b.acked.LessEq(g.agg.acked)`,
		`if psn <= b.acked {
		return false
	}
	if b.acked.LessEq(g.agg.acked)`)),
	mutant.New("the minimum compares as plain numbers", "R04", mutant.In((*group).lowestAcked,
		"case b.acked.Less(m):",
		"case b.acked < m:")),
	mutant.New("NAKs compare as plain numbers", "R04", mutant.In((*group).nakReceived,
		"if e.LessEq(b.acked) {",
		"if e <= b.acked {")),
	mutant.New("after one NAK no later one passes", "R05", mutant.In((*group).evaluate,
		"r.awaits(next) && worst <= r.severity",
		"r.$1() && r.$2.$3(next) && worst <= r.severity", (*request).isOpen, request{}.psn, rocev2.PSN.LessEq)),
	mutant.New("a stale NAK is pending", "R06", mutant.In((*group).nakReceived,
		"if e.LessEq(b.acked) {",
		"if e.$1(b.acked) {", rocev2.PSN.Less)),
	mutant.New("one NAK slot for all legs", "R07", mutant.In((*group).nakReceived,
		`g.setPending(b, sev, syn)
	return true`,
		`for j := range g.$1 {
		g.setPending(&g.$1[j], $2, 0)
	}
	g.setPending(b, sev, syn)
	return true`, group{}.acks, sevNone)),
	mutant.New("a pending NAK outlives its retransmission", "R08", mutant.In((*group).forward,
		"if d == 1 && b.pending != sevNone && b.pending != sevFatal {",
		"if d < 1 {")),
	mutant.New("a NAK goes on for every receiver that lacks the packet", "R09", mutant.In((*group).evaluate,
		"r.awaits(next) && worst <= r.severity",
		"r.awaits(next) && worst < r.severity")),
	mutant.New("an ACK for every ACK", "R11", mutant.In((*group).handleFeedback,
		`if !g.ackReceived(now, i, psn, out) {
			return FeedbackStale
		}`,
		`if !g.ackReceived(now, i, psn, out) {
			g.$1(out)
			return FeedbackStale
		}`, (*group).sendACK)),
	mutant.New("NAKs go on at once", "R14", mutant.In((*group).handleFeedback,
		`} else if !g.nakReceived(now, i, kind, p.Syndrome, psn, out) {
		return FeedbackStale
	}`,
		`} else if !g.nakReceived(now, i, kind, p.Syndrome, psn, out) {
		return FeedbackStale
	} else {
		g.$1(out, p.Syndrome, psn)
		return $2
	}`, (*group).sendNAK, None)),
	mutant.New("no ACK before a NAK", "R14", mutant.In((*group).raiseAcked,
		`g.sendACK(out)
	if g.recv.joinedInFlight != 0`,
		`if g.$2.$1 == 0 {
		g.sendACK(out)
	}
	if g.recv.joinedInFlight != 0`, aggregation{}.numPending, group{}.agg)),
	mutant.New("the implied ACK of a NAK is one too many", "R14", mutant.In((*group).nakReceived,
		"moved := g.ackReceived(now, i, e.Prev(), out)",
		"moved := g.ackReceived(now, i, e, out)")),
	mutant.New("the implied ACK of a NAK is not used", "R14", mutant.In((*group).nakReceived,
		`	if e.LessEq(b.acked) {
		return false // older than what the branch has acknowledged (R06)
	}
	moved := g.ackReceived(now, i, e.Prev(), out)`,
		`	if e.LessEq(b.acked) {
		return false // older than what the branch has acknowledged (R06)
	}
	moved := e == b.acked.$1() || g.$3.$2 == e`, rocev2.PSN.Next, forwarding{}.nxt, group{}.fwd)),
	mutant.New("feedback for what was never forwarded is believed", "6.2", mutant.In((*group).handleFeedback,
		"if g.fwd.nxt.LessEq(ackedBy(kind, psn)) ||",
		"if g.fwd.nxt.$1(100).LessEq(ackedBy(kind, psn)) ||", rocev2.PSN.Add)),
	mutant.New("feedback for hi is believed", "6.2", mutant.In((*group).handleFeedback,
		"if g.fwd.nxt.LessEq(ackedBy(kind, psn)) || g.acksUnread(p, i, psn) {",
		"if g.fwd.nxt.$1(ackedBy(kind, psn)) || g.acksUnread(p, i, psn) {", rocev2.PSN.Less), mutant.In((*group).handleFeedback,
		"if g.fwd.nxt == psn {\n\t\treturn FeedbackAhead",
		"if false {\n\t\treturn FeedbackAhead")),
	mutant.New("feedback from long ago is looked at", "6.2", mutant.In((*group).handleFeedback,
		"if psn.Sub(g.agg.acked) < -maxBehind {",
		"if psn.Sub(g.agg.acked) < -2*maxBehind {")),
	mutant.New("RNR NAKs become sequence NAKs", "R19", mutant.In((*group).evaluate,
		`g.sendNAK(out, code, next)
		if worst == sevFatal {`,
		`g.sendNAK(out, max(code&0x7F, 0x60), next)
		if worst == sevFatal {`)),
	mutant.New("RNR codes are compared, not durations", "R19", mutant.In((*group).worstPending,
		"b.pendingSyndrome.RNRCode().Duration() > code.RNRCode().Duration()",
		"b.pendingSyndrome&31 > code&31")),
	mutant.New("a sequence NAK replaces an RNR NAK", "R19", mutant.In((*group).nakReceived,
		"if sev <= b.pending {",
		"if sev == b.pending {")),
	mutant.New("a RNR NAK weighs no more than a sequence NAK", "R19", mutant.In(severityOf,
		`	case rocev2.KindRNR:
		return sevRNR
	}`,
		`	case rocev2.KindRNR:
		return $1
	}`, sevSequence)),
	mutant.New("ACKs carry credits", "R20", mutant.In((*group).sendACK,
		"g.sendFeedback(out, rocev2.Acknowledge, rocev2.SyndromeACK, g.agg.acked)",
		"g.sendFeedback(out, rocev2.Acknowledge, 0x1E, g.agg.acked)")),
	mutant.New("ACKs carry a receiver's MSN", "R20", mutant.In((*group).handleFeedback,
		"g.counters.FeedbackIn++",
		`g.counters.FeedbackIn++
	g.$4.$1.$2 = $arg2.$3`, aggregation{}.messages, messages{}.completed, Packet{}.MSN, group{}.agg)),
	mutant.New("the MSN counts packets", "R20", mutant.In((*group).noteForwarded,
		`if ends {
			g.agg.messages.addEnd(psn)
		}`,
		"g.agg.messages.addEnd(psn)")),
	mutant.New("feedback is known by its port", "R21", mutant.In((*group).legOf,
		`} else if m, ok := g.memberAt(p.Src); ok {
		l := g.members[m].leg`,
		`} else if m, ok := g.memberAt(p.Src); ok {
		l := g.members[m].leg
		for j := range g.$1 {
			if g.$1[j].$2 == p.$3 {
				l = $4(j)
			}
		}`, group{}.legs, leg{}.port, Packet{}.Port, LegID(0))),
	mutant.New("feedback is multicast as well", "R22", mutant.In((*group).input,
		`		return g.handleRequest(now, p, f, out)
	case g.isAnswerToReply(p):
		return g.relayAnswer(p, out)
	case p.Op == rocev2.Acknowledge:`,
		`		return g.handleRequest(now, p, f, out)
	case g.isAnswerToReply(p):
		return g.relayAnswer(p, out)
	case p.Op == rocev2.Acknowledge:
		g.$1(now, p, p.$2, f, out)`, (*group).forward, Packet{}.PSN)),
	mutant.New("reserved syndromes are fatal", "C47", mutant.In((*group).handleFeedback,
		`if kind == rocev2.KindReserved && !selective {
		return ReservedSyndrome
	}`,
		"")),
	mutant.New("unverified feedback is believed", "R33", mutant.In((*group).handleFeedback,
		`		return g.keepaliveAnswer(now, p, i, kind, out)
	}
	i, r := g.legOf(p)
	if r != None {
		return r
	}
	if g.is(failed) {
		return FailedGroup
	}
	if !p.Verified {`,
		`		return g.keepaliveAnswer(now, p, i, kind, out)
	}
	i, r := g.legOf(p)
	if r != None {
		return r
	}
	if g.is(failed) {
		return FailedGroup
	}
	if !p.Verified && kind != $1 {`, rocev2.KindACK)),
	mutant.New("an unverified NAK is believed", "R33", mutant.In((*group).handleFeedback,
		`		return g.keepaliveAnswer(now, p, i, kind, out)
	}
	i, r := g.legOf(p)
	if r != None {
		return r
	}
	if g.is(failed) {
		return FailedGroup
	}
	if !p.Verified {`,
		`		return g.keepaliveAnswer(now, p, i, kind, out)
	}
	i, r := g.legOf(p)
	if r != None {
		return r
	}
	if g.is(failed) {
		return FailedGroup
	}
	if !p.Verified && kind == $1 {`, rocev2.KindACK)),
	mutant.New("only the most congested leg's CNPs are dropped", "R32", mutant.In((*group).handleCNP,
		"if !g.noteSignal(now, i) ||",
		"if g.noteSignal(now, i) ||")),
	mutant.New("every leg's CNPs pass", "R32", mutant.In((*group).handleCNP,
		"if !g.noteSignal(now, i) ||",
		"if g.noteSignal(now, i);")),
	mutant.New("CNPs pass as fast as they come", "R32", mutant.In((*group).handleCNP,
		"now-g.cnp.passedAt < cnpGap",
		"now < g.cnp.passedAt")),
	mutant.New("an unverified CNP is believed", "R33", mutant.In((*group).handleCNP,
		`if !p.Verified {
		out.NeedVerify = true
		return None
	}`,
		"")),
	mutant.New("weights of legs do not decay", "R32", mutant.In(decayedWeight,
		"w >>= uint(d / cnpHalfLife)",
		"return w")),
	mutant.New("every leg's BECN goes to the source", "R32", mutant.In((*group).noteBECN,
		`if g.noteSignal(now, i) {
		g.src.becnDue = true
	}`,
		`g.noteSignal(now, i)
	g.src.becnDue = true`)),
}
