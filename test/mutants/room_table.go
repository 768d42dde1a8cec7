// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Wrong ways to share room, so that a port that does not transmit is felt by others.
var roomMutants = []mutant{
	{"a port without room refuses packets for everybody", "R70", "dataplane/serve.go", []edit{{
		"	return orNone(min(spare, maxRepairs)), spare >= 0\n",
		"	for _, l := range w.groups[id].legs {\n		if p := w.ports[max(0, l.port)]; !p.down && p.room(1500, 1) == 0 {\n			return -1, false\n		}\n	}\n	return orNone(min(spare, maxRepairs)), spare >= 0\n",
	}}},
	{"feedback needs frames for copies", "R70", "dataplane/serve.go", []edit{{
		"	if op.Is(rocev2.OpRequest) {\n		need +=",
		"	if op.Is(rocev2.OpKnown) {\n		need +=",
	}}},
	{"no frames are kept for feedback", "R70", "dataplane/serve.go", []edit{{
		"	need := spareFeedback\n",
		"	need := 0\n",
	}}},
	{"no frames are kept for copies", "R70", "dataplane/serve.go", []edit{{
		"		need += w.groups[id].copies\n",
		"		need += 0\n",
	}}},
	{"repairs take the frames of first copies", "R70", "dataplane/serve.go", []edit{{
		"	return orNone(min(spare, maxRepairs)), spare >= 0\n",
		"	return orNone(min(spare+need, maxRepairs)), spare >= 0\n",
	}}},
	{"members that were evicted need frames", "R70", "dataplane/serve.go", []edit{{
		"			w.groups[e.Group].leave(e.Member)\n",
		"",
	}}},
	{"members that were removed need frames", "R70", "dataplane/directory.go", []edit{{
		"		w.groups[id].leave(m)\n",
		"",
	}}},
	{"members that have gone need room", "R70", "dataplane/need.go", []edit{{
		"return !l.gone && l.port >= 0",
		"return l.port >= 0",
	}}},
	{"a new table counts members that have gone", "R70", "dataplane/directory.go", []edit{{
		"		l.gone = slots[i].gone\n",
		"",
	}}},
	{"repairs are made for a port that takes none", "R70", "dataplane/worker.go", []edit{{
		"	w.out.Room = w.legRoom\n",
		"",
	}}},
	{"a leg without room stops the others' repairs", "R70", "mcast/repair.go", []edit{{
		"			g.holdFor(m, until)\n			return true\n",
		"			g.holdFor(m, until)\n			return false\n",
	}}},
	{"a leg without room is not looked at again", "R70", "mcast/repair.go", []edit{{
		"	m.hold = max(m.hold, until, 1) // 0 is none\n	g.tendBy(m.hold)\n",
		"	m.hold = max(m.hold, until, 1) // 0 is none\n",
	}}},
	{"a leg gets more than its port takes", "R70", "mcast/repair.go", []edit{{
		"		room--\n",
		"",
	}}},
	{"the kernel is asked in each batch", "R70", "dataplane/transmit.go", []edit{{
		"	if w.now < p.kickAt && before == p.kicked {\n",
		"	if w.now < 0 {\n",
	}}},
	{"the kernel is asked as often as at first", "R70", "dataplane/transmit.go", []edit{{
		"min(max(txRetry, (now-p.moved)/retryPart), maxRetry)",
		"txRetry",
	}}},
	{"the kernel is not asked again", "R70", "dataplane/transmit.go", []edit{{
		"		p.kickAt = p.retry(w.now)\n",
		"		p.kickAt = 1 << 62\n",
	}}},
	{"the worker sleeps on what the kernel has not taken", "R70", "dataplane/worker.go", []edit{{
		"		if at, ok := p.nextKick(); ok {\n",
		"		if at, ok := p.nextKick(); ok && at < 0 {\n",
	}}},
	{"a port's TX ring takes more than its share", "R70", "dataplane/transmit.go", []edit{{
		"min(p.socks[0].TxRoom(), max(p.queue.maxFrames, p.widest)-p.queue.ahead-p.queue.len())",
		"p.socks[0].TxRoom()",
	}}},
	{"what is in the TX ring leaves the queue its share", "R70", "dataplane/queue.go", []edit{{
		"return q.len()+q.ahead+buffers <=",
		"return q.len()+buffers <=",
	}}},
	{"a batch beyond a port's share is lost", "R70", "dataplane/leg.go", []edit{{
		"!w.admits(p, max(length, minFrame), len(ds))",
		"!p.admits(max(length, minFrame), len(ds))",
	}}},
	{"a packet beyond a port's share is lost", "R70", "dataplane/need.go", []edit{{
		"		p.widest = max(p.widest, (n.packets+spareFeedback)*max(1, t.buffers))\n",
		"		_ = p\n",
	}}},
	{"a worker without frames sleeps", "Who owns what", "dataplane/worker.go", []edit{{
		"	w.starved = w.starved || n < want\n",
		"",
	}}},
}
