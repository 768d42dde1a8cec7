// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Wrong ways to repair losses: -run 'R4[2-9]|R5[01]'.
var repairMutants = []mutant{
	// What is kept.
	{"frames are kept over the group's budget", "R42", "mcast/store.go", []edit{{
		"return bytes > 0 && s.bytes+int64(bytes) <= s.limit && s.all.used",
		"return bytes > 0 && s.all.used",
	}}},
	{"frames are kept over the budget of all groups", "R42", "mcast/store.go", []edit{{
		" <= s.limit && s.all.used+int64(bytes) <= s.all.limit",
		" <= s.limit",
	}}},
	{"what others keep counts for nobody", "R42", "mcast/store.go", []edit{{
		"		s.all.used += int64(p.Bytes)\n",
		"",
	}}},
	{"the budget of all groups is never given back", "R42", "mcast/store.go", []edit{{
		"	s.all.used -= int64(e.bytes)\n",
		"",
	}}},
	{"frames that cannot be kept are kept", "R42", "mcast/store.go", []edit{{
		"func (s *store) fits(bytes uint32) bool {\n	return bytes > 0 && ",
		"func (s *store) fits(bytes uint32) bool {\n	return ",
	}}},
	{"frames are kept for ever", "R42", "mcast/eval.go", []edit{{
		"	if g.store != nil {\n		g.release(out)\n",
		"	if g.store != nil && g.dead {\n		g.release(out)\n",
	}}},
	{"the frame that A waits for is released", "R42", "mcast/repair.go", []edit{{
		"	g.store.free(m.Next(), out)\n",
		"	g.store.free(m.Next().Next(), out)\n",
	}}},
	{"the last frame that everybody has is not released", "R42", "mcast/repair.go", []edit{{
		"	g.store.free(m.Next(), out)\n",
		"	g.store.free(m, out)\n",
	}}},
	{"a released frame is still in the store", "R42", "mcast/store.go", []edit{{
		"	out.Release = append(out.Release, e.frame)\n	*e = stored{}\n",
		"	out.Release = append(out.Release, e.frame)\n",
	}}},
	{"frames of a group that fails are not released", "R42", "mcast/eval.go", []edit{{
		"	g.forget(g.hi, out)\n",
		"",
	}}},
	{"frames of a deleted group are not released", "R42", "mcast/apply.go", []edit{{
		"	g.forget(0, out)\n",
		"",
	}}},
	{"frames of a replaced group are not released", "R42", "mcast/apply.go", []edit{{
		"		old.forget(0, out)\n",
		"",
	}}},
	{"frames of an old source are kept for the next one", "R42", "mcast/epoch.go", []edit{{
		"	g.forget(g.hi, out)\n	g.src, g.srcLeg = nobody, nobody\n",
		"	g.src, g.srcLeg = nobody, nobody\n",
	}, {
		"	g.least = g.a\n	g.forget(g.hi, out)\n",
		"	g.least = g.a\n",
	}}},
	{"what was kept is not replaced, and never released", "R42", "mcast/store.go", []edit{{
		"		s.take(s.at(psn), out)\n		for",
		"		if e := s.at(psn); e.bytes > 0 {\n			s.bytes -= int64(e.bytes)\n			s.all.used -= int64(e.bytes)\n			*e = stored{}\n		}\n		for",
	}}},
	{"everything is given up for a frame that cannot fit", "R42", "mcast/store.go", []edit{{
		"		for s.could(p.Bytes) && !s.fits",
		"		for !s.fits",
	}}},

	// NAKs.
	{"what is kept is acknowledged", "R43", "mcast/data.go", []edit{{
		"	g.pass(psn, f)\n	if p.AckReq {\n",
		"	g.pass(psn, f)\n	if out.Held && p.AckReq {\n		for i := range g.branches {\n			if g.branches[i].bits&receiving != 0 {\n				g.acked(now, i, psn, out)\n			}\n		}\n		g.eval(out)\n	}\n	if p.AckReq {\n",
	}}},
	{"fatal NAKs are repaired", "R43", "mcast/repair.go", []edit{{
		"g.store == nil || sev == sevFatal || ",
		"g.store == nil || ",
	}}},
	{"a NAK is repaired though something after it is missing", "R43", "mcast/repair.go", []edit{{
		"return g.store.whole.LessEq(e) && g.store.low.LessEq(e) ||",
		"return g.store.low.LessEq(e) ||",
	}}},
	{"a hole at the end of what is kept is not one", "R43", "mcast/store.go", []edit{{
		"	case !ok:\n		s.whole = psn.Next()\n",
		"	case !ok:\n",
	}}},
	{"what was lost before the switch is no hole", "R43", "mcast/store.go", []edit{{
		"	case hi.Less(psn):\n		s.whole = psn\n",
		"",
	}}},
	{"a hole is never closed", "R43", "mcast/store.go", []edit{{
		"		if ok && psn.Next() == s.whole {\n",
		"		if ok && psn == s.whole {\n",
	}}},
	{"a newer frame that does not fit leaves no hole", "R43", "mcast/store.go", []edit{{
		"		} else if !ok && s.whole.LessEq(psn) {\n",
		"		} else if !ok && s.whole == psn.Next() {\n",
	}}},
	{"the same is sent again for ever", "R43", "mcast/repair.go", []edit{{
		"m.led = m.led || m.tries >= g.repair.Tries || m.waited",
		"m.led = m.led || m.waited",
	}}},
	{"a branch that was left to the source stays so", "R43", "mcast/repair.go", []edit{{
		"m.tries, m.waited, m.led, m.quiet = 0, 0, false, false",
		"m.tries, m.waited, m.quiet = 0, 0, false",
	}}},
	{"tries count over a branch's whole life", "R43", "mcast/repair.go", []edit{{
		"m.tries, m.waited, m.led, m.quiet = 0, 0, false, false",
		"m.waited, m.led, m.quiet = 0, false, false",
	}}},
	{"a repaired NAK acknowledges nothing", "R43", "mcast/feedback.go", []edit{{
		"	moved := g.acked(now, i, e.Prev(), out)\n	sev := severityOf(kind)\n	if g.mend(now, i, sev, syn, e) {\n",
		"	sev := severityOf(kind)\n	if g.mend(now, i, sev, syn, e) {\n		return true\n	}\n	moved := g.acked(now, i, e.Prev(), out)\n	if false {\n",
	}}},

	// Cursors.
	{"new data goes to late branches", "R44", "mcast/data.go", []edit{{
		"if g.store != nil && (b.bits&late != 0 || again",
		"if g.store != nil && (again",
	}}},
	{"a second NAK does not put the cursor back", "R44", "mcast/repair.go", []edit{{
		"		g.legs[i].mend.sent = g.hi\n	}\n	g.legs[i].mend.next = psn\n",
		"		g.legs[i].mend.sent, g.legs[i].mend.next = g.hi, psn\n	}\n",
	}}},
	{"a late branch is in line too early", "R44", "mcast/repair.go", []edit{{
		"		if out.full() {\n			return false\n		}\n		if room < 0",
		"		if out.full() {\n			g.setInLine(i)\n			return true\n		}\n		if room < 0",
	}}},
	{"a late branch is never in line again", "R44", "mcast/repair.go", []edit{{
		"	g.setInLine(i)\n	return true\n",
		"	return true\n",
	}}},
	{"more is repaired than there is room for", "R44", "mcast/repair.go", []edit{{
		"return o.MaxRepairs != 0 && o.repairs >= o.MaxRepairs",
		"return o.MaxRepairs < 0",
	}}},
	{"what there was no room for is forgotten", "R44", "mcast/repair.go", []edit{{
		"			g.tendBy(now) // no more room in this call\n",
		"",
	}}},
	{"a hole is skipped when repairing", "R44", "mcast/repair.go", []edit{{
		"		if e == nil {\n			return true\n		}\n		if out.full()",
		"		if e == nil {\n			m.step(m.next)\n			continue\n		}\n		if out.full()",
	}}},
	{"repairs have the source's numbers", "R44", "mcast/repair.go", []edit{{
		"Frame: e.frame, PSN: (psn + rocev2.PSN(b.delta)) & rocev2.PSNMask}",
		"Frame: e.frame, PSN: psn}",
	}}},
	{"repairs have numbers of 25 bits", "R44", "mcast/repair.go", []edit{{
		"Frame: e.frame, PSN: (psn + rocev2.PSN(b.delta)) & rocev2.PSNMask}",
		"Frame: e.frame, PSN: psn + rocev2.PSN(b.delta)}",
	}}},
	{"repaired WRITEs keep the source's address", "R44", "mcast/repair.go", []edit{{
		"	if b.bits&rewrites != 0 && !g.translate(&c, e.how, e.va, psn) {\n",
		"	if b.bits&rewrites != 0 && e.how != byWindow && !g.translate(&c, e.how, e.va, psn) {\n",
	}}},
	{"repairs to other switches are translated", "R44", "mcast/repair.go", []edit{{
		"	if b.bits&rewrites != 0 && !g.translate(&c, e.how, e.va, psn) {\n",
		"	if !g.translate(&c, e.how, e.va, psn) {\n",
	}}},

	// Silence.
	{"questions ask for no ACK", "R45", "mcast/repair.go", []edit{{
		"	if ask && !e.ackReq {\n",
		"	if ask && e.ackReq {\n",
	}}},
	{"the end of a repair may be lost unnoticed", "R45", "mcast/repair.go", []edit{{
		"ask := m.probing || m.next.Next() == g.hi || g.store.find(m.next.Next()) == nil",
		"ask := m.probing",
	}}},
	{"who is silent is asked for ever", "R45", "mcast/tail.go", []edit{{
		"	if m.tries >= g.repair.Tries {\n		m.led = true\n		return\n	}\n",
		"",
	}}},
	{"questions count for nothing", "R45", "mcast/tail.go", []edit{{
		"	m.tries++\n	// Another one",
		"	// Another one",
	}}},
	{"all that a silent branch may lack is sent again at once", "R45", "mcast/tail.go", []edit{{
		"m.probing, m.quiet, m.burst, m.left = false, true, n, n",
		"m.probing, m.quiet, m.burst, m.left = false, true, n*0, n*0",
	}}},
	{"nobody is asked", "R45", "mcast/data.go", []edit{{
		"			g.asks(now, psn)\n",
		"",
	}}},
	{"a cursor among frames that were given up stays there", "R49", "mcast/tail.go", []edit{{
		"		if m.probing || b.bits&late != 0 && b.a.Less(g.a) {\n",
		"		if m.probing {\n",
	}}},
	{"who owes nothing is asked", "R45", "mcast/tail.go", []edit{{
		"		if b.a.Less(m.watch) {\n			if t",
		"		if b.a.Less(g.hi.Prev()) {\n			if t",
	}}},
	{"who speaks is asked as if it were silent", "R45", "mcast/feedback.go", []edit{{
		"		m.owed = now // what is stale",
		"		m.owed = min(m.owed, now) // what is stale",
	}}},
	{"who repeats what is old need not answer", "R45", "mcast/feedback.go", []edit{{
		"		if !g.acked(now, i, psn, out) {\n			return",
		"		if !g.acked(now, i, psn, out) {\n			g.legs[i].mend.owed = max(g.legs[i].mend.owed, now)\n			return",
	}, {
		"	} else if !g.negative(now, i, kind, p.Syndrome, psn, out) {\n",
		"	} else if !g.negative(now, i, kind, p.Syndrome, psn, out) {\n		g.legs[i].mend.owed = max(g.legs[i].mend.owed, now)\n",
	}}},
	{"an answer to a question is one that says all", "R45", "mcast/repair.go", []edit{{
		"	case m.probing && b.a.Next() == m.next:\n",
		"	case m.probing && b.a == m.next:\n",
	}}},
	{"each question is one packet", "R45", "mcast/tail.go", []edit{{
		"		n = min(max(m.burst, 1)*burstGrowth, questionMax)\n",
		"		n = min(m.burst, 1)\n",
	}}},
	{"questions grow without a bound", "R45", "mcast/tail.go", []edit{{
		"		n = min(max(m.burst, 1)*burstGrowth, questionMax)\n",
		"		n = max(m.burst, 1) * burstGrowth\n",
	}}},
	{"the first question is a long one", "R45", "mcast/tail.go", []edit{{
		"	if m.quiet {\n		n = min(",
		"	if !m.led {\n		n = min(",
	}}},
	{"who had more than it was asked about gets it all again", "R45", "mcast/repair.go", []edit{{
		"		if m.probing && m.next.Less(m.sent) {\n",
		"		if m.probing && m.sent.Less(m.next) {\n",
	}}},
	{"what was sent is forgotten", "R45", "mcast/repair.go", []edit{{
		"		g.legs[i].mend.sent = g.hi\n",
		"		g.legs[i].mend.sent = psn\n",
	}}},
	{"bursts do not grow", "R45", "mcast/repair.go", []edit{{
		"		if m.burst *= burstGrowth; m.burst > burstMax {\n",
		"		if m.burst > burstMax {\n",
	}}},

	// Not ready.
	{"RNR is not waited for", "R46", "mcast/repair.go", []edit{{
		"	if wait > 0 {\n		m.hold = now + wait\n",
		"	if wait > 0 {\n		m.hold = 0\n",
	}}},
	{"RNR is kept from the source for ever", "R46", "mcast/repair.go", []edit{{
		"m.tries >= g.repair.Tries || m.waited+wait > rnrPatience*g.repair.Timeout; m.led",
		"m.tries >= g.repair.Tries; m.led",
	}}},
	{"each wait is counted by itself", "R46", "mcast/repair.go", []edit{{
		"	m.waited += wait\n",
		"	m.waited = 0\n",
	}}},
	{"the sequence NAK after an RNR NAK ends the wait", "R46", "mcast/repair.go", []edit{{
		"	if m.hold > 0 && !m.probing && sev == sevSequence && e == m.next {\n		return true",
		"	if m.hold > 0 && !m.probing && sev == sevSequence && e == m.next && m.led {\n		return true",
	}}},
	{"who was not ready never becomes so", "R46", "mcast/tail.go", []edit{{
		"			if now < m.hold {\n",
		"			if now < m.hold || m.waited > 0 {\n",
	}}},

	// What is not kept.
	{"the source is asked for what is kept", "R47", "mcast/repair.go", []edit{{
		"		g.store.find(m.next) != nil || g.coming(m.next) {\n",
		"		g.coming(m.next) {\n",
	}, {
		"		if out.full() {\n			return false\n		}\n		if room < 0",
		"		if out.full() {\n			return true\n		}\n		if room < 0",
	}}},
	{"the source is asked for what it is about to pass", "R47", "mcast/repair.go", []edit{{
		"g.store.find(m.next) != nil || g.coming(m.next) {",
		"g.store.find(m.next) != nil {",
	}}},
	{"a NAK for a late branch goes out of turn", "R47", "mcast/repair.go", []edit{{
		"b.pend != noPend || m.next != b.a.Next() || !m.next.Less(g.hi)",
		"b.pend != noPend || !m.next.Less(g.hi)",
	}}},
	{"nobody asks for what a late branch lacks", "R47", "mcast/repair.go", []edit{{
		"	g.setPend(b, sevSequence, rocev2.SyndromeNAKSequence)\n	return true\n",
		"	return false\n",
	}}},

	// The source goes back.
	{"what the source sends again goes to all that lack it", "R48", "mcast/data.go", []edit{{
		"if g.store != nil && (b.bits&late != 0 || again && g.store.bytes > 0) {",
		"if g.store != nil && b.bits&late != 0 {",
	}}},
	{"what the source sends again goes to late branches out of turn", "R48", "mcast/repair.go", []edit{{
		"	case here || !first && psn != m.next:\n",
		"	case !first && psn != m.next && false:\n",
	}}},
	{"what the source sends again is never passed on", "R48", "mcast/repair.go", []edit{{
		"	case b.bits&late == 0 && !first:\n",
		"	case b.bits&late == 0:\n",
	}}},
	{"what the source sends again is no question", "R48", "mcast/repair.go", []edit{{
		"		return true, here\n",
		"		return true, false\n",
	}}},

	// Quorums and full queues.
	{"who is behind a quorum waits for what is gone", "R48", "mcast/repair.go", []edit{{
		"		first = true // behind",
		"		first = false // behind",
	}}},
	{"what a quorum has is not kept for the others", "R49", "mcast/repair.go", []edit{{
		"	if g.quorum > 0 {\n		for i := range g.branches {",
		"	if g.quorum > 1000 {\n		for i := range g.branches {",
	}}},
	{"a straggler is removed though what it lacks is kept", "R49", "mcast/repair.go", []edit{{
		"g.store.low.LessEq(e) || e.LessEq(g.a) && g.store.find(e) != nil",
		"g.store.low.LessEq(e)",
	}}},
	{"frames above A go when room is short", "R49", "mcast/store.go", []edit{{
		"!s.fits(p.Bytes) && s.low.LessEq(spare) && s.bytes > 0 {",
		"!s.fits(p.Bytes) && s.bytes > 0 {",
	}}},
	{"frames at or below A stay when room is short", "R49", "mcast/store.go", []edit{{
		"!s.fits(p.Bytes) && s.low.LessEq(spare) && s.bytes > 0 {",
		"!s.fits(p.Bytes) && s.low.Less(spare) && s.bytes == 0 {",
	}}},
	{"a copy that was not sent is not sent later", "R51", "mcast/unsent.go", []edit{{
		"	if b.bits&late == 0 || psn.Less(m.next) {\n",
		"	if b.bits&late == 0 && psn.Less(m.next) {\n",
	}}},
	{"a full queue is not waited for", "R51", "mcast/unsent.go", []edit{{
		"	g.holdFor(m, until)\n",
		"	g.holdFor(m, 0)\n",
	}}},
	{"a copy that is not kept is thought to be", "R51", "mcast/unsent.go", []edit{{
		" || m.led || g.store.find(psn) == nil {",
		" || m.led {",
	}}},
	{"what a full queue did not take counts as sent", "R51", "mcast/unsent.go", []edit{{
		"	if psn.Less(m.sent) {\n		m.sent = psn\n	}\n",
		"",
	}}},
	{"patience has no bound", "R45", "mcast/tail.go", []edit{{
		"d := min(max(g.repair.Timeout, m.rtt+4*m.rttVar), maxPatience*g.repair.Timeout)",
		"d := max(g.repair.Timeout, m.rtt+4*m.rttVar)",
	}}},

	// Repair is never worse than none.
	{"what the source repeats is withheld while there is a probe", "R56", "mcast/repair.go", []edit{{
		"	case first && psn.Less(m.next) && !m.led && (",
		"	case first && psn.Less(m.next) && m.led && (",
	}}},
	{"what the source repeats goes to those that are not ready", "R56", "mcast/repair.go", []edit{{
		"(m.probing || m.hold == 0 && g.store.find(m.next) == nil)",
		"(m.probing || m.hold > 0 || g.store.find(m.next) == nil)",
	}}},
	{"what is being sent again comes from the source as well", "R56", "mcast/repair.go", []edit{{
		"(m.probing || m.hold == 0 && g.store.find(m.next) == nil)",
		"(m.probing || m.hold == 0)",
	}}},
	{"what the source repeats as a probe does not ask", "R56", "mcast/repair.go", []edit{{
		"		g.probed(now, i, psn)\n		return true, true\n",
		"		g.probed(now, i, psn)\n		return true, false\n",
	}}},
	{"dead_after bounds no wait", "R57", "mcast/tail.go", []edit{{
		"		d = min(d, g.deadAfterOf(i)/livenessProbes)\n",
		"		d = min(d, g.deadAfterOf(i)*livenessProbes)\n",
	}}},
	{"dead_after does not bound the first wait", "R57", "mcast/tail.go", []edit{{
		"		g.tendBy(now + first)\n",
		"		g.tendBy(now + g.repair.Timeout)\n",
	}}},
	{"a branch that is left to the source is not asked", "R57", "mcast/tail.go", []edit{{
		"	if e == nil || g.deadAfter == 0 {\n		return true\n",
		"	if e != nil || g.deadAfter == 0 {\n		return true\n",
	}}},
	{"a branch whose silence does not count is asked for ever", "R57", "mcast/tail.go", []edit{{
		"	if e == nil || g.deadAfter == 0 {\n		return true\n",
		"	if e == nil {\n		return true\n",
	}, {
		"		if m.led && g.deadAfter == 0 {\n			continue\n",
		"		if m.led && g.deadAfter < 0 {\n			continue\n",
	}}},
	{"a probe of liveness that has no room is left out", "R57", "mcast/tail.go", []edit{{
		"				g.tendBy(now) // no more room in this call\n				continue\n",
		"				g.tendBy(now) // no more room in this call\n",
	}}},
	{"a probe of liveness overruns the room", "R57", "mcast/tail.go", []edit{{
		"	if out.full() {\n		return false\n	}\n	g.probed(",
		"	g.probed(",
	}}},

	// What is not a receiver's silence.
	{"the switch's pauses are a receiver's silence", "R58", "mcast/unheard.go", []edit{{
		"	l.watched += d\n	l.heard += d\n",
		"",
	}}},
	{"the switch's pauses count toward the lag", "R58", "mcast/unheard.go", []edit{{
		"	l.marked += d\n",
		"",
	}}},
	{"the switch's pauses count toward a probe", "R58", "mcast/unheard.go", []edit{{
		"	l.mend.owed += d\n",
		"",
	}}},
	{"a pause is one of all ports", "R58", "mcast/unheard.go", []edit{{
		"	return g.hearing.at(l.spec.Port).unheard - l.unheard\n",
		"	return g.hearing.at(0).unheard - l.unheard\n",
	}}},
	{"a round trip over a pause is measured", "R58", "mcast/tail.go", []edit{{
		"	if !g.timing || g.timedIn != g.hearing.pauses || !had",
		"	if !g.timing || !had",
	}}},
	{"what waits in a queue is not answered", "R59", "mcast/unheard.go", []edit{{
		"	return d + delay\n",
		"	return d\n",
	}}},
	{"dead_after does not follow the round trips", "R59", "mcast/unheard.go", []edit{{
		"		if r == 0 || r > g.deadMost {\n			r = g.deadMost",
		"		if r > g.deadMost {\n			r = g.deadMost",
	}}},
	{"dead_after follows the round trips without a bound", "R59", "mcast/unheard.go", []edit{{
		"		if r == 0 || r > g.deadMost {\n",
		"		if r == 0 {\n",
	}}},
}
