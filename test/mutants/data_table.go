// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Wrong ways to forward data.
var dataMutants = []mutant{
	{"duplicates go to everybody again", "R12", "mcast/data.go", []edit{{
		"	g.rewound = true\n	if p.AckReq || rewind {",
		"	g.rewound = true\n	for i := range g.branches {\n		if g.branches[i].bits&receiving != 0 {\n			out.Copies = append(out.Copies, Copy{Group: g.id, Leg: LegID(i), Frame: p.Frame, PSN: psn.Add(int32(g.branches[i].delta))})\n		}\n	}\n	if p.AckReq || rewind {",
	}}},
	{"data goes to branches that have it", "R12", "mcast/data.go", []edit{{
		"		if d <= 0 {\n			continue\n		}\n",
		"",
	}}},
	{"the packet at A is not a duplicate", "R12", "mcast/data.go", []edit{{
		"	if d <= 0 {\n		if g.quorum > 0",
		"	if d < 0 {\n		if g.quorum > 0",
	}}},
	{"a rewind is not answered unless it asks", "R12", "mcast/data.go", []edit{{
		"if p.AckReq || rewind {",
		"if p.AckReq || rewind && p.AckReq {",
	}}},
	{"a duplicate that asks is not answered", "R13", "mcast/data.go", []edit{{
		"if p.AckReq || rewind {",
		"if rewind {",
	}}},
	{"every duplicate is answered", "R12", "mcast/data.go", []edit{{
		"if p.AckReq || rewind {",
		"if p.AckReq || rewind || !rewind {",
	}}},
	{"the source gets its own packets", "R15", "mcast/data.go", []edit{{
		"		if b.bits&receiving == 0 {\n			continue\n		}\n		d := psn.Sub(b.a)",
		"		d := psn.Sub(b.a)",
	}}},
	{"PSNs toward members are not translated", "R18", "mcast/data.go", []edit{{
		"PSN: (psn + rocev2.PSN(b.delta)) & rocev2.PSNMask}",
		"PSN: psn}",
	}}},
	{"translated PSNs have 25 bits", "R18", "mcast/data.go", []edit{{
		"PSN: (psn + rocev2.PSN(b.delta)) & rocev2.PSNMask}",
		"PSN: psn + rocev2.PSN(b.delta)}",
	}}},
	{"feedback PSNs are not translated back", "R18", "mcast/feedback.go", []edit{{
		"psn := (p.PSN - rocev2.PSN(b.delta)) & rocev2.PSNMask",
		"psn := p.PSN & rocev2.PSNMask",
	}}},
	{"VA is rewritten toward switches", "R24", "mcast/data.go", []edit{{
		"if how == byWindow && b.bits&rewrites != 0 {",
		"if how == byWindow {",
	}}},
	{"PSNs are translated toward switches", "R24", "mcast/group.go", []edit{{
		"	if l.spec.Kind == Connected {\n		b.delta =",
		"	if l.members > 0 {\n		b.delta =",
	}}},
	{"VA is the window's base for every WRITE", "R27", "mcast/data.go", []edit{{
		"w.Base+(p.VA-g.window.Base)",
		"w.Base",
	}}},
	{"the end of a WRITE overflows its window", "R27", "mcast/window.go", []edit{{
		"p.VA >= g.window.Base && off <= g.window.Len && uint64(p.DMALen) <= g.window.Len-off",
		"p.VA >= g.window.Base && off <= off && p.VA+uint64(p.DMALen) <= g.window.Base+g.window.Len",
	}}},
	{"a WRITE may begin below the window", "R27", "mcast/window.go", []edit{{
		"p.VA >= g.window.Base && off <= g.window.Len && uint64(p.DMALen) <= g.window.Len-off",
		"off <= off && p.VA+uint64(p.DMALen) <= g.window.Base+g.window.Len",
	}}},
	{"only the beginning of a WRITE is checked", "R27", "mcast/window.go", []edit{{
		"off <= g.window.Len && uint64(p.DMALen) <= g.window.Len-off",
		"off < g.window.Len",
	}}},
	{"a WRITE is checked by its packet's length", "R27", "mcast/window.go", []edit{{
		"uint64(p.DMALen) <= g.window.Len-off",
		"uint64(p.Payload) <= g.window.Len-off",
	}}},
	{"any R_Key writes", "R27", "mcast/window.go", []edit{{
		"	return p.RKey == g.window.RKey && g.nowin == 0 &&\n		p.VA",
		"	return g.nowin == 0 &&\n		p.VA",
	}}},
	{"any R_Key is invalidated", "R27", "mcast/window.go", []edit{{
		"		return p.RKey == g.window.RKey && g.nowin == 0\n",
		"		return g.nowin == 0\n",
	}}},
	{"a member without a window is written to at address 0", "R27", "mcast/window.go", []edit{{
		"	return p.RKey == g.window.RKey && g.nowin == 0 &&\n		p.VA",
		"	return p.RKey == g.window.RKey &&\n		p.VA",
	}}},
	{"a WRITE of no bytes must be in the window", "R27", "mcast/window.go", []edit{{
		"	if p.DMALen == 0 {\n		return true\n	}\n",
		"",
	}}},
	{"READs are forwarded", "R28", "mcast/window.go", []edit{{
		"case f&(rocev2.OpSend|rocev2.OpWrite) == 0:",
		"case f&(rocev2.OpSend|rocev2.OpWrite|rocev2.OpRequest) == 0:",
	}}},
	{"short middles of messages are forwarded", "R28", "mcast/window.go", []edit{{
		"return payload == pmtu",
		"return payload <= pmtu",
	}}},
	{"empty ends of messages are forwarded", "R28", "mcast/window.go", []edit{{
		"return payload > 0 && payload <= pmtu",
		"return payload <= pmtu",
	}}},
	{"what is refused is forwarded all the same", "R28", "mcast/data.go", []edit{{
		"	g.refused = refusal{psn, code, why}\n	g.eval(out)\n	return why",
		"	g.refused = refusal{psn, code, why}\n	g.eval(out)\n	return None",
	}}},
	{"what follows a refused packet is forwarded", "R28", "mcast/data.go", []edit{{
		"if g.refused.psn.Less(psn) {",
		"if psn.Less(g.refused.psn) {",
	}}},
	{"a refusal does not wait for the packets before it", "R28", "mcast/eval.go", []edit{{
		"g.refused.psn == g.a.Next() && sev < sevFatal",
		"sev < sevFatal",
	}}},
	{"the switch's own refusal ends the group", "R28", "mcast/eval.go", []edit{{
		"	if who == nobody {\n",
		"	if who == nobody {\n		g.fail(MemberID(g.src), g.nout, code, code, out)\n",
	}}},
	{"a refusal is believed unverified", "R33", "mcast/data.go", []edit{{
		"if !p.Verified && (!plain || ",
		"if !p.Verified && (!plain && code == 0 || ",
	}}},
	{"data out of order is believed unverified", "R33", "mcast/data.go", []edit{{
		"plain := psn == g.hi && code == 0",
		"plain := code == 0",
	}}},
	{"a WRITE goes where the newest update says, also when it is repeated", "R41", "mcast/targets.go", []edit{{
		"u.psn.Less(psn) && u.legs[leg].set",
		"u.legs[leg].set",
	}}},
	{"a WRITE without a target is forwarded", "R41", "mcast/rewrite.go", []edit{{
		"if !t.set || end < p.VA",
		"if end < p.VA",
	}}},
	{"the end of a WRITE overflows its target", "R41", "mcast/rewrite.go", []edit{{
		"end < p.VA || t.va+end < t.va",
		"end < p.VA",
	}}},
	{"receivers get update messages as they are", "R41", "mcast/rewrite.go", []edit{{
		"		c.Flags = Empty\n",
		"",
	}}},
	{"an unverified update is believed", "R33", "mcast/data.go", []edit{{
		"g.refused.code == 0 && !update &&",
		"g.refused.code == 0 &&",
	}}},
	{"targets are forgotten when they are acknowledged", "R41", "mcast/targets.go", []edit{{
		"				t.base[leg] = x\n",
		"				_, _ = leg, x\n",
	}}},
	{"a WRITE stays refused when its update has come", "R41", "mcast/rewrite.go", []edit{{
		"if g.refused.code != 0 && psn.Less(g.refused.psn) {",
		"if g.refused.code != 0 && psn == g.refused.psn {",
	}}},
	{"updates out of order are kept in the order of their coming", "R41", "mcast/targets.go", []edit{{
		"for i > 0 && psn.Less(t.at(i-1).psn) {",
		"for i > 0 && psn == t.at(i-1).psn.Prev().Prev() {",
	}}},
	{"another source's targets are used", "R41", "mcast/epoch.go", []edit{{
		"		g.targets.reset()\n",
		"		g.targets.ack(g.a)\n",
	}}},
	{"a fast path may move hi backward", "R34", "mcast/fastpath.go", []edit{{
		"	case hi.Less(g.hi):\n",
		"	case g.nrecv == 0:\n",
	}}},
	{"a fast path's messages are not counted", "R34", "mcast/fastpath.go", []edit{{
		"	g.msgs.extendMany(hi.Prev(), messages)\n",
		"",
	}}},
}
