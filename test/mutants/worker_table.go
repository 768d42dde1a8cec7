// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Wrong ways for several workers to share a switch. Their rule is the section of
// docs/ARCHITECTURE.md.
var workerMutants = []mutant{
	{"a packet is handed on in part", "Several workers", "dataplane/mail.go", []edit{{
		"	if r.Room(need) < need {\n",
		"	if r.Room(1) < 1 {\n",
	}}},
	{"a port that floods takes all places", "Several workers", "dataplane/mail.go", []edit{{
		"		need += r.Size() / 2\n",
		"		need += 0\n",
	}}},
	{"a port's limits are asked behind the ring", "Several workers", "dataplane/mail.go", []edit{{
		"		case negative && !w.ports[pi].naks.take(w.now):\n",
		"		case negative && false:\n",
	}}},
	{"the port does not travel with the packet", "Several workers", "dataplane/mail.go", []edit{{
		"		d.Options |= uint32(pi) << portShift\n",
		"		_ = pi\n",
	}}},
	{"a packet that finds no room keeps its frames", "Several workers", "dataplane/mail.go", []edit{{
		"		w.count.drop[DropPostFull]++\n		w.free(ds)\n",
		"		w.count.drop[DropPostFull]++\n",
	}}},
	{"nobody rouses a worker that sleeps", "Several workers", "dataplane/mail.go", []edit{{
		"			w.crew.workers[to].rouse()\n",
		"			_ = to\n",
	}}},
	{"a worker sleeps with packets to open", "Several workers", "dataplane/mail.go", []edit{{
		"		if r.Waiting() > 0 {\n			return false\n",
		"		if r.Waiting() > 0 {\n			return true\n",
	}}},
	{"the sender takes more than its queue admits", "Several workers", "dataplane/exit.go", []edit{{
		"		case p.admits(size, len(ds)):\n",
		"		default:\n",
	}, {
		"		default:\n			e.left = n - taken\n",
		"		case false:\n			e.left = n - taken\n",
	}}},
	{"what waits at the sender does not count", "Several workers", "dataplane/exit.go", []edit{{
		"	p.queue.elsewhere = int(x.board.waiting.Load()) + int(x.handed-x.taken.Load())\n",
		"	p.queue.elsewhere = int(x.handed - x.taken.Load())\n",
	}}},
	{"what is on its way to the sender does not count", "Several workers", "dataplane/exit.go", []edit{{
		"	p.queue.elsewhere = int(x.board.waiting.Load()) + int(x.handed-x.taken.Load())\n",
		"	p.queue.elsewhere = int(x.board.waiting.Load())\n",
	}}},
	{"an exit fills to the brim", "Several workers", "dataplane/exit.go", []edit{{
		"min(free, max(size/2, p.widest)-(size-free))",
		"free",
	}}},
	{"an exit that nobody empties looks alive", "Several workers", "dataplane/exit.go", []edit{{
		"taken != x.seen || taken == x.handed {",
		"taken == x.seen || taken == x.handed {",
	}}},
	{"a group that has gone keeps its owner", "Several workers", "dataplane/owners.go", []edit{{
		"		o.next = (o.next + 1) % formerGroups\n		o.publish()\n",
		"		o.next = (o.next + 1) % formerGroups\n",
	}}},
	{"all groups go to one worker", "Several workers", "dataplane/owners.go", []edit{{
		"	o.load[worker]++\n",
		"",
	}}},
	{"tags hide the address", "Several workers", "dataplane/owners.go", []edit{{
		"	for kind == rocev2.EtherTypeVLAN || kind == rocev2.EtherTypeQinQ {\n",
		"	for kind == rocev2.EtherTypeQinQ {\n",
	}}},
	{"a group is steered to another worker's queue", "Several workers", "dataplane/steer.go", []edit{{
		"	at := ((worker-pi)%n + n) % n\n",
		"	at := (worker + pi + 1) % n\n",
	}}},
	{"what is reserved goes back to the depot", "Several workers", "dataplane/xsk/pool.go", []edit{{
		"	p.most = max(p.most, n+p.batch)\n",
		"",
	}}},
	{"a pool hoards", "Several workers", "dataplane/xsk/pool.go", []edit{{
		"	if len(p.free) > p.most {\n",
		"	if len(p.free) > 1<<30 {\n",
	}}},
	{"a full ring is written over", "Several workers", "dataplane/spsc/ring.go", []edit{{
		"	if r.put-r.freed == uint32(len(r.entries)) && r.Room(1) == 0 {\n",
		"	if r.put-r.freed > uint32(len(r.entries)) && r.Room(1) == 0 {\n",
	}}},
	{"an entry is seen before it is published", "Several workers", "dataplane/spsc/ring.go", []edit{{
		"	r.put++\n	return true\n",
		"	r.put++\n	r.tail.Store(r.put)\n	return true\n",
	}}},
	{"a worker's sleep that was too long is no pause", "R58", "dataplane/hearing.go", []edit{{
		"		w.lost += late\n",
		"",
	}}},
	{"each late timer is a pause", "R58", "dataplane/hearing.go", []edit{{
		"late > lateness {",
		"late > 0 {",
	}}},
	{"a pause counts when it is over", "R58", "dataplane/hearing.go", []edit{{
		"	return time.Duration(p.lost.Load()) + pause(due, now)\n",
		"	return time.Duration(p.lost.Load()) + 0*pause(due, now)\n",
	}}},
	{"a pause counts while it lasts only", "R58", "dataplane/hearing.go", []edit{{
		"		w.pulse.lost.Store(int64(w.lost))\n",
		"",
	}}},
	{"all workers hear all ports", "R58", "dataplane/hearing.go", []edit{{
		"	return (i-pi%n+n)%n < len(c.ports[pi].all)\n",
		"	return n > 0\n",
	}}},
	{"a port's rate delays nobody", "R59", "dataplane/hearing.go", []edit{{
		"	if rate > 0 {\n",
		"	if rate < 0 {\n",
	}}},
}
