// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Wrong ways to hold keys: who owns a group, what a key may do, and what counts from
// where. The rule is a subject of docs/PROTOCOL.md.
var keysMutants = []mutant{
	{"every key owns every group", "Keys", "envelope/registrar_owner.go", []edit{{
		"return !g.local() && g.key == key\n",
		"return !g.local()\n",
	}}},
	{"keys own groups made by hand", "Keys", "envelope/registrar_owner.go", []edit{{
		"return !g.local() && g.key == key\n",
		"return g.local() || g.key == key\n",
	}}},
	{"what is being located is anybody's", "Keys", "envelope/registrar_owner.go", []edit{{
		"	g := r.locating[m.Group]\n	return g != nil && !r.owns(m.KeyID, g)\n",
		"	return false\n",
	}}},
	{"what was being located replaces the operator's group", "Keys", "envelope/registrar_owner.go", []edit{{
		"!r.owns(g.key, old) {\n",
		"!r.owns(g.key, old) && !old.local() {\n",
	}}},
	{"keys share what is put together", "Keys", "envelope/registrar_assemble.go", []edit{{
		"	k := pendingKey{m.Group, m.KeyID}\n	a :=",
		"	k := pendingKey{m.Group, 0}\n	a :=",
	}}},
	{"one key's unfinished registrations keep the others' out", "Keys", "envelope/registrar_owner.go", []edit{{
		"	return max(1, r.cfg.MaxPending/2)\n",
		"	return r.cfg.MaxPending\n",
	}}},
	{"a failed group leaves the next sender waiting", "R80", "mcast/epoch.go", []edit{{
		"	if g.dead {\n		return g.refuseDead(MemberID(k), p, out)\n	}\n	quiescent",
		"	if g.dead {\n		return GroupDead\n	}\n	quiescent",
	}}},
	{"a failed group answers unverified packets", "R80", "mcast/turns.go", []edit{{
		"		return GroupDead\n	}\n	if !p.Verified {\n",
		"		return GroupDead\n	}\n	if p == nil {\n",
	}}},
	{"a failed group answers every packet", "R80", "mcast/turns.go", []edit{{
		"	if p.PSN&rocev2.PSNMask != g.members[k].p || p.Neighbor != 0 {\n",
		"	if p.Neighbor != 0 {\n",
	}}},
	{"a key that is taken away is still taken", "Reload", "envelope/registrar_keys.go", []edit{{
		"	r.auth, r.cfg.Auth, r.cfg.Rights = auth, auth, rights\n",
		"	r.cfg.Auth, r.cfg.Rights = auth, rights\n",
	}}},
	{"keys without a check", "Reload", "envelope/registrar_keys.go", []edit{{
		"	if err := auth.check(); err != nil {\n",
		"	if err := auth.check(); err != nil && orphans != nil {\n",
	}}},
	{"groups of a key that is gone are nobody's business", "Reload", "envelope/registrar_keys.go", []edit{{
		"			orphans[g.key]++\n",
		"			_ = g\n",
	}}},
	{"a repeated pattern is a secret", "Secrets", "config/secret_file.go", []edit{{
		"	for p := 2; p <= len(b)/2; p++ {\n",
		"	for p := 99; p <= len(b)/2; p++ {\n",
	}}},
	{"a secret file may belong to anybody", "Secrets", "config/secret.go", []edit{{
		"ok && s.Uid != 0 && int(s.Uid) != os.Geteuid() {",
		"ok && s == nil {",
	}}},
	{"a secret file may be changed by its group", "Secrets", "config/secret.go", []edit{{
		"	case st.Mode().Perm()&0o020 != 0:\n",
		"	case st.Mode().Perm()&0o010 != 0:\n",
	}}},
	{"one address takes the rate of a port", "Rates", "dataplane/senders.go", []edit{{
		"	s.next[i] = b.next\n",
		"	_ = b.next\n",
	}}},
	{"all addresses have one rate", "Rates", "dataplane/senders.go", []edit{{
		"% uint64(len(s.next))\n",
		"% 1\n",
	}}},
	{"every key is for everything", "Rights", "envelope/rights.go", []edit{{
		"	case !k.Roles.has(roleFor(m)):\n",
		"	case k.Roles == 1<<7:\n",
	}}},
	{"a member's key removes others", "Rights", "envelope/rights.go", []edit{{
		"ok && l.Member.IP == m.ReplyTo.Addr() {",
		"ok && l != nil {",
	}}},
	{"every key is for every group", "Rights", "envelope/rights.go", []edit{{
		"	case !k.mayUse(m.Group):\n",
		"	case len(k.Prefixes) > 99:\n",
	}}},
	{"a receive-only key has many senders", "Rights", "envelope/rights.go", []edit{{
		"		m.ReceiveOnly = m.ReceiveOnly || m.IP != g.reg.Master.Addr()\n",
		"		m.ReceiveOnly = m.ReceiveOnly && m.IP != g.reg.Master.Addr()\n",
	}}},
	{"nobody may send", "Rights", "envelope/registration.go", []edit{{
		"		return &Problem{Reason: NoSender}\n",
		"		_ = NoSender\n",
	}}},
	{"the switch does not know who only receives", "R76", "dataplane/directory.go", []edit{{
		", ReceiveOnly: m.ReceiveOnly}",
		"}",
	}}},
	{"a cookie is for any address", "Cookies", "envelope/cookie.go", []edit{{
		"	a := to.Addr().As16()\n",
		"	a := [16]byte{}\n	_ = to.Addr()\n",
	}}},
	{"a cookie is for any port", "Cookies", "envelope/cookie.go", []edit{{
		"	b = be.AppendUint16(b, to.Port())\n",
		"",
	}}},
	{"a cookie is for any key", "Cookies", "envelope/cookie.go", []edit{{
		"	b = be.AppendUint16(b, uint16(key))\n",
		"	_ = key\n",
	}}},
	{"a cookie does not age", "Cookies", "envelope/cookie.go", []edit{{
		"uint64(r.now / r.cfg.CookiePeriod)",
		"uint64(r.now / r.cfg.CookiePeriod / 1e6)",
	}}},
	{"a cookie ends with its period", "Cookies", "envelope/cookie.go", []edit{{
		"p > 0 && h.Instance",
		"p > 1<<62 && h.Instance",
	}}},
	{"a cookie outlives what is forgotten", "Cookies", "envelope/registrar_install.go", []edit{{
		"		r.generation++\n",
		"",
	}}},
	{"the switch's secret is no part of a cookie", "Cookies", "envelope/cookie.go", []edit{{
		"hmac.New(sha256.New, r.cfg.Secret[:])",
		"hmac.New(sha256.New, r.cfg.Secret[:0])",
	}}},
	{"a recorded Ack counts", "Cookies", "envelope/registrar_timers.go", []edit{{
		"	if !r.proves(&m.Header) {\n",
		"	if m == nil {\n",
	}}},
	{"a master keeps an old cookie", "Cookies", "envelope/master_input.go", []edit{{
		"		m.instance = msg.Instance // the newest: an old one would cost a Challenge\n",
		"",
	}}},
	{"any epoch may follow", "Epochs", "envelope/rights.go", []edit{{
		"m.Epoch-n > r.cfg.EpochStep {",
		"m.Epoch-n > 1<<63 {",
	}}},
	{"a Delete may use any epoch up", "Epochs", "envelope/rights.go", []edit{{
		"	if m.Type == TypeRegister || m.Type == TypeDelete {",
		"	if m.Type == TypeRegister {",
	}}},
	{"epochs begin at 0 after a restart", "Epochs", "envelope/registrar_assemble.go", []edit{{
		"	n := r.cfg.EpochBase\n",
		"	n := uint64(0)\n",
	}}},
	{"epochs are never forgotten", "Epochs", "envelope/registrar_install.go", []edit{{
		"		delete(r.epochs, ip)\n",
		"",
	}}},
	{"epochs end with their group", "Epochs", "envelope/registrar_install.go", []edit{{
		"		r.removeGroup(now, g, Deleted, true, out)\n	}\n	return nil\n",
		"		r.removeGroup(now, g, Deleted, true, out)\n		delete(r.epochs, ip)\n	}\n	return nil\n",
	}}},
	{"one label for all directions", "Directions", "envelope/direction.go", []edit{{
		"	h.Write([]byte(labels[t.direction()]))\n",
		"	h.Write([]byte(labels[toSwitch]))\n",
	}}},
	{"a Gone is taken from anywhere", "Places", "envelope/member_input.go", []edit{{
		"	case !fromTheSwitch(from, msg.Group, m.cfg.Port):\n",
		"	case from.Port() == 0:\n",
	}}},
	{"the switch's port is any port", "Places", "envelope/direction.go", []edit{{
		"== group && from.Port() == port\n",
		"== group && port != 0\n",
	}}},
	{"a Confirm is taken from anywhere", "Places", "envelope/master_input.go", []edit{{
		"		return from.Addr().Unmap() == c.Member.IP\n",
		"		return from.IsValid() || c == nil\n",
	}}},
	{"a master takes messages under any key", "Keys", "envelope/master_input.go", []edit{{
		"	case msg.KeyID != m.auth.Send: // whose",
		"	case msg.KeyID == 1<<16-1: // whose",
	}}},
	{"a member takes messages under any key", "Keys", "envelope/member_input.go", []edit{{
		"	return g.epoch == 0 || g.over || key == g.key || key == m.auth.Send\n",
		"	return g != nil\n",
	}}},
	{"a member distrusts its own key", "Keys", "envelope/member_input.go", []edit{{
		" || key == g.key || key == m.auth.Send\n",
		" || key == g.key\n",
	}}},
	{"a member leaves under its own key", "Keys", "envelope/member.go", []edit{{
		"	m.toSwitch(g.key, g.Group",
		"	m.toSwitch(m.auth.Send, g.Group",
	}}},
}
