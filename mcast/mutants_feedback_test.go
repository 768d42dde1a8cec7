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
		"case b.a.Less(m):",
		"case m.Less(b.a):")),
	mutant.New("the first ACK counts for all", "R01", mutant.In((*group).handleFeedback,
		`if !g.acked(now, i, psn, out) {
			return FeedbackStale
		}`,
		`if !g.acked(now, i, psn, out) {
			return FeedbackStale
		}
		if g.$5.$1.$2(psn) {
			g.$5.$1 = psn
			g.$3(out)
			return $4
		}`, aggregation{}.acked, rocev2.PSN.Less, (*group).sendACK, None, group{}.agg)),
	mutant.New("only the last leg to acknowledge releases the ACK", "R02", mutant.In((*group).handleFeedback,
		`	if m := &g.legs[i].mend; g.repair.store != nil {
		m.owed = max(m.owed, now) // what is stale does not count: it may be all that gets through
	}
	if g.lag.lagPSNs != 0 && b.a.Sub(g.lag.least) > g.lag.lagPSNs {
		g.shed(b.a, out)
	}
	// A can move only when the last of the lowest branches has, and a NAK can
	// be due only at A+1 (below it, under Quorum: then its branch is stranded).
	if g.agg.low <= g.agg.slack || raised || b.pend != noPend && b.a.LessEq(g.agg.a) {`,
		`	if m := &g.legs[i].mend; g.repair.store != nil {
		m.owed = max(m.owed, now) // what is stale does not count: it may be all that gets through
	}
	if g.lag.lagPSNs != 0 && b.a.Sub(g.lag.least) > g.lag.lagPSNs {
		g.shed(b.a, out)
	}
	// A can move only when the last of the lowest branches has, and a NAK can
	// be due only at A+1 (below it, under Quorum: then its branch is stranded).
	if g.agg.low <= g.agg.slack && i == len(g.$1)-1 || raised || b.pend != noPend && b.a.LessEq(g.agg.a) {`, group{}.acks)),
	mutant.New("a NAK is not evaluated before A moves", "R03", mutant.In((*group).handleFeedback,
		"if g.agg.low <= g.agg.slack || raised || b.pend != noPend && b.a.LessEq(g.agg.a) {",
		"if g.agg.low <= g.agg.slack {")),
	mutant.New("ACKs compare as plain numbers", "R04", mutant.In((*group).noteAcked,
		`if psn.LessEq(b.a) {
		return false
	}
	if b.a.LessEq(g.agg.a)`,
		`if psn <= b.a {
		return false
	}
	if b.a.LessEq(g.agg.a)`)),
	mutant.New("the minimum compares as plain numbers", "R04", mutant.In((*group).lowestAcked,
		"case b.a.Less(m):",
		"case b.a < m:")),
	mutant.New("NAKs compare as plain numbers", "R04", mutant.In((*group).nakReceived,
		"if e.LessEq(b.a) {",
		"if e <= b.a {")),
	mutant.New("after one NAK no later one passes", "R05", mutant.In((*group).evaluate,
		"r.awaits(next) && worst <= r.severity",
		"r.$1() && r.$2.$3(next) && worst <= r.severity", (*request).isOpen, request{}.psn, rocev2.PSN.LessEq)),
	mutant.New("a stale NAK is pending", "R06", mutant.In((*group).nakReceived,
		"if e.LessEq(b.a) {",
		"if e.$1(b.a) {", rocev2.PSN.Less)),
	mutant.New("one NAK slot for all legs", "R07", mutant.In((*group).nakReceived,
		`g.setPend(b, sev, syn)
	return true`,
		`for j := range g.$1 {
		g.setPend(&g.$1[j], $2, 0)
	}
	g.setPend(b, sev, syn)
	return true`, group{}.acks, sevNone)),
	mutant.New("a pending NAK outlives its retransmission", "R08", mutant.In((*group).forward,
		"if d == 1 && b.pend != noPend && b.pend != sevFatal {",
		"if d < 1 {")),
	mutant.New("a pending NAK outlives its acknowledgement", "R08", mutant.In((*group).noteAcked,
		`b.a = psn
	g.setPend(b, noPend, 0)
	return true`,
		`b.a = psn
	return true`)),
	mutant.New("a NAK goes on for every receiver that lacks the packet", "R09", mutant.In((*group).evaluate,
		"r.awaits(next) && worst <= r.severity",
		"r.awaits(next) && worst < r.severity")),
	mutant.New("no second NAK after the PSN has passed again", "R09", mutant.In((*group).noteReceived,
		"g.agg.request.serve(psn)",
		"")),
	mutant.New("an ACK for every ACK", "R11", mutant.In((*group).handleFeedback,
		`if !g.acked(now, i, psn, out) {
			return FeedbackStale
		}`,
		`if !g.acked(now, i, psn, out) {
			g.$1(out)
			return FeedbackStale
		}`, (*group).sendACK)),
	mutant.New("NAKs go on at once", "R14", mutant.In((*group).handleFeedback,
		`} else if !g.negative(now, i, kind, p.Syndrome, psn, out) {
		return FeedbackStale
	}`,
		`} else if !g.negative(now, i, kind, p.Syndrome, psn, out) {
		return FeedbackStale
	} else {
		g.$1(out, p.Syndrome, psn)
		return $2
	}`, (*group).sendNAK, None)),
	mutant.New("any leg's NAK is sent for acked+1", "R14", mutant.In((*group).worstPending,
		"if b.pend == noPend || b.a != g.agg.a {",
		"if b.pend == noPend {")),
	mutant.New("no ACK before a NAK", "R14", mutant.In((*group).raiseAcked,
		`g.ack(out)
	if g.recv.nfresh != 0`,
		`if g.$2.$1 == 0 {
		g.ack(out)
	}
	if g.recv.nfresh != 0`, aggregation{}.numPending, group{}.agg)),
	mutant.New("the implied ACK of a NAK is one too many", "R14", mutant.In((*group).nakReceived,
		"moved := g.acked(now, i, e.Prev(), out)",
		"moved := g.acked(now, i, e, out)")),
	mutant.New("the implied ACK of a NAK is not used", "R14", mutant.In((*group).nakReceived,
		`	if e.LessEq(b.a) {
		return false // older than what the branch has acknowledged (R06)
	}
	moved := g.acked(now, i, e.Prev(), out)`,
		`	if e.LessEq(b.a) {
		return false // older than what the branch has acknowledged (R06)
	}
	moved := e == b.a.$1() || g.$3.$2 == e`, rocev2.PSN.Next, forwarding{}.nxt, group{}.fwd)),
	mutant.New("feedback for what was never forwarded is believed", "6.2", mutant.In((*group).handleFeedback,
		"if g.fwd.hi.LessEq(acknowledged(kind, psn)) ||",
		"if g.fwd.hi.$1(100).LessEq(acknowledged(kind, psn)) ||", rocev2.PSN.Add)),
	mutant.New("feedback for hi is believed", "6.2", mutant.In((*group).handleFeedback,
		"if g.fwd.nxt.LessEq(ackedBy(kind, psn)) || g.acksUnread(p, i, psn) {",
		"if g.fwd.nxt.$1(ackedBy(kind, psn)) || g.acksUnread(p, i, psn) {", rocev2.PSN.Less), mutant.In((*group).handleFeedback,
		"if g.fwd.nxt == psn {\n\t\treturn FeedbackAhead",
		"if false {\n\t\treturn FeedbackAhead")),
	mutant.New("feedback from long ago is looked at", "6.2", mutant.In((*group).handleFeedback,
		"if psn.Sub(g.agg.a) < -pastWindow {",
		"if psn.Sub(g.agg.a) < -2*pastWindow {")),
	mutant.New("RNR NAKs become sequence NAKs", "R19", mutant.In((*group).evaluate,
		`g.nak(out, code, next)
		if worst == sevFatal {`,
		`g.nak(out, max(code&0x7F, 0x60), next)
		if worst == sevFatal {`)),
	mutant.New("RNR codes are compared, not durations", "R19", mutant.In((*group).worstPending,
		"b.info.RNRCode().Duration() > code.RNRCode().Duration()",
		"b.info&31 > code&31")),
	mutant.New("the first RNR NAK's wait is taken", "R19", mutant.In((*group).worstPending,
		"b.pend > sev || b.pend == sevRNR && sev == sevRNR && b.info.RNRCode().Duration() > code.RNRCode().Duration()",
		"b.pend > sev")),
	mutant.New("a sequence NAK replaces an RNR NAK", "R19", mutant.In((*group).nakReceived,
		"if sev <= b.pend {",
		"if sev == b.pend {")),
	mutant.New("a RNR NAK weighs no more than a sequence NAK", "R19", mutant.In(severityOf,
		`	case rocev2.KindRNR:
		return sevRNR
	}`,
		`	case rocev2.KindRNR:
		return $1
	}`, sevSequence)),
	mutant.New("ACKs carry credits", "R20", mutant.In((*group).sendACK,
		"g.send(out, rocev2.Acknowledge, rocev2.SyndromeACK, g.agg.a)",
		"g.send(out, rocev2.Acknowledge, 0x1E, g.agg.a)")),
	mutant.New("ACKs carry a receiver's MSN", "R20", mutant.In((*group).handleFeedback,
		"g.count.FeedbackIn++",
		`g.count.FeedbackIn++
	g.$4.$1.$2 = $arg2.$3`, aggregation{}.messages, messages{}.completed, Packet{}.MSN, group{}.agg)),
	mutant.New("the MSN counts packets", "R20", mutant.In((*group).noteForwarded,
		`if ends {
			g.agg.msgs.extend(psn)
		}`,
		"g.agg.msgs.extend(psn)")),
	mutant.New("a message end lost before the switch is not counted", "R20", mutant.In((*group).noteForwarded,
		"g.correctMessagesBefore(psn, g.agg.messages.correctEnd(psn, ends))",
		"")),
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
		`		return g.request(now, p, f, out)
	case g.isAnswer(p):
		return g.relay(p, out)
	case p.Op == rocev2.Acknowledge:`,
		`		return g.request(now, p, f, out)
	case g.isAnswer(p):
		return g.relay(p, out)
	case p.Op == rocev2.Acknowledge:
		g.$1(now, p, p.$2, f, out)`, (*group).forward, Packet{}.PSN)),
	mutant.New("reserved syndromes are fatal", "C47", mutant.In((*group).handleFeedback,
		`if kind == rocev2.KindReserved && !selective {
		return ReservedSyndrome
	}`,
		"")),
	mutant.New("unverified feedback is believed", "R33", mutant.In((*group).handleFeedback,
		`		return g.probeAnswer(now, p, i, kind, out)
	}
	i, r := g.branchOf(p)
	if r != None {
		return r
	}
	if g.is(failed) {
		return GroupDead
	}
	if !p.Verified {`,
		`		return g.probeAnswer(now, p, i, kind, out)
	}
	i, r := g.branchOf(p)
	if r != None {
		return r
	}
	if g.is(failed) {
		return GroupDead
	}
	if !p.Verified && kind != $1 {`, rocev2.KindACK)),
	mutant.New("an unverified NAK is believed", "R33", mutant.In((*group).handleFeedback,
		`		return g.probeAnswer(now, p, i, kind, out)
	}
	i, r := g.branchOf(p)
	if r != None {
		return r
	}
	if g.is(failed) {
		return GroupDead
	}
	if !p.Verified {`,
		`		return g.probeAnswer(now, p, i, kind, out)
	}
	i, r := g.branchOf(p)
	if r != None {
		return r
	}
	if g.is(failed) {
		return GroupDead
	}
	if !p.Verified && kind == $1 {`, rocev2.KindACK)),
	mutant.New("only the most congested leg's CNPs are dropped", "R32", mutant.In((*group).handleCNP,
		"if !g.hottest(now, i) ||",
		"if g.hottest(now, i) ||")),
	mutant.New("no CNP passes when the most congested leg is silent", "R32", mutant.In((*group).noteSignal,
		"return w >= wb || now-g.cnp.bestSeen > cnpSilence",
		"return w >= wb")),
	mutant.New("every leg's CNPs pass", "R32", mutant.In((*group).handleCNP,
		"if !g.hottest(now, i) ||",
		"if g.hottest(now, i);")),
	mutant.New("CNPs pass as fast as they come", "R32", mutant.In((*group).handleCNP,
		"now-g.cnp.passed < cnpGap",
		"now < g.cnp.passed")),
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
		`if g.hottest(now, i) {
		g.cnp.becn = true
	}`,
		`g.hottest(now, i)
	g.cnp.becn = true`)),
	mutant.New("BECN is never cleared", "R32", mutant.In((*group).sendACK,
		`g.send(out, rocev2.Acknowledge, rocev2.SyndromeACK, g.agg.a)
	g.cnp.becn = false`,
		"g.send(out, rocev2.Acknowledge, rocev2.SyndromeACK, g.agg.a)")),
}
