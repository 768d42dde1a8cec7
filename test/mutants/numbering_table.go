// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Wrong ways to verify the numbering of receivers.
var numberingMutants = []mutant{
	{"an unverified receiver is admitted with the source", "R52", "mcast/epoch.go", []edit{{
		"		case join && !l.verify.pending:\n",
		"		case join:\n",
	}}},
	{"an unverified receiver joins where a quorum begins", "R55", "mcast/epoch.go", []edit{{
		"if l := &g.legs[i]; l.joining && !l.verify.pending {",
		"if l := &g.legs[i]; l.joining {",
	}}},
	{"a wrong answer verifies", "R55", "mcast/numbering.go", []edit{{
		"if expects == r && kind == rocev2.KindACK || fresh {",
		"if kind == rocev2.KindACK || fresh {",
	}}},
	{"a NAK verifies", "R52", "mcast/numbering.go", []edit{{
		"if expects == r && kind == rocev2.KindACK || fresh {",
		"if expects == r || fresh {",
	}}},
	{"what came before a probe verifies", "R52", "mcast/numbering.go", []edit{{
		"	if v.sent == 0 {\n",
		"	if v.sent == 0 && g.dead {\n",
	}}},
	{"an unverified packet verifies a receiver's numbering", "R33", "mcast/numbering.go", []edit{{
		"	if !p.Verified {\n",
		"	if !p.Verified && g.dead {\n",
	}}},
	{"a probe has the PSN that it asks for", "R52", "mcast/numbering.go", []edit{{
		".r.Add(-probeBack)",
		".r",
	}}},
	{"one wrong answer is enough", "R55", "mcast/numbering.go", []edit{{
		"	case v.wrong && v.probes >= wrongAnswers:\n",
		"	case v.wrong:\n",
	}}},
	{"a message begins while a receiver of it is unverified", "R53", "mcast/numbering.go", []edit{{
		"		case g.quorum == 0 && l.joining:\n			return false\n",
		"		case g.quorum == 0 && l.joining:\n			return true\n",
	}}},
	{"a quorum waits for every receiver's numbering", "R53", "mcast/numbering.go", []edit{{
		"		case g.quorum == 0 && l.joining:\n",
		"		case l.joining:\n",
	}}},
	{"the source is not asked for what waited", "R53", "mcast/numbering.go", []edit{{
		"n.held, n.resume = false, g.src != nobody",
		"n.held, n.resume = false, false",
	}}},
	{"the source is not asked after a removal", "R53", "mcast/join.go", []edit{{
		"		g.resumeHeld(out)\n",
		"",
	}}},
	{"what follows a message that waits is forwarded", "R53", "mcast/numbering.go", []edit{{
		"		return n.held\n",
		"		return false\n",
	}}},
	{"a gap is forwarded while some wait to join", "R53", "mcast/numbering.go", []edit{{
		"	case psn != g.hi && !n.held && g.njoin > 0:\n",
		"	case psn != g.hi && !n.held && g.njoin > len(g.legs):\n",
	}}},
	{"an unverified receiver that leaves is still waited for", "R53", "mcast/group.go", []edit{{
		"	g.verified(LegID(i))\n",
		"",
	}}},
	{"the MSN of a fresh receiver is not compared", "R52", "mcast/numbering.go", []edit{{
		"	return p.MSN != (due-v.before)&rocev2.PSNMask\n",
		"	return false\n",
	}}},
	{"empty answers are late ones, however many", "R52", "mcast/numbering.go", []edit{{
		"	return !v.fresh || int(v.empty) <= int(v.sent)+surplus\n",
		"	return true\n",
	}}},
	{"an ACK beyond what was forwarded is only dropped", "R54", "mcast/feedback.go", []edit{{
		"		if p.Neighbor == 0 {\n",
		"		if p.Neighbor == 0 && g.dead {\n",
	}}},
	{"a neighbour's ACK beyond what was forwarded ends it", "R54", "mcast/feedback.go", []edit{{
		"		if p.Neighbor == 0 {\n",
		"		if !g.dead {\n",
	}}},
	{"silence to probes is never the end", "R55", "mcast/numbering.go", []edit{{
		"now-max(n.since, v.from) < g.deadAfter || !g.anyVerified()",
		"now >= n.since || !g.anyVerified()",
	}}},
	{"silence of all to probes removes one", "R55", "mcast/numbering.go", []edit{{
		" < g.deadAfter || !g.anyVerified()",
		" < g.deadAfter",
	}}},
	{"a strict group fails before what precedes the message is complete", "R55", "mcast/numbering.go", []edit{{
		"	case g.src != nobody && g.a == g.hi.Prev():",
		"	case g.src != nobody:",
	}}},
	{"idle receivers are probed for ever", "R52", "mcast/numbering.go", []edit{{
		" || g.dead || !n.held && later == 0 && n.rounds >= idleProbes {",
		" || g.dead {",
	}}},
}
