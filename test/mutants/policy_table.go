// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Wrong ways to do with fewer than all: quorums, lag limits, dead receivers,
// changes of members.
var policyMutants = []mutant{
	{"who takes over a leg takes over its PSNs", "R35", "mcast/join.go", []edit{{
		"	g.members[id] = newMember(m)\n",
		"	r := g.members[id].r\n	g.members[id] = newMember(m)\n	g.members[id].r = r\n",
	}}},
	{"an address of one who leaves is not free", "R35", "mcast/join.go", []edit{{
		"g.members[j].live && !c.leaving[MemberID(j)] {",
		"g.members[j].live {",
	}}},
	{"two may take over one leg", "R35", "mcast/join.go", []edit{{
		"		c.taken[at] = true\n",
		"",
	}}},
	{"one fewer than the quorum is enough", "R36", "mcast/quorum.go", []edit{{
		"at := n - g.quorum\n",
		"at := min(n-g.quorum+1, n-1)\n",
	}}},
	{"a joiner is one of the quorum for what it never got", "R36", "mcast/quorum.go", []edit{{
		"b.bits&(receiving|fresh) == receiving {",
		"b.bits&receiving != 0 {",
	}}},
	{"a joiner is never one of the quorum", "R36", "mcast/eval.go", []edit{{
		"if g.nfresh > 0 && g.freshTo.LessEq(m) {",
		"if g.nfresh > 0 && g.freshTo.Add(1000).LessEq(m) {",
	}}},
	{"the source changes while a receiver is behind the quorum", "R36", "mcast/epoch.go", []edit{{
		" && (g.quorum == 0 || g.level())",
		"",
	}}},
	{"what the quorum has is not repeated to the others", "R37", "mcast/data.go", []edit{{
		"if g.quorum > 0 && g.npast(psn) > 0 {",
		"if g.quorum > 1000 && g.npast(psn) > 0 {",
	}}},
	{"a stranded receiver is kept", "R37", "mcast/eval.go", []edit{{
		"if g.quorum > 0 && g.npend > 0 && g.strand(out) {",
		"if g.quorum > 1000 && g.npend > 0 && g.strand(out) {",
	}}},
	{"a receiver is stranded though the source comes back", "R37", "mcast/quorum.go", []edit{{
		"if b.pend != sevFatal && g.coming(b.a.Next()) {",
		"if b.pend != sevFatal && g.coming(b.a.Next()) && g.dead {",
	}}},
	{"the lag limit is off by one", "R38", "mcast/quorum.go", []edit{{
		"best.Sub(b.a) > g.lagPSNs && g.spare(i)",
		"best.Sub(b.a) >= g.lagPSNs && g.spare(i)",
	}}},
	{"the lag limit removes the last receiver", "R38", "mcast/quorum.go", []edit{{
		"best.Sub(b.a) > g.lagPSNs && g.spare(i)",
		"best.Sub(b.a) > g.lagPSNs",
	}}},
	{"the lag limit in time counts from the first packet on", "R38", "mcast/dead.go", []edit{{
		"		l.mark, l.marked = best, now\n",
		"		l.mark = best\n",
	}}},
	{"a dead receiver that cannot be spared is waited for", "R39", "mcast/quorum.go", []edit{{
		"	case g.branches[i].a.LessEq(g.a):\n",
		"	case g.branches[i].a.LessEq(g.a) && g.dead:\n",
	}}},
	{"a dead receiver ends the group at its newest packet", "R39", "mcast/eval.go", []edit{{
		"g.nout, g.nsev, g.seen = g.a.Next(), sevFatal, false",
		"g.nout, g.nsev, g.seen = g.hi, sevFatal, false",
	}}},
	{"a dead receiver ends the group by a sequence NAK", "R39", "mcast/eval.go", []edit{{
		"		code = rocev2.SyndromeNAKOpErr\n",
		"		code = rocev2.SyndromeNAKSequence\n",
	}}},
	{"fewer than the quorum get the next message", "R40", "mcast/data.go", []edit{{
		"		if g.slack < 0 {\n",
		"		if g.slack < -1000 {\n",
	}}},
	{"fewer than the quorum leave what is in flight open", "R40", "mcast/join.go", []edit{{
		"if g.nrecv-g.nfresh < g.quorum && g.a != g.hi.Prev() {",
		"if g.nrecv-g.nfresh < g.quorum && g.a == g.hi {",
	}}},
	{"removals are judged in the order of the list", "R60", "mcast/join.go", []edit{{
		"		if int32(m) != g.src {\n			g.remove(now, m, out)\n		}\n",
		"		g.remove(now, m, out)\n",
	}, {
		"		if int32(m) == g.src {\n			g.remove(now, m, out)\n		}\n",
		"		_ = m\n",
	}}},
	{"a source that leaves is judged by what A was", "R60", "mcast/apply.go", []edit{{
		"if g.open || !g.level() {",
		"if g.open || g.a != g.hi.Prev() {",
	}}},
	{"a source that leaves inside a message leaves no trace", "R60", "mcast/apply.go", []edit{{
		"if g.open || !g.level() {",
		"if !g.level() {",
	}}},
	{"a quorum without a lag limit has none", "R61", "mcast/apply.go", []edit{{
		"if g.quorum > 0 && g.lagPSNs == 0 {",
		"if g.quorum > 1000 && g.lagPSNs == 0 {",
	}}},
	{"data may be any distance ahead of A", "R61", "mcast/data.go", []edit{{
		"if d <= -g.past || d > aheadWindow {",
		"if d <= -g.past {",
	}}},
	{"a fast path may go any distance ahead of A", "R61", "mcast/fastpath.go", []edit{{
		"case hi.Prev().Sub(g.a) > aheadWindow:",
		"case hi.Prev().Sub(g.a) > 2*aheadWindow:",
	}}},
	{"the source is expected to come back for ever", "R62", "mcast/eval.go", []edit{{
		"		g.nsev, g.seen = noPend, false // the source went on",
		"		g.nsev, g.seen = g.nsev, g.seen // the source went on",
	}}},
	{"a duplicate is no passage", "R62", "mcast/data.go", []edit{{
		"	rewind := g.hasPrev && psn.LessEq(g.prev)\n	if g.nsev != noPend && psn == g.nout {\n		g.seen = true\n	}\n",
		"	rewind := g.hasPrev && psn.LessEq(g.prev)\n",
	}}},
	{"any PSN below A is a duplicate", "R63", "mcast/data.go", []edit{{
		"if d <= -g.past || d > aheadWindow {",
		"if d < -pastWindow || d > aheadWindow {",
	}}},
	{"any PSN below its last is a former source's duplicate", "R63", "mcast/epoch.go", []edit{{
		"if d < -m.past {",
		"if d < -pastWindow {",
	}}},
	{"a source's second epoch has no past", "R63", "mcast/epoch.go", []edit{{
		"g.hi, g.a, g.past = m.p, m.p.Prev(), m.past",
		"g.hi, g.a, g.past = m.p, m.p.Prev(), 0",
	}}},
	{"a source's past is that of its last epoch at most", "R63", "mcast/epoch.go", []edit{{
		"m.p, m.msgs, m.past = g.hi, g.msgs.done, g.past",
		"m.p, m.msgs, m.past = g.hi, g.msgs.done, 0",
	}}},
	{"the targets of a leg are those of who was there before", "R41", "mcast/join.go", []edit{{
		"		g.targets.forget(int(m.Leg))\n",
		"",
	}}},
	{"what is in flight keeps a leg's old targets", "R41", "mcast/targets.go", []edit{{
		"	for i := range t.ring {\n		t.ring[i].legs[leg] = target{}\n	}\n",
		"",
	}}},
}
