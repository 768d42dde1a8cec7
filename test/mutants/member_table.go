// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Wrong ways to deal with members that fail, come and go.
var memberMutants = []mutant{
	{"a slow member that speaks is evicted", "R23", "mcast/dead.go", []edit{{
		"now-max(l.watched, l.heard) >= g.deadAfter",
		"now-l.watched >= g.deadAfter",
	}}},
	{"silence of all evicts all", "R23", "mcast/dead.go", []edit{{
		"	alive := false\n",
		"	alive := true\n",
	}}},
	{"a member that owes nothing is evicted for silence", "R23", "mcast/dead.go", []edit{{
		"return g.deadAfter > 0 && g.branches[i].a.Less(l.watch) && now-max",
		"return g.deadAfter > 0 && now-max",
	}}},
	{"silence counts while the source waits out an RNR timer", "R23", "mcast/dead.go", []edit{{
		"	if g.owed() {\n",
		"	if g.owed() && g.dead {\n",
	}}},
	{"the time for an answer begins before the source is back", "R23", "mcast/data.go", []edit{{
		"			g.rewatch(now)\n",
		"			_ = now\n",
	}}},
	{"silent members are kept for ever", "R23", "mcast/dead.go", []edit{{
		"case alive && (g.rewound || g.behind(i)):",
		"case alive && g.rewound && g.behind(i) && g.a == g.hi:",
	}}},
	{"silence of the last packets is not noticed", "R23", "mcast/dead.go", []edit{{
		"case alive && (g.rewound || g.behind(i)):",
		"case alive && g.behind(i) && b.a != g.a:",
	}}},
	{"a new receiver behind a quorum is judged by what A has counted", "R52", "mcast/numbering.go", []edit{{
		"if !exact || acks.Less(g.a) {",
		"if !exact {",
	}}},
	{"a rewind hides a fatal NAK", "R25", "mcast/data.go", []edit{{
		"if d == 1 && b.pend != noPend && b.pend != sevFatal {",
		"if d == 1 && b.pend != noPend {",
	}}},
	{"a fatal NAK is not repeated to the source", "R25", "mcast/data.go", []edit{{
		"if psn == g.failPSN && g.failCode != 0 {",
		"if psn == g.failPSN.Prev() {",
	}}},
	{"a failed group takes feedback", "R25", "mcast/feedback.go", []edit{{
		"	if g.dead {\n		return GroupDead\n	}\n",
		"",
	}}},
	{"a fatal NAK does not end a strict group", "R25", "mcast/eval.go", []edit{{
		"	g.dead, g.failPSN, g.failCode = true, psn, code\n",
		"	g.failPSN, g.failCode = psn, code\n",
	}}},
	{"fatal NAKs become sequence NAKs", "R25", "mcast/feedback.go", []edit{{
		"	return sevFatal\n",
		"	return sevSequence\n",
	}}},
	{"the last receiver is evicted", "R26", "mcast/apply.go", []edit{{
		"	case Evict:\n		g.keep = 1\n",
		"	case Evict:\n		g.keep = 0\n",
	}}},
	{"strict groups evict", "R26", "mcast/apply.go", []edit{{
		"g.keep = math.MaxInt\n",
		"g.keep = math.MaxInt >> 62\n",
	}}},
	{"an eviction is not evaluated", "R03", "mcast/eval.go", []edit{{
		"			g.evict(who, code, out)\n			continue\n",
		"			g.evict(who, code, out)\n			return\n",
	}}},
	{"an eviction is not reported", "R26", "mcast/eval.go", []edit{{
		"			g.event(out, MemberEvicted, MemberID(m), a, why)\n",
		"			_, _ = a, why\n",
	}}},
	{"members join inside a message", "R30", "mcast/data.go", []edit{
		{"(g.njoin == 0 || !starts)", "g.njoin == 0"},
		{"g.waits(now, psn, starts, out)", "g.waits(now, psn, true, out)"},
	}},
	{"members join at a retransmission", "R30", "mcast/data.go", []edit{{
		"			g.repeated(psn, out)\n",
		"			g.repeated(psn, out)\n			if starts && g.njoin > 0 {\n				g.join(psn)\n			}\n",
	}}},
	{"members join at once", "R30", "mcast/join.go", []edit{{
		"		g.setJoining(int(i), g.src != nobody)\n",
		"		if g.src != nobody {\n			g.admit(int(i), g.hi)\n		}\n",
	}}},
	{"a joiner's first packet counts as acknowledged", "R30", "mcast/group.go", []edit{{
		"	b.a = psn.Prev()\n	b.delta = 0",
		"	b.a = psn\n	b.delta = 0",
	}}},
	{"a joiner without a verified packet", "R33", "mcast/data.go", []edit{{
		"if !p.Verified && (!plain || ",
		"if !p.Verified && (!plain && (g.njoin == 0 || psn != g.hi) || ",
	}}},
	{"a member that leaves is still waited for", "R31", "mcast/join.go", []edit{{
		"		return\n	}\n	g.eval(out)\n}",
		"	}\n}",
	}}},
	{"a leaving member leaves its NAK", "R31", "mcast/group.go", []edit{{
		"	g.setPend(b, noPend, 0)\n	g.setInLine(i)\n	g.receivers(g.nrecv - 1)\n",
		"	g.receivers(g.nrecv - 1)\n",
	}}},
	{"a leaving member takes its switch's others along", "R31", "mcast/join.go", []edit{{
		"	case l.members == 0:\n		g.cut(int(m.leg))",
		"	case l.members < 3:\n		g.cut(int(m.leg))",
	}}},
	{"a source may leave with data in flight", "R31", "mcast/apply.go", []edit{{
		"	if g.open || !g.level() {\n		g.fail(",
		"	if g.open {\n		g.fail(",
	}}},
	{"data of one who is no member is forwarded", "C57", "mcast/data.go", []edit{{
		"if g.src != nobody && keyOf(p.Src) == g.srcKey && p.Neighbor == g.srcNbr {",
		"if g.src != nobody && p.Neighbor == g.srcNbr {",
	}}},
	{"a removed address shadows those behind it in the table", "R21", "mcast/table.go", []edit{{
		"			t.resize(len(t.slots))\n			return",
		"			return",
	}}},
}
