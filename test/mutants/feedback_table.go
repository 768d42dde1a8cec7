// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Wrong ways to make one feedback of many.
var feedbackMutants = []mutant{
	{"A is the maximum", "R01", "mcast/eval.go", []edit{{
		"case first || b.a.Less(m):",
		"case first || m.Less(b.a):",
	}}},
	{"the first ACK counts for all", "R01", "mcast/feedback.go", []edit{{
		"		if !g.acked(now, i, psn, out) {\n			return FeedbackStale\n		}",
		"		if !g.acked(now, i, psn, out) {\n			return FeedbackStale\n		}\n		if g.a.Less(psn) {\n			g.a = psn\n			g.ack(out)\n			return None\n		}",
	}}},
	{"only the last branch to arrive releases the ACK", "R02", "mcast/feedback.go", []edit{{
		"if g.low <= g.slack || b.pend != noPend && b.a.LessEq(g.a) {",
		"if g.low <= g.slack && i == len(g.branches)-1 || b.pend != noPend && b.a.LessEq(g.a) {",
	}}},
	{"a NAK is not evaluated before A moves", "R03", "mcast/feedback.go", []edit{{
		"if g.low <= g.slack || b.pend != noPend && b.a.LessEq(g.a) {",
		"if g.low <= g.slack {",
	}}},
	{"ACKs compare as plain numbers", "R04", "mcast/group.go", []edit{{
		"	if psn.LessEq(b.a) {\n		return false\n	}\n	if b.a.LessEq(g.a)",
		"	if psn <= b.a {\n		return false\n	}\n	if b.a.LessEq(g.a)",
	}}},
	{"the minimum compares as plain numbers", "R04", "mcast/eval.go", []edit{{
		"case first || b.a.Less(m):",
		"case first || b.a < m:",
	}}},
	{"NAKs compare as plain numbers", "R04", "mcast/feedback.go", []edit{{
		"if e.LessEq(b.a) {",
		"if e <= b.a {",
	}}},
	{"after one NAK no later one passes", "R05", "mcast/eval.go", []edit{{
		"g.nsev != noPend && g.nout == next && !g.seen && worst <= g.nsev",
		"g.nsev != noPend && g.nout.LessEq(next) && worst <= g.nsev",
	}}},
	{"a stale NAK is pending", "R06", "mcast/feedback.go", []edit{{
		"if e.LessEq(b.a) {",
		"if e.Less(b.a) {",
	}}},
	{"one NAK slot for all branches", "R07", "mcast/feedback.go", []edit{{
		"	g.setPend(b, sev, syn)\n	return true",
		"	for j := range g.branches {\n		g.setPend(&g.branches[j], noPend, 0)\n	}\n	g.setPend(b, sev, syn)\n	return true",
	}}},
	{"a pending NAK outlives its retransmission", "R08", "mcast/data.go", []edit{{
		"if d == 1 && b.pend != noPend && b.pend != sevFatal {",
		"if d < 1 {",
	}}},
	{"a pending NAK outlives its acknowledgement", "R08", "mcast/group.go", []edit{{
		"	b.a = psn\n	g.setPend(b, noPend, 0)\n	return true",
		"	b.a = psn\n	return true",
	}}},
	{"a NAK goes on for every receiver that lacks the packet", "R09", "mcast/eval.go", []edit{{
		"g.nout == next && !g.seen && worst <= g.nsev",
		"g.nout == next && !g.seen && worst < g.nsev",
	}}},
	{"no second NAK after the PSN has passed again", "R09", "mcast/data.go", []edit{{
		"		g.seen = true\n	}\n	if psn != g.hi || starts {",
		"	}\n	if psn != g.hi || starts {",
	}}},
	{"an ACK for every ACK", "R11", "mcast/feedback.go", []edit{{
		"		if !g.acked(now, i, psn, out) {\n			return FeedbackStale\n		}",
		"		if !g.acked(now, i, psn, out) {\n			g.ack(out)\n			return FeedbackStale\n		}",
	}}},
	{"NAKs go on at once", "R14", "mcast/feedback.go", []edit{{
		"	} else if !g.negative(now, i, kind, p.Syndrome, psn, out) {\n		return FeedbackStale\n	}",
		"	} else if !g.negative(now, i, kind, p.Syndrome, psn, out) {\n		return FeedbackStale\n	} else {\n		g.nak(out, p.Syndrome, psn)\n		return None\n	}",
	}}},
	{"any branch's NAK is sent for A+1", "R14", "mcast/eval.go", []edit{{
		"b.bits&receiving == 0 || b.a != g.a {",
		"b.bits&receiving == 0 {",
	}}},
	{"no ACK before a NAK", "R14", "mcast/eval.go", []edit{{
		"	g.ack(out)\n	if g.nfresh > 0",
		"	if g.npend == 0 {\n		g.ack(out)\n	}\n	if g.nfresh > 0",
	}}},
	{"the implied ACK of a NAK is one too many", "R14", "mcast/feedback.go", []edit{{
		"moved := g.acked(now, i, e.Prev(), out)",
		"moved := g.acked(now, i, e, out)",
	}}},
	{"the implied ACK of a NAK is not used", "R14", "mcast/feedback.go", []edit{{
		"moved := g.acked(now, i, e.Prev(), out)",
		"moved := e == b.a.Next() || g.hi == e",
	}}},
	{"feedback for what was never forwarded is believed", "6.2", "mcast/feedback.go", []edit{{
		"if g.hi.LessEq(acknowledged(kind, psn)) || ",
		"if g.hi.Add(100).LessEq(acknowledged(kind, psn)) || ",
	}}},
	{"feedback for hi is believed", "6.2", "mcast/feedback.go", []edit{{
		"if g.hi.LessEq(acknowledged(kind, psn)) || ",
		"if g.hi.Less(acknowledged(kind, psn)) || ",
	}, {
		"	if g.hi == psn {\n		return FeedbackAhead",
		"	if g.hi == psn && kind != rocev2.KindACK {\n		return FeedbackAhead",
	}}},
	{"feedback from long ago is looked at", "6.2", "mcast/feedback.go", []edit{{
		"if psn.Sub(g.a) < -pastWindow {",
		"if psn.Sub(g.a) < -2*pastWindow {",
	}}},
	{"RNR NAKs become sequence NAKs", "R19", "mcast/eval.go", []edit{{
		"g.nak(out, code, next)",
		"g.nak(out, max(code&0x7F, 0x60), next)",
	}}},
	{"RNR codes are compared, not durations", "R19", "mcast/eval.go", []edit{{
		"rnrWait[b.info&31] > rnrWait[code&31]",
		"b.info&31 > code&31",
	}}},
	{"the first RNR NAK's wait is taken", "R19", "mcast/eval.go", []edit{{
		"b.pend > sev || b.pend == sevRNR && sev == sevRNR && rnrWait[b.info&31] > rnrWait[code&31]",
		"b.pend > sev",
	}}},
	{"a sequence NAK replaces an RNR NAK", "R19", "mcast/feedback.go", []edit{{
		"if sev <= b.pend {",
		"if sev == b.pend {",
	}}},
	{"a RNR NAK weighs no more than a sequence NAK", "R19", "mcast/feedback.go", []edit{{
		"		return sevRNR\n",
		"		return sevSequence\n",
	}}},
	{"ACKs carry credits", "R20", "mcast/group.go", []edit{{
		"g.send(out, rocev2.Acknowledge, rocev2.SyndromeACK, g.a)",
		"g.send(out, rocev2.Acknowledge, 0x1E, g.a)",
	}}},
	{"ACKs carry a receiver's MSN", "R20", "mcast/feedback.go", []edit{{
		"	g.count.FeedbackIn++\n",
		"	g.count.FeedbackIn++\n	g.msgs.done = p.MSN\n",
	}}},
	{"the MSN counts packets", "R20", "mcast/data.go", []edit{{
		"		if ends {\n			g.msgs.extend(psn)\n		}",
		"		g.msgs.extend(psn)",
	}}},
	{"a message end lost before the switch is not counted", "R20", "mcast/data.go", []edit{{
		"		g.msgs.correct(psn, ends)\n",
		"",
	}}},
	{"feedback is known by its port", "R21", "mcast/feedback.go", []edit{{
		"	} else if m, ok := g.byIP.get(keyOf(p.Src)); ok {\n		l := g.members[m].leg",
		"	} else if m, ok := g.byIP.get(keyOf(p.Src)); ok {\n		l := g.members[m].leg\n		for j := range g.legs {\n			if g.legs[j].spec.Port == p.Port {\n				l = LegID(j)\n			}\n		}",
	}}},
	{"feedback is multicast as well", "R22", "mcast/switch.go", []edit{{
		"	case p.Op == rocev2.Acknowledge:\n",
		"	case p.Op == rocev2.Acknowledge:\n		g.forward(now, p, p.PSN, f, out)\n",
	}}},
	{"reserved syndromes are fatal", "C47", "mcast/feedback.go", []edit{{
		"	if kind == rocev2.KindReserved {\n		return ReservedSyndrome\n	}\n",
		"",
	}}},
	{"unverified feedback is believed", "R33", "mcast/feedback.go", []edit{{
		"if !p.Verified {",
		"if !p.Verified && kind != rocev2.KindACK {",
	}}},
	{"an unverified NAK is believed", "R33", "mcast/feedback.go", []edit{{
		"if !p.Verified {",
		"if !p.Verified && kind == rocev2.KindACK {",
	}}},
	{"the hottest branch's CNPs only are dropped", "R32", "mcast/cnp.go", []edit{{
		"if !g.hottest(now, i) || ",
		"if g.hottest(now, i) || ",
	}}},
	{"no CNP passes when the hottest branch is silent", "R32", "mcast/cnp.go", []edit{{
		"return w >= wb || now-g.bestSeen > cnpSilence",
		"return w >= wb",
	}}},
	{"every branch's CNPs pass", "R32", "mcast/cnp.go", []edit{{
		"if !g.hottest(now, i) || ",
		"if g.hottest(now, i); ",
	}}},
	{"CNPs pass as fast as they come", "R32", "mcast/cnp.go", []edit{{
		"now-g.passed < cnpGap",
		"now < g.passed",
	}}},
	{"an unverified CNP is believed", "R33", "mcast/cnp.go", []edit{{
		"	if !p.Verified {\n		out.NeedVerify = true\n		return None\n	}\n",
		"",
	}}},
	{"weights of branches do not decay", "R32", "mcast/cnp.go", []edit{{
		"	w >>= uint(n)\n",
		"	return w\n",
	}}},
	{"every branch's BECN goes to the source", "R32", "mcast/cnp.go", []edit{{
		"	if g.hottest(now, i) {\n		g.becn = true\n	}",
		"	g.hottest(now, i)\n	g.becn = true",
	}}},
	{"BECN is never cleared", "R32", "mcast/group.go", []edit{{
		"	g.send(out, rocev2.Acknowledge, rocev2.SyndromeACK, g.a)\n	g.becn = false",
		"	g.send(out, rocev2.Acknowledge, rocev2.SyndromeACK, g.a)",
	}}},
}
