// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Wrong ways to register a group: at the registrar, and at masters and members. The
// rule is a subject of docs/PROTOCOL.md.
var envelopeMutants = []mutant{
	{"an answer may go to another host than the asker", "Registrar", "envelope/registrar.go", []edit{{
		"	case from.Addr() != m.ReplyTo.Addr() || m.ReplyTo.Port() == 0:\n",
		"	case m.ReplyTo.Port() == 0:\n",
	}}},
	{"a request of another instance is taken", "Registrar", "envelope/registrar.go", []edit{{
		"	case !r.proves(&m.Header) || m.Epoch == 0:\n",
		"	case m.Epoch == 0:\n",
	}}},
	{"epoch 0 is an epoch", "Registrar", "envelope/registrar.go", []edit{{
		"	case !r.proves(&m.Header) || m.Epoch == 0:\n",
		"	case !r.proves(&m.Header):\n",
	}}},
	{"each segment of another instance is challenged", "Registrar", "envelope/registrar.go", []edit{{
		"	if m.Seq != 0 {\n		return\n	}\n",
		"",
	}}},
	{"a relayed message is taken", "Registrar", "envelope/registrar.go", []edit{{
		"	case m.Relay || m.Type",
		"	case m.Type",
	}}},
	{"a malformed message of another instance is answered", "Registrar", "envelope/registrar.go", []edit{{
		"m.ReplyTo.Port() != 0 && r.proves(&m.Header):",
		"m.ReplyTo.Port() != 0:",
	}}},
	{"hints without end", "Authentication", "envelope/registrar.go", []edit{{
		" || now < r.hintAt {",
		" {",
	}}},
	{"a hint may be longer than what it answers", "Authentication", "envelope/registrar.go", []edit{{
		"	if err != nil || len(b) > size {\n",
		"	if err != nil {\n",
	}}},
	{"answers have the switch's own key", "Authentication", "envelope/registrar.go", []edit{{
		"	r.sendUnder(h.KeyID, us",
		"	r.sendUnder(r.auth.Send, us",
	}}},
	{"a short limit on leases is no default", "Leases", "envelope/registrar.go", []edit{{
		"min(time.Minute, c.MaxLease)",
		"time.Minute",
	}}},
	{"a repetition may come from another port", "Assembly", "envelope/registrar_assemble.go", []edit{{
		"&& m.ReplyTo == g.reg.Master\n",
		"&& m.ReplyTo.Addr() == g.reg.Master.Addr()\n",
	}}},
	{"a repetition extends the lease", "Assembly", "envelope/registrar_assemble.go", []edit{{
		"	r.drop(DuplicateMsg, out)\n	r.acceptRegister(&m.Header, g, out)\n",
		"	r.drop(DuplicateMsg, out)\n	g.leaseUntil += g.reg.Lease\n	r.acceptRegister(&m.Header, g, out)\n",
	}}},
	{"a newer transaction does not begin anew", "Assembly", "envelope/registrar_assemble.go", []edit{{
		" || m.Epoch == a.header.Epoch && int32(m.Transaction-a.header.Transaction) > 0) {",
		") {",
	}}},
	{"who begins again with an older transaction hears nothing", "Assembly", "envelope/registrar_assemble.go", []edit{{
		"		if m.Epoch == a.header.Epoch && m.ReplyTo.Addr() == a.header.ReplyTo.Addr() {\n",
		"		if m.Epoch == a.header.Epoch && m.ReplyTo.Addr() == (Header{}).ReplyTo.Addr() {\n",
	}}},
	{"another master hears of a transaction", "Assembly", "envelope/registrar_assemble.go", []edit{{
		"		if m.Epoch == a.header.Epoch && m.ReplyTo.Addr() == a.header.ReplyTo.Addr() {\n",
		"		if m.Epoch == a.header.Epoch {\n",
	}}},
	{"unfinished registrations without bound", "Assembly", "envelope/registrar_assemble.go", []edit{{
		"(len(r.pending) >= r.cfg.MaxPending ||",
		"(len(r.pending) >= r.cfg.MaxPending+9 ||",
	}}},
	{"segments may say different things", "Assembly", "envelope/registrar_assemble.go", []edit{{
		" || !sameGroup(&body.GroupBody, &a.group)\n",
		"\n",
	}}},
	{"segments may be of two masters", "Assembly", "envelope/registrar_assemble.go", []edit{{
		" || m.ReplyTo != a.header.ReplyTo || ",
		" || ",
	}}},
	{"a new segment does not prolong the time", "Assembly", "envelope/registrar_assemble.go", []edit{{
		"	a.members += len(body.Members)\n	a.deadline = now + r.cfg.ReassemblyTimeout\n",
		"	a.members += len(body.Members)\n",
	}}},
	{"a rejected epoch may be used again", "Epochs", "envelope/registrar_assemble.go", []edit{{
		"		e.rejected, e.problem = h.Epoch, p\n",
		"		e.problem = p\n",
	}}},
	{"the same question gets another answer", "Epochs", "envelope/registrar_assemble.go", []edit{{
		"			p = e.problem // the same question gets the same answer\n",
		"",
	}}},
	{"live groups' epochs are forgotten", "Epochs", "envelope/registrar_assemble.go", []edit{{
		"			if r.groups[k] == nil && r.locating[k] == nil {\n",
		"			if r.locating[k] == nil {\n",
	}}},
	{"what is forgotten may be played again", "Epochs", "envelope/registrar_assemble.go", []edit{{
		"		r.generation++\n",
		"",
	}}},
	{"a key's longest lease is no bound", "Leases", "envelope/registrar_assemble.go", []edit{{
		"q.Lease > 0 {",
		"q.Lease > 1<<62 {",
	}}},
	{"a queue pair may be in two groups", "Registrar", "envelope/registrar_install.go", []edit{{
		"ok && other != g.reg.Group {",
		"ok && !other.IsValid() {",
	}}},
	{"a group's address may be a member's", "Registrar", "envelope/registrar_install.go", []edit{{
		"		if r.serves(k.IP) {\n",
		"		if r.serves(k.IP) && k.QPN == 0 {\n",
	}}},
	{"one group too many", "Registrar", "envelope/registrar_install.go", []edit{{
		"r.taken() >= r.cfg.MaxGroups {",
		"r.taken() > r.cfg.MaxGroups {",
	}}},
	{"a group that replaces counts twice for the quota", "Registrar", "envelope/registrar_install.go", []edit{{
		"		if ip != g.reg.Group && other.key == g.key",
		"		if other.key == g.key",
	}}},
	{"queue pairs of a replaced group stay taken", "Registrar", "envelope/registrar_install.go", []edit{{
		"			delete(r.members, old.reg.Members[i].Key())\n",
		"			_ = i\n",
	}}},
	{"the old master hears nothing of a replacement", "Registrar", "envelope/registrar_install.go", []edit{{
		"	if old.reg.Master != g.reg.Master && why == Replaced {\n",
		"	if old.reg.Master == g.reg.Master && why == Replaced {\n",
	}}},
	{"who stays hears Gone of a replacement", "Registrar", "envelope/registrar_install.go", []edit{{
		"k := old.reg.Members[i].Key(); g.reg.Find(k) < 0 {",
		"k := old.reg.Members[i].Key(); g.reg.Find(k) < len(g.reg.Members) {",
	}}},
	{"a Notify has the switch's own key", "Authentication", "envelope/registrar_install.go", []edit{{
		"	r.sendUnder(g.key, netip",
		"	r.sendUnder(r.auth.Send, netip",
	}}},
	{"an older Renew is taken", "Leases", "envelope/registrar_requests.go", []edit{{
		"	case d < 0:\n",
		"	case d < -1<<31:\n",
	}}},
	{"an older Renew is not answered", "Leases", "envelope/registrar_requests.go", []edit{{
		"		r.turnDown(&m.Header, Problem{Reason: StaleTransaction, Value: uint64(g.tx)}, out)\n",
		"		r.drop(StaleMessage, out)\n",
	}}},
	{"a repeated Renew counts again", "Leases", "envelope/registrar_requests.go", []edit{{
		"	case d == 0:\n",
		"	case d == 0 && g == nil:\n",
	}}},
	{"anybody may renew and delete", "Requests", "envelope/registrar_requests.go", []edit{{
		"	return !g.local() && m.ReplyTo.Addr() == g.reg.Master.Addr()\n",
		"	return !g.local()\n",
	}}},
	{"a Renew notifies as often as it names", "Leases", "envelope/registrar_requests.go", []edit{{
		"k >= 0 && !told[k] {",
		"k >= 0 {",
	}}},
	{"a Leave of before the record counts", "Requests", "envelope/registrar_requests.go", []edit{{
		"!ok || m.Epoch < since || m.Epoch > g.reg.Epoch {",
		"!ok || m.Epoch < min(since, 1) || m.Epoch > g.reg.Epoch {",
	}}},
	{"the master on a member's host cannot remove it", "Requests", "envelope/registrar_requests.go", []edit{{
		"	self := m.ReplyTo.Addr() == body.Member.IP && m.ReplyTo != g.reg.Master\n",
		"	self := m.ReplyTo.Addr() == body.Member.IP\n",
	}}},
	{"late segments bring back what was deleted", "Requests", "envelope/registrar_requests.go", []edit{{
		"		e.rejected, e.problem = m.Epoch, Problem{Reason: StaleEpoch, Value: m.Epoch}\n",
		"",
	}}},
	{"who was taken out stays taken", "Requests", "envelope/registrar_requests.go", []edit{{
		"	delete(r.members, k)\n	return true\n",
		"	return true\n",
	}}},
	{"an evicted member hears nothing", "Gone", "envelope/registrar_requests.go", []edit{{
		"	r.tell(now, g, g.reg.Master, gone, out)\n	r.tell(now, g, r.addrOf(k), gone, out)\n",
		"	r.tell(now, g, g.reg.Master, gone, out)\n",
	}}},
	{"anybody's Ack ends a Gone", "Gone", "envelope/registrar_timers.go", []edit{{
		" && e.dst.Addr() == from.Addr() {",
		" {",
	}}},
	{"a Gone is sent for ever", "Gone", "envelope/registrar_timers.go", []edit{{
		"			if e.tries >= r.cfg.EventTries {\n",
		"			if e.tries >= 1000 {\n",
	}}},
	{"Gone messages without bound", "Gone", "envelope/registrar_timers.go", []edit{{
		"	if len(r.events) < r.cfg.MaxEvents && r.cfg",
		"	if r.cfg",
	}}},
	{"a Gone has the switch's own key", "Authentication", "envelope/registrar_timers.go", []edit{{
		"	r.sendUnder(e.key, us",
		"	r.sendUnder(r.auth.Send, us",
	}}},
	{"a group outlives its lease", "Leases", "envelope/registrar_timers.go", []edit{{
		"!g.local() && now >= g.leaseUntil {",
		"!g.local() && now > g.leaseUntil+time.Second {",
	}}},
	{"an update of any older epoch", "Updates", "envelope/registrar_update.go", []edit{{
		"	if old.reg.Epoch != g.reg.Base {\n",
		"	if old.reg.Epoch < g.reg.Base {\n",
	}}},
	{"anybody may update", "Updates", "envelope/registrar_update.go", []edit{{
		"old.local() != g.local() || old.reg.Master.Addr() != g.reg.Master.Addr() {",
		"old.local() != g.local() {",
	}}},
	{"an update may name who has gone", "Updates", "envelope/registrar_update.go", []edit{{
		"ok && x.rec == *m && !g.local() {",
		"ok && x.rec == *m && g.local() {",
	}}},
	{"a member that stays begins anew for its Leave", "Updates", "envelope/registrar_update.go", []edit{{
		"			g.joined[m.Key()] = old.joined[m.Key()]\n",
		"",
	}}},
	{"who has gone is not told again", "Updates", "envelope/registrar_update.go", []edit{{
		"	if !g.local() {\n		r.tell(now, g, g.reg.Master, body, out)\n	}\n",
		"",
	}}},
	{"who is being told is told at once again", "Updates", "envelope/registrar_update.go", []edit{{
		"		if e.body == body && e.dst == g.reg.Master {\n",
		"		if e.body == nil {\n",
	}}},
	{"an identical registration begins the group anew", "Used numbers", "envelope/registrar_numbers.go", []edit{{
		"	g.reg.Base, g.again, g.used = old.reg.Epoch, true, old.used\n",
		"	g.again, g.used = true, old.used\n",
	}}},
	{"half of the MAC will do", "Authentication", "envelope/auth.go", []edit{{
		"		if !hmac.Equal(macOf(key, h.Type, b[:n]), b[n:]) {\n",
		"		if !hmac.Equal(macOf(key, h.Type, b[:n])[:16], b[n:n+16]) {\n",
	}}},
	{"no MAC will do", "Authentication", "envelope/auth.go", []edit{{
		"		if !insecure {\n",
		"		if !insecure && h.Type == TypeRegister {\n",
	}}},
	{"a key may be short", "Authentication", "envelope/auth.go", []edit{{
		"		if len(k) < MinKeyLen {\n",
		"		if len(k) < 1 {\n",
	}}},
	{"hops without a relay", "Registrar", "envelope/message.go", []edit{{
		"	if b[9] != 0 && flags",
		"	if b[9] > 99 && flags",
	}}},
	{"an old Notify is confirmed", "Member", "envelope/member_input.go", []edit{{
		"	case msg.Epoch < g.epoch || msg.Epoch == g.epoch && g.over || g",
		"	case msg.Epoch == g.epoch && g.over || g",
	}}},
	{"a Notify of what is over is confirmed", "Member", "envelope/member_input.go", []edit{{
		" || msg.Epoch == g.epoch && g.over || g.leaving:",
		" || g.leaving:",
	}}},
	{"another rq_psn is confirmed", "Member", "envelope/member_input.go", []edit{{
		"	case rec.RQPSN != g.RQPSN:\n",
		"	case rec.RQPSN < g.RQPSN:\n",
	}}},
	{"a Confirm has the member's own key", "Authentication", "envelope/member_input.go", []edit{{
		"	m.sendUnder(msg.KeyID, m.cfg.Local, msg.ReplyTo",
		"	m.sendUnder(m.auth.Send, m.cfg.Local, msg.ReplyTo",
	}}},
	{"a Gone of an older epoch ends the newer one", "Member", "envelope/member_input.go", []edit{{
		"	case msg.Epoch < g.epoch || body.Member.QPN",
		"	case body.Member.QPN",
	}}},
	{"a late Notify of a group that is gone counts", "Member", "envelope/member_input.go", []edit{{
		"		g.epoch, g.over = msg.Epoch, true\n		m.drop(StaleMessage, out)\n",
		"		m.drop(StaleMessage, out)\n",
	}}},
	{"a member that was refused says nothing", "Member", "envelope/member.go", []edit{{
		"	case g.status != Confirmed:\n",
		"	case g.status > NumStatuses:\n",
	}}},
	{"old messages of strangers are a member's trouble", "Member", "envelope/member.go", []edit{{
		"	g := &membership{Membership: ms, foreign: m.foreign()}\n",
		"	g := &membership{Membership: ms}\n",
	}}},
	{"a master's lease counts from the answer", "Master", "envelope/master_input.go", []edit{{
		"		m.leaseUntil = m.regSent + a.Lease ",
		"		m.leaseUntil = now + a.Lease ",
	}}},
	{"a master's lease counts from the Renew's answer", "Master", "envelope/master_input.go", []edit{{
		"		m.leaseUntil = m.renewSent + a.Lease\n",
		"		m.leaseUntil = now + a.Lease\n",
	}}},
	{"a Confirm of another epoch counts", "Master", "envelope/master_input.go", []edit{{
		"	i := m.reg.Find(c.Member)\n	switch {\n	case msg.Epoch != m.reg.Epoch:\n",
		"	i := m.reg.Find(c.Member)\n	switch {\n	case msg.Epoch < m.reg.Epoch:\n",
	}}},
	{"a hint about another request counts", "Master", "envelope/master_input.go", []edit{{
		" || msg.Transaction != m.regTx {",
		" {",
	}}},
	{"an old answer counts", "Master", "envelope/master_input.go", []edit{{
		"	case a.Request == TypeRegister && msg.Transaction == m.regTx && m.phase == registering:\n		m.phase",
		"	case a.Request == TypeRegister && m.phase == registering:\n		m.phase",
	}}},
	{"a restarted master goes on with its own numbers", "Master", "envelope/master_input.go", []edit{{
		"		m.lastTx = uint32(p.Value) // a master before us had this group\n",
		"",
	}}},
	{"a Renew is sent when the lease is nearly over", "Master", "envelope/master_input.go", []edit{{
		"lease+lease/3)",
		"lease+lease)",
	}}},
	{"a failed registration stays at the switch", "Master", "envelope/master_input.go", []edit{{
		"	if cleanUp && m.instance != 0 {\n",
		"	if cleanUp && m.instance == 0 {\n",
	}}},
	{"who gives up is not told of the hint", "Master", "envelope/master.go", []edit{{
		"SwitchSilent: true, Challenged: m.instance != 0, AuthHint: m.authHint,",
		"SwitchSilent: true, Challenged: m.instance != 0,",
	}}},
	{"waits do not get longer", "Timers", "envelope/link.go", []edit{{
		"	if b.wait *= 2; b.wait > max {\n",
		"	if b.wait > max {\n",
	}}},
	{"nothing is jittered", "Timers", "envelope/link.go", []edit{{
		"	return d - d/4 + time.Duration(r.next()%uint64(d/2+1))\n",
		"	return d + time.Duration(r.next()%1)\n",
	}}},
	{"a master may have messages that no switch takes", "Assembly", "envelope/register.go", []edit{{
		"	return min(mtu-ip-8, MaxLen) - ",
		"	return mtu - ip - 8 - ",
	}}},
}
