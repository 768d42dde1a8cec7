// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Wrong ways to ask where members are. Their rule is the section of
// docs/ARCHITECTURE.md.
var locationMutants = []mutant{
	{"the whole forwarding database is read", "Places", "dataplane/locate/locate.go", []edit{{
		"\te, err := l.k.learnt(br.Index, mac, in)\n",
		"\t_, _ = l.h.NeighList(0, unix.AF_BRIDGE)\n\te, err := l.k.learnt(br.Index, mac, in)\n",
	}}},
	{"a range of VLANs is its first one", "Places", "dataplane/locate/entry.go", []edit{{
		"\t\t\t\tr.last = binary.NativeEndian.Uint16(a.Value)\n",
		"",
	}}},
	{"the locator keeps the control loop waiting", "Places", "dataplane/asker.go", []edit{{
		"\ta.questions <- q\n",
		"\ta.questions <- q\n\tfor len(a.answers) == 0 {\n\t\ttime.Sleep(time.Millisecond)\n\t}\n",
	}}},
	{"registrations wait for the queue of changes", "Places", "dataplane/hosts.go", []edit{{
		"\tcase h.wanted(x.now):\n\t\tx.urge(h)\n",
		"",
	}, {
		"\tif !h.asked && !h.first {\n\t\th.first = true\n\t\tx.urgent = append(x.urgent, h)\n\t}\n",
		"\tif !h.asked && !h.due {\n\t\th.due = true\n\t\tx.queue = append(x.queue, h)\n\t}\n",
	}}},
	{"changes have hosts asked for without bound", "Places", "dataplane/hosts.go", []edit{{
		"const relocationRate = 2000\n",
		"const relocationRate = 2000_000\n",
	}}},
	{"an answer of before a change is the last word", "Places", "dataplane/hosts.go", []edit{{
		"\t\th.again = true // the answer",
		"\t\th.again = false // the answer",
	}}},
	{"envelopes bring guests without bound", "Places", "dataplane/guests.go", []edit{{
		"\t\tif len(x.guests) >= room {\n",
		"\t\tif len(x.guests) > 2*room {\n",
	}}},
	{"a registration that is given up is waited for", "Places", "dataplane/whereabouts.go", []edit{{
		"a.reg == reg && a.missing > 0",
		"a.reg.Epoch == reg.Epoch && a.missing > 0",
	}}},
}
