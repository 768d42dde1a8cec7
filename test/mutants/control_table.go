// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Wrong ways for the control loop to learn what the core has decided. Their rule is
// the section of docs/ARCHITECTURE.md.
var controlMutants = []mutant{
	{"a group is listed with every event", "Outcomes", "dataplane/news.go", []edit{{
		"	if n.listed[id] {\n		return\n	}\n",
		"",
	}}},
	{"a group that was asked about is not listed again", "Outcomes", "dataplane/news.go", []edit{{
		"	n.listed[id] = false\n",
		"",
	}}},
	{"the bell does not ring", "Outcomes", "dataplane/news.go", []edit{{
		"	case n.bell <- struct{}{}:\n",
		"",
	}}},
	{"what is listed during a round waits for ever", "Outcomes", "dataplane/outcome.go", []edit{{
		"		more = more || w.news.some.Load()\n",
		"",
	}, {
		"			todo -= n\n",
		"			todo = 0\n",
	}}},
	{"only the first worker is asked", "Outcomes", "dataplane/outcome.go", []edit{{
		"	for _, w := range c.crew.workers {\n		if !w.news",
		"	for _, w := range c.crew.workers[:1] {\n		if !w.news",
	}}},
	{"outcomes of an older registration are applied", "Outcomes", "dataplane/outcome.go", []edit{{
		"	if o.Generation != g.generation {\n		return nil // of another registration\n	}\n",
		"",
	}}},
	{"all registrations have one generation", "Outcomes", "dataplane/directory.go", []edit{{
		"	d.count++\n",
		"",
	}}},
	{"an evicted member keeps its slot", "Outcomes", "dataplane/outcome.go", []edit{{
		"			g.leaves(i)\n			ds",
		"			ds",
	}}},
	{"a turn is told again and again", "Outcomes", "dataplane/outcome.go", []edit{{
		"		g.known.turns = o.Turns\n",
		"",
	}}},
	{"the registrar does not hear of evictions", "Outcomes", "dataplane/outcome.go", []edit{{
		"			c.reg.MemberEvicted(c.now(), g.reg.Group, m, d.Syndrome, d.PSN, &c.out)\n",
		"			c.out = envelope.Output{}\n",
	}}},
	{"a registration that is replaced has no last words", "Outcomes", "dataplane/directory.go", []edit{{
		"		d.ends(g, &d.last, envelope.Replaced)\n	} else {\n",
		"	} else {\n",
	}}},
	{"a deleted group has no last words", "Outcomes", "dataplane/directory.go", []edit{{
		"		d.ends(g, &d.last, why)\n",
		"		_ = why\n",
	}}},
	{"a member that is replaced has no last words", "Outcomes", "dataplane/members.go", []edit{{
		"		d.memberGoes(g, int(m))\n",
		"		_ = m\n",
	}}},
	{"a turn is told of who has the slot now", "Outcomes", "dataplane/members.go", []edit{{
		"	for _, x := range g.learnTurns(&d.last.outcomes) {",
		"	for _, x := range g.learnTurns(&mcast.Outcomes{}) {",
	}}},
	{"groups that have gone are remembered for ever", "Outcomes", "dataplane/gone.go", []edit{{
		"			c.gone = slices.Delete(c.gone, 0, i+1)\n",
		"			c.gone = slices.Delete(c.gone, 0, 0)\n",
	}}},
	{"slots are not used again", "Outcomes", "dataplane/members.go", []edit{{
		"		if len(free) > 0 {\n",
		"		if len(free) > 0 && r == nil {\n",
	}}},
	{"an identical registration begins anew", "6", "envelope/registrar_install.go", []edit{{
		"old != nil && old.identical(g) {",
		"old != nil && false {",
	}}},
	{"a failed group goes on by being registered again", "6", "envelope/registrar_numbers.go", []edit{{
		"g.failed || ",
		"",
	}}},
	{"any part of the members is identical", "6", "envelope/registrar_numbers.go", []edit{{
		" || len(g.reg.Members) != len(to.reg.Members) {",
		" {",
	}}},
	{"nobody is notified after an identical registration", "6", "envelope/registrar_install.go", []edit{{
		"	if !g.again {\n",
		"	if true {\n",
	}}},
	{"former members' numbers are forgotten with the next update", "6", "envelope/registrar_install.go", []edit{{
		"		g.used = used\n",
		"		_ = used\n",
	}}},
	{"numbers of an evicted member come back", "6", "envelope/registrar_requests.go", []edit{{
		"	g.used = r.use(g, g.used, g.reg.Members[i])\n",
		"",
	}}},
	{"numbers of a removed member come back", "6", "envelope/registrar_numbers.go", []edit{{
		"g.reg.Base == 0 || !g.hasRecord(m) {",
		"g.reg.Base == 0 {",
	}}},
	{"numbers of replaced members come back", "6", "envelope/registrar_numbers.go", []edit{{
		"g.reg.Base == 0 || !g.hasRecord(m) {",
		"g.reg.Base != 0 && !g.hasRecord(m) {",
	}}},
	{"live members begin anew with their old numbers", "6", "envelope/registrar_numbers.go", []edit{{
		"		if carried = carried || r.table.Carried(old.reg.Group); carried {",
		"		if carried {",
	}}},
	{"unused numbers are refused", "6", "envelope/registrar_numbers.go", []edit{{
		"len(ms) == 0 || !r.table.Carried(g.reg.Group) {",
		"len(ms) == 0 {",
	}}},
	{"used numbers are remembered without bound", "6", "envelope/registrar_numbers.go", []edit{{
		"return used[max(0, len(used)-maxUsed):]",
		"return used",
	}}},
	{"a group that has carried data says no", "6", "dataplane/directory.go", []edit{{
		"			carried = d.last.outcomes.Turns > 0\n",
		"",
	}}},
	{"a new member has the outcome of the old one", "Outcomes", "mcast/join.go", []edit{{
		"	g.outcomes.forgive(id)\n",
		"",
	}}},
	{"evictions are not kept", "Outcomes", "mcast/outcome.go", []edit{{
		"		o.Evicted[e.Member] = e\n",
		"",
	}}},
	{"turns are not counted", "Outcomes", "mcast/outcome.go", []edit{{
		"		o.Turns++\n",
		"",
	}}},
}
