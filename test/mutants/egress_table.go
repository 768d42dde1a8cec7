// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Wrong ways to queue and to mark.
var egressMutants = []mutant{
	{"what is not ECN-capable is marked", "7", "dataplane/ecn.go", []edit{{
		"return e == rocev2.ECT0 || e == rocev2.ECT1",
		"return e != rocev2.CE",
	}}},
	{"ECT(1) is not marked", "7", "dataplane/ecn.go", []edit{{
		"return e == rocev2.ECT0 || e == rocev2.ECT1",
		"return e == rocev2.ECT0",
	}}},
	{"marking leaves the IPv4 checksum wrong", "7", "dataplane/ecn.go", []edit{{
		"	h.SetChecksum(rocev2.ChecksumUpdate16(h.Checksum(), old, binary.BigEndian.Uint16(l3)))\n",
		"	_ = old\n",
	}}},
	{"marking clears the DSCP", "7", "dataplane/ecn.go", []edit{{
		"h.SetTOS(h.TOS() | uint8(rocev2.CE))",
		"h.SetTOS(uint8(rocev2.CE))",
	}}},
	{"above kmax only a share is marked", "7", "dataplane/ecn.go", []edit{{
		"		return true\n	}\n	return m.draw()",
		"		depth = m.kmax\n	}\n	return m.draw()",
	}}},
	{"the share does not rise with the depth", "7", "dataplane/ecn.go", []edit{{
		"m.steps*uint64(depth-m.kmin)/uint64(m.kmax-m.kmin)",
		"m.steps",
	}}},
	{"the packet is marked before it is copied", "7", "dataplane/leg.go", []edit{{
		"	p.mark(out[l2Len:n])\n",
		"",
	}, {
		"	addr := ds[0].Addr + uint64(f.L3Offset()) - uint64(l2Len) // the",
		"	p.mark(l3)\n	addr := ds[0].Addr + uint64(f.L3Offset()) - uint64(l2Len) // the",
	}}},
	{"an idle link saves up time", "7", "dataplane/queue.go", []edit{{
		"	if q.idle {\n",
		"	if q.idle && q.rate < 0 {\n",
	}}},
	{"a late worker loses the link's time", "7", "dataplane/queue.go", []edit{{
		"	least := now - maxCatchUp\n",
		"	least := now\n",
	}}},
	{"preamble and gap cost nothing", "7", "dataplane/queue.go", []edit{{
		"const linkOverhead = 4 + 8 + 12",
		"const linkOverhead = 4",
	}}},
	{"parts of a nanosecond are lost", "7", "dataplane/queue.go", []edit{{
		"	q.part = t % q.rate\n",
		"	q.part = 0\n",
	}}},
	{"data takes the room of replies", "7", "dataplane/queue.go", []edit{{
		"return q.len()+q.ahead+buffers <= q.maxFrames && q.bytes+q.elsewhere+linkBytes(n) <= q.maxBytes",
		"return q.len()+q.ahead+buffers <= q.maxFrames+replyFrames && q.bytes+q.elsewhere+linkBytes(n) <= q.maxBytes+replyBytes",
	}}},
	{"a merged ACK loses the BECN of the earlier one", "R32", "dataplane/feedback.go", []edit{{
		"		pkt.BECN = pkt.BECN || last.becn\n",
		"",
	}}},
	{"a merged ACK forgets the BECN of the first", "R32", "dataplane/feedback.go", []edit{{
		", at: n - 1, becn: pkt.BECN}",
		", at: n - 1}",
	}}},
	{"closures' frames wait for the next batch", "Who owns what", "dataplane/worker.go", []edit{{
		"	if w.runCommands() {\n		w.flush()\n	}\n",
		"	w.runCommands()\n",
	}}},
	{"a worker sleeps on staged frames", "Who owns what", "dataplane/worker.go", []edit{{
		"		if p.staged() {\n			return 0\n",
		"		if p.staged() && p.down {\n			return 0\n",
	}}},
	{"a worker sleeps on packets that it has not posted", "Who owns what", "dataplane/worker.go", []edit{{
		"		if r != nil && r.Unpublished() > 0 {\n",
		"		if r != nil && r.Unpublished() < 0 {\n",
	}}},
	{"a lost port keeps what closures staged", "Who owns what", "dataplane/port.go", []edit{{
		"		o.unstage(p) // by a closure that ran just before\n",
		"",
	}}},
	{"frames overtake those that queue", "7", "dataplane/queue.go", []edit{{
		"return p.queue.rate == 0 && p.queue.head == p.queue.tail && len(p.tx)",
		"return p.queue.rate == 0 && len(p.tx)",
	}}},
}
