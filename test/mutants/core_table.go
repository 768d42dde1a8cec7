// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Wrong ways to treat members that only receive, come back, or are behind a quorum.
var coreMutants = []mutant{
	{"a member that only receives may send", "R76", "mcast/epoch.go", []edit{{
		"	if m.receiveOnly {\n",
		"	if m.receiveOnly && g.dead {\n",
	}}},
	{"a member that only receives may send if the group is at rest", "R76", "mcast/epoch.go", []edit{{
		"	if m.receiveOnly {\n",
		"	if m.receiveOnly && !g.quiescent() {\n",
	}}},
	{"a member that only receives hears nothing", "R76", "mcast/turns.go", []edit{{
		"	if p.PSN&rocev2.PSNMask != m.p {\n		return NotSender\n",
		"	if p.PSN&rocev2.PSNMask != m.p || g.nrecv > 0 {\n		return NotSender\n",
	}}},
	{"any packet of a member that only receives is answered", "R76", "mcast/turns.go", []edit{{
		"	if p.PSN&rocev2.PSNMask != m.p {\n		return NotSender\n",
		"	if p.PSN&rocev2.PSNMask != m.p && m.p > rocev2.PSNMask {\n		return NotSender\n",
	}}},
	{"an unverified packet is refused for its sender's role", "R33", "mcast/turns.go", []edit{{
		"		return NotSender\n	}\n	if !p.Verified {\n",
		"		return NotSender\n	}\n	if !p.Verified && g.dead {\n",
	}}},
	{"every packet of a member that only receives is an event", "R76", "mcast/turns.go", []edit{{
		"		m.refused = true\n",
		"		m.refused = g.dead\n",
	}}},
	{"who was removed is forgotten", "R73", "mcast/join.go", []edit{{
		"	m.live = false\n	g.leaves(now, id)\n",
		"	m.live = false\n",
	}}},
	{"who was evicted for a NAK is forgotten", "R73", "mcast/switch.go", []edit{{
		"	if len(out.Events) > 0 {\n		g.left",
		"	if len(out.Events) > 9 {\n		g.left",
	}}},
	{"who was evicted by the clock is forgotten", "R73", "mcast/switch.go", []edit{{
		"		g.left(now, out.Events[events:])\n",
		"		g.left(now, out.Events[len(out.Events):][:min(events, 0)])\n",
	}}},
	{"members of a group that is put again are new", "R73", "mcast/apply.go", []edit{{
		"		old.forget(0, out)\n		old.leaveAll(now)\n",
		"		old.forget(0, out)\n",
	}}},
	{"members of a deleted group are forgotten", "R73", "mcast/apply.go", []edit{{
		"	g.forget(0, out)\n	g.leaveAll(now)\n",
		"	g.forget(0, out)\n",
	}}},
	{"who comes back is probed at once", "R73", "mcast/departed.go", []edit{{
		"now + quarantine + p.delay,",
		"now + p.delay,",
	}}},
	{"what waits in a port's queue is not waited for", "R73", "mcast/departed.go", []edit{{
		"now + quarantine + p.delay,",
		"now + quarantine,",
	}}},
	{"every member comes back", "R73", "mcast/departed.go", []edit{{
		"e.group == group && e.member == member {",
		"e.group == group {",
	}}},
	{"members of other groups come back", "R73", "mcast/departed.go", []edit{{
		"e.group == group && e.member == member {",
		"e.member == member {",
	}}},
	{"departures beyond those remembered are forgotten", "R73", "mcast/departed.go", []edit{{
		"		d.lost = max(d.lost, d.at(0).ends(h))\n",
		"",
	}}},
	{"pauses count before one who has left comes back", "R73", "mcast/departed.go", []edit{{
		"return e.until + h.at(e.port).unheard - e.unheard }",
		"return e.until + h.at(e.port).delay*0 }",
	}}},
	{"pauses count while one who is back is waited for", "R73", "mcast/unheard.go", []edit{{
		"	l.verify.from += d\n",
		"",
	}}},
	{"one answer is enough of one who is back", "R73", "mcast/numbering.go", []edit{{
		"		if v.back && !v.twice {\n",
		"		if v.back && !v.twice && g.dead {\n",
	}}},
	{"two answers to one probe are enough", "R73", "mcast/numbering.go", []edit{{
		"		if v.back && !v.twice {\n",
		"		if v.back && !v.once {\n",
	}}},
	{"two answers that differ are enough", "R73", "mcast/numbering.go", []edit{{
		"	v.once, v.twice = false, false\n",
		"",
	}}},
	{"the second probe waits for the next round", "R73", "mcast/numbering.go", []edit{{
		"				v.once = true\n				g.probeSoon(now)\n",
		"				v.once = true\n",
	}}},
	{"who is back is not probed after the last round", "R73", "mcast/numbering.go", []edit{{
		"!n.held && later == 0 && n.rounds >= idleProbes",
		"!n.held && n.rounds >= idleProbes",
	}}},
	{"who is back is probed in the others' rounds", "R73", "mcast/numbering.go", []edit{{
		"	if later > 0 {\n		n.at = min(n.at, later)\n	}\n",
		"",
	}}},
	{"who is back is probed as seldom as the others are by then", "R73", "mcast/numbering.go", []edit{{
		"			n.wait, n.rounds, v.from = n.every, 0, now\n",
		"			v.from = now\n",
	}}},
	{"who is back is silent before it is asked", "R73", "mcast/numbering.go", []edit{{
		"now-max(n.since, v.from) < g.deadAfter",
		"now-n.since < g.deadAfter",
	}}},
	{"a group that comes back may be another worker's", "R73", "dataplane/owners.go", []edit{{
		"time.Since(f.at) < formerTime {",
		"time.Since(f.at) < 0 {",
	}}},
	{"a NAK that meets what it asks for strands its receiver", "R74", "mcast/feedback.go", []edit{{
		"	if sev == sevSequence && g.crosses(i, e) {\n",
		"	if sev == sevSequence && g.crosses(i, e) && g.dead {\n",
	}}},
	{"NAK after NAK meets the same copy", "R74", "mcast/quorum.go", []edit{{
		"	l.repeated = false\n	return true\n",
		"	return true\n",
	}}},
	{"a NAK meets what was never sent again", "R74", "mcast/quorum.go", []edit{{
		"	if !l.repeated || e.Less(l.from) || l.to.Less(e) || g.a.Less(e) {\n",
		"	if !l.repeated || g.a.Less(e) {\n",
	}}},
	{"a NAK for what the source is to repeat has met it", "R74", "mcast/quorum.go", []edit{{
		" || l.to.Less(e) || g.a.Less(e) {",
		" || l.to.Less(e) {",
	}}},
	{"only the last packet that went again counts", "R74", "mcast/quorum.go", []edit{{
		"	if !l.repeated || psn.Less(l.from) {\n",
		"	if l.from = psn; l.repeated {\n",
	}}},
	{"a source is told of a failure before it sends", "R75", "mcast/eval.go", []edit{{
		"	if g.nout.Less(g.hi) || g.numbers.busy() {\n",
		"	{\n",
	}}},
	{"a message that waits hears nothing of a failure", "R75", "mcast/eval.go", []edit{{
		"	if g.nout.Less(g.hi) || g.numbers.busy() {\n",
		"	if g.nout.Less(g.hi) {\n",
	}}},
	{"who is removed for what the last source left becomes the source", "R65", "mcast/epoch.go", []edit{{
		"	if !m.live {\n		return NotMember // it",
		"	if !m.live && g.dead {\n		return NotMember // it",
	}}},
	{"a NAK that had met its copy strands when A passes it", "R74", "mcast/quorum.go", []edit{{
		"		if b.pend == sevSequence && g.crosses(i, b.a.Next()) {\n",
		"		if b.pend == sevSequence && g.dead {\n",
	}}},
}
