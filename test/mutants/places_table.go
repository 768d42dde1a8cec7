// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Wrong ways to follow members, ports and links. Their rule is the section of
// docs/ARCHITECTURE.md.
var placesMutants = []mutant{
	{"that a host is being resolved is a change", "Places", "dataplane/hosts.go", []edit{{
		"\t\t\t\tx.doubt(h, now)\n\t\t\tcase len",
		"\t\t\t\tx.ask(h)\n\t\t\tcase len",
	}}},
	{"a refreshed entry is a change", "Places", "dataplane/hosts.go", []edit{{
		"\t\t\tcase len(h.known.MAC) == 0 || n.MAC != locate.MAC(h.known.MAC):\n",
		"\t\t\tdefault:\n",
	}}},
	{"an unanswered host is asked for each second", "Places", "dataplane/hosts.go", []edit{{
		"\th.tries++\n",
		"\th.tries = max(h.tries, 1)\n",
	}}},
	{"an unanswered host is never asked for again", "Places", "dataplane/hosts.go", []edit{{
		"\tfor len(x.unanswered) > 0 && x.unanswered[0].retry <= now {\n",
		"\tfor len(x.unanswered) > 0 && x.unanswered[0].retry < 0 {\n",
	}}},
	{"hosts that one change of an interface loses stay lost", "Places", "dataplane/hosts.go", []edit{{
		"\t\tx.askAll(x.lost)\n",
		"",
	}}},
	{"a change of an interface concerns nobody", "Places", "dataplane/hosts.go", []edit{{
		"\t\tx.askAll(x.byLink[i])\n",
		"\t\t_ = i\n",
	}}},
	{"a change of one interface concerns everybody", "Places", "dataplane/hosts.go", []edit{{
		"\t\tx.askAll(x.byLink[i])\n",
		"\t\tfor _, l := range x.byLink {\n\t\t\tx.askAll(l)\n\t\t}\n\t\t_ = i\n",
	}}},
	{"hosts without a group stay in memory", "Places", "dataplane/hosts.go", []edit{{
		"\tx.depend(h, locate.Location{}, locate.Location{})\n\tdelete(x.byIP, h.ip)\n",
		"\tdelete(x.byIP, h.ip)\n",
	}}},
	{"a host moves in one group only", "Places", "dataplane/relocate.go", []edit{{
		"\t\td.moved(g, h)\n",
		"\t\td.moved(g, h)\n\t\tbreak\n",
	}}},
	{"the worker does not hear of a move", "Places", "dataplane/relocate.go", []edit{{
		"\t\t\td.stale = append(d.stale, g)\n",
		"",
	}}},
	{"what comes while the bell rings is lost", "Places", "dataplane/locate/changes.go", []edit{{
		"\tc.set = newSet()\n\treturn s",
		"\treturn s",
	}}},
	{"a bridge that forgets the old port hides the new one", "Places", "dataplane/locate/changes.go", []edit{{
		"s.Learnt[mac] = s.Learnt[mac] || learnt",
		"s.Learnt[mac] = learnt",
	}}},
	{"changes are collected without bound", "Places", "dataplane/locate/changes.go", []edit{{
		"> maxChanges {",
		"> 1000*maxChanges {",
	}}},
	{"changes without end are looked at without end", "Places", "dataplane/relocate.go", []edit{{
		"\t\t\tp.gap = min(2*p.gap, longestSettle)\n",
		"\t\t\tp.gap = settle\n",
	}}},
	{"links wait for the pace", "Places", "dataplane/relocate.go", []edit{{
		"\t\tp.at = min(p.at, now+settle)\n",
		"\t\tp.gap += 0\n",
	}}},
	{"workers go by the old MTU", "Places", "dataplane/links.go", []edit{{
		"func(w *worker) { w.ports[pi].mtu = mtu }",
		"func(w *worker) { w.ports[pi].mtu += 0 * mtu }",
	}}},
	{"only one worker learns the MTU", "Places", "dataplane/links.go", []edit{{
		"\tif !c.crew.do(func(w *worker) { w.ports[pi].mtu = mtu }) {",
		"\tif !c.w.do(func() { c.w.ports[pi].mtu = mtu }) {",
	}}},
	{"groups that do not fit say nothing", "Places", "dataplane/links.go", []edit{{
		"\tg.narrow = narrow\n",
		"\tg.narrow = was\n",
	}}},
	{"a member that moves behind a narrow port says nothing", "Places", "dataplane/control.go", []edit{{
		"\t\tc.fit(g)\n\t\tc.announce(g, h)\n",
		"\t\tc.announce(g, h)\n",
	}}},
	{"announcements are not paced", "Places", "dataplane/announce.go", []edit{{
		"len(xs) < announceBatch && ",
		"",
	}}},
	{"an announcement is sent once", "Places", "dataplane/announce.go", []edit{{
		"\t\t\tif i+1 < len(a.turns) {\n",
		"\t\t\tif i+1 < 1 {\n",
	}}},
	{"announcements heap up", "Places", "dataplane/announce.go", []edit{{
		"\tif !a.wanted[x] {\n",
		"\tif true {\n",
	}}},
	{"registered groups are not announced", "Places", "dataplane/control.go", []edit{{
		"\t\t\tc.announceGroup(g)\n",
		"",
	}}},
	{"groups of other ports are announced", "Places", "dataplane/announce.go", []edit{{
		"	for h := range c.dir.hosts.byLink[p.ifindex] {\n",
		"	for _, h := range c.dir.hosts.byIP {\n",
	}}},
	{"an echo reply has the request's checksum", "Places", "rocev2/echo.go", []edit{{
		"ChecksumUpdate16(binary.BigEndian.Uint16(q[2:4]), old, now)",
		"ChecksumUpdate16(binary.BigEndian.Uint16(q[2:4]), old, old|now&0)",
	}}},
	{"a damaged echo request is answered", "Places", "rocev2/echo.go", []edit{{
		" || echoChecksum(f, q) != 0",
		"",
	}}},
	{"echo requests of everybody's address are answered", "Places", "rocev2/echo.go", []edit{{
		" || !isHost(f)",
		"",
	}}},
	{"echo replies leave the VLAN", "Places", "rocev2/echo.go", []edit{{
		"\tif !p.tagLike(f) {\n",
		"\tif n, _ := f.VLAN(); n > 1 {\n",
	}}},
}
