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
		"\t\tif len(x.guests)/2 >= room {\n",
	}}},
	{"a registration that is given up is waited for", "Places", "dataplane/whereabouts.go", []edit{{
		"a.reg == reg && a.missing > 0",
		"a.reg.Epoch == reg.Epoch && a.missing > 0",
	}}},
	{"a lost message ends a watch", "Places", "dataplane/locate/watch.go", []edit{{
		"\t\t\tw.report(Report{What: f.what, Err: rerr, Lost: f.lost})\n\t\t\tcontinue\n",
		"\t\t\tw.report(Report{What: f.what, Err: rerr, Lost: f.lost})\n\t\t\t<-ctx.Done()\n\t\t\treturn rerr\n",
	}}},
	{"a broken watch stays broken", "Places", "dataplane/locate/watch.go", []edit{{
		"\t\tf.dead.Store(false)\n",
		"\t\t<-ctx.Done()\n",
	}}},
	{"nothing is looked at while a watch is broken", "Places", "dataplane/locate/watch.go", []edit{{
		"\t\t\tw.changes.Everything()\n\t\t\tfile, err := f.open()\n",
		"\t\t\tfile, err := f.open()\n",
	}}},
	{"the kernel tells of all that strangers make", "Places", "dataplane/locate/filter.go", []edit{{
		"\t\tasm.JNE.Imm(asm.R0, 0, pass),\n\t\tasm.Return(), // R0 is 0\n",
		"\t\tasm.Ja.Label(pass),\n\t\tasm.Return(),\n",
	}}},
	{"renewals are requests like others", "Places", "envelope/renewal.go", []edit{{
		"Type(b[typeOffset]) == TypeRenew",
		"Type(b[typeOffset]) == 0",
	}}},
	{"one port takes all places", "Places", "dataplane/slow.go", []edit{{
		"most: int32(slots / portShare),",
		"most: int32(slots),",
	}}},
	{"a lease ends in a pause of the control loop", "Places", "dataplane/loop.go", []edit{{
		"\treturn max(at, c.hold), ok\n",
		"\treturn at, ok\n",
	}}},
}
