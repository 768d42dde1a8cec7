// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Wrong ways to change the source.
var sourceMutants = []mutant{
	{"the source is waited for", "R15", "mcast/epoch.go", []edit{{
		"join := int32(i) != g.srcLeg && l.members > 0\n",
		"join := l.members > 0\n",
	}}},
	{"the source's feedback counts", "R15", "mcast/feedback.go", []edit{{
		"	case int32(i) == g.srcLeg:\n		return 0, FromSource\n",
		"",
	}}},
	{"the first PSN is learnt from the first packet", "R16", "mcast/epoch.go", []edit{{
		"	g.endEpoch(out)\n	g.startEpoch(MemberID(k), out)",
		"	g.endEpoch(out)\n	m.p = psn\n	g.startEpoch(MemberID(k), out)",
	}}},
	{"what precedes the first packet counts as acknowledged", "R16", "mcast/epoch.go", []edit{{
		"g.hi, g.a, g.past = m.p, m.p.Prev(), m.past",
		"g.hi, g.a, g.past = m.p, m.p, m.past",
	}}},
	{"a late duplicate makes the old source the current one", "R17", "mcast/epoch.go", []edit{{
		"	if d < 0 {\n",
		"	if d < 0 && !g.quiescent() {\n",
	}}},
	{"the source is known without its switch", "R17", "mcast/data.go", []edit{{
		"keyOf(p.Src) == g.srcKey && p.Neighbor == g.srcNbr {",
		"keyOf(p.Src) == g.srcKey {",
	}}},
	{"another source's feedback between switches counts", "R18", "mcast/feedback.go", []edit{{
		"case p.Neighbor != 0 && keyOf(p.Src) != g.srcKey:",
		"case p.Neighbor != 0 && !p.Src.IsValid():",
	}}},
	{"a new source may be behind any switch", "R17", "mcast/epoch.go", []edit{{
		"if p.Neighbor != g.legs[m.leg].spec.Neighbor {",
		"if p.Neighbor > 100 {",
	}}},
	{"a receiver's queue is thought to be where it began", "R18", "mcast/group.go", []edit{{
		"		g.members[l.member].r = b.a.Add(1 + int32(b.delta))\n",
		"",
	}}},
	{"a receiver's queue is off by one after an epoch", "R18", "mcast/group.go", []edit{{
		"b.a.Add(1 + int32(b.delta))",
		"b.a.Add(int32(b.delta))",
	}}},
	{"a source begins again where it first began", "R18", "mcast/epoch.go", []edit{{
		"m.p, m.msgs, m.past = g.hi, g.msgs.done, g.past",
		"m.msgs, m.past = g.msgs.done, g.past",
	}}},
	{"a source's MSN begins again", "R20", "mcast/epoch.go", []edit{{
		"g.msgs.start(m.msgs)",
		"g.msgs.start(0)",
	}}},
	{"the source changes with packets in flight", "R29", "mcast/epoch.go", []edit{{
		"g.a == g.hi.Prev() && !g.open",
		"!g.open",
	}}},
	{"the source changes inside a message", "R29", "mcast/epoch.go", []edit{{
		"g.a == g.hi.Prev() && !g.open",
		"g.a == g.hi.Prev()",
	}}},
	{"a rewound message end does not open its message", "R29", "mcast/data.go", []edit{{
		"		if d == -1 {\n			g.open = !ends\n		}\n",
		"",
	}}},
	{"a late duplicate gets the current source's A", "R29", "mcast/epoch.go", []edit{{
		"PSN: m.p.Prev(), Syndrome: rocev2.SyndromeACK, MSN: m.msgs,",
		"PSN: g.a, Syndrome: rocev2.SyndromeACK, MSN: m.msgs,",
	}}},
	{"a late duplicate's answer goes to the current source", "R29", "mcast/epoch.go", []edit{{
		"Group: g.id, To: k, Op: rocev2.Acknowledge,",
		"Group: g.id, To: MemberID(g.src), Op: rocev2.Acknowledge,",
	}}},
	{"an unverified packet changes the source", "R33", "mcast/epoch.go", []edit{{
		"	if !p.Verified {\n		out.NeedVerify = true\n		return None\n	}\n	if !quiescent",
		"	if !quiescent",
	}}},
	{"a NAK of the old epoch silences the new one's", "R18", "mcast/epoch.go", []edit{{
		"g.nsev, g.seen, g.hasPrev, g.open = noPend, false, false, false",
		"g.hasPrev, g.open = false, false",
	}}},
	{"a member that was removed may send", "R31", "mcast/epoch.go", []edit{{
		"if !ok || !g.members[k].live {",
		"if !ok {",
	}}},
	{"a packet after a gap is believed to be the next", "R64", "mcast/data.go", []edit{{
		"return !g.hasPrev || g.prev != psn.Prev() || now-g.prevAt",
		"return !g.hasPrev || now-g.prevAt",
	}}},
	{"a packet after a pause is believed to be the next", "R64", "mcast/data.go", []edit{{
		" || now-g.prevAt > certain || ",
		" || ",
	}}},
	{"a source that was asked to go back is believed to go on", "R64", "mcast/data.go", []edit{{
		" || g.nsev != noPend && !g.seen\n}",
		"\n}",
	}}},
	{"a source may stall for ever", "R65", "mcast/turns.go", []edit{{
		"	if now-g.awaited < g.stallTime {",
		"	if now-g.awaited < 1000*g.stallTime {",
	}}},
	{"a source that sends is given up", "R65", "mcast/data.go", []edit{{
		"g.prev, g.prevAt, g.hasPrev, g.awaited = psn, now, true, 0",
		"g.prev, g.prevAt, g.hasPrev = psn, now, true",
	}}},
	{"the next source begins inside a message", "R65", "mcast/turns.go", []edit{{
		"	if g.open || whole < g.keep {",
		"	g.open = false\n	if whole < g.keep {",
	}}},
	{"a stalled source's receivers are removed under any policy", "R65", "mcast/turns.go", []edit{{
		"	if g.open || whole < g.keep {",
		"	if g.open || whole < 1 {",
	}}},
	{"a receiver that lacks something stays without its source", "R65", "mcast/turns.go", []edit{{
		"			g.evict(i, Stranded, out)\n",
		"			g.branches[i].a = last\n",
	}}},
	{"anything of another member is a request to send", "R65", "mcast/epoch.go", []edit{{
		"if !quiescent && psn != m.p {",
		"if !quiescent && g.dead {",
	}}},
	{"who waits for its turn hears nothing", "R66", "mcast/turns.go", []edit{{
		"	m := &g.members[k]\n	g.count.FeedbackOut++\n",
		"	m := &g.members[k]\n	if m.live {\n		return\n	}\n	g.count.FeedbackOut++\n",
	}}},
	{"what another switch has forwarded is told to wait", "R66", "mcast/epoch.go", []edit{{
		"		if p.Neighbor == 0 && m.live {\n			g.askToWait",
		"		if p.Neighbor < 9 && m.live {\n			g.askToWait",
	}}},
	{"an ONLY may have fewer bytes than it says", "R67", "mcast/window.go", []edit{{
		"return p.DMALen == uint32(p.Payload)",
		"return p.DMALen >= uint32(p.Payload)",
	}}},
	{"a FIRST may have all bytes of its message", "R67", "mcast/window.go", []edit{{
		"return p.DMALen > uint32(p.Payload)",
		"return p.DMALen >= uint32(p.Payload)",
	}}},
	{"a LAST may have more or fewer than what is left", "R67", "mcast/window.go", []edit{{
		"return left == int64(p.Payload)",
		"return left > 0",
	}}},
	{"a MIDDLE may leave nothing", "R67", "mcast/window.go", []edit{{
		"	return left > int64(p.Payload)\n",
		"	return left > 0\n",
	}}},
	{"the length of a damaged FIRST stays", "R67", "mcast/window.go", []edit{{
		"		if !g.write.known || psn != g.write.first || write == g.write {\n			return // a later message may have begun unseen\n		}\n		if g.write = write; psn.Less(g.refused.psn) {\n			g.refused = refusal{} // by what it seemed to say\n		}\n",
		"		return\n",
	}}},
	{"a FIRST that passes again is the newest message's, though a later one began unseen", "R67", "mcast/window.go", []edit{{
		"		if !g.write.known || psn", "		if psn",
	}}},
	{"what a damaged FIRST had refused stays refused", "R67", "mcast/window.go", []edit{{
		"			g.refused = refusal{} // by",
		"			g.write.known = true // by",
	}}},
	{"a LAST after a gap is judged by an earlier FIRST", "R67", "mcast/window.go", []edit{{
		"	default:\n		g.write.known = false\n",
		"	default:\n		g.write.known = g.write.known || false\n",
	}, {
		"before <= 0 || g.hi.Less(psn) {",
		"before <= 0 {",
	}}},
}
