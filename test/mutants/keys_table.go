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
		"		return &Problem{Reason: OtherKey}\n",
		"		return nil\n",
	}}},
	{"keys share what is put together", "Keys", "envelope/registrar_assemble.go", []edit{{
		"	k := pendingKey{m.Group, m.KeyID}\n	a :=",
		"	k := pendingKey{m.Group, 0}\n	a :=",
	}}},
	{"one key's unfinished registrations keep the others' out", "Keys", "envelope/registrar_owner.go", []edit{{
		"	return max(1, r.cfg.MaxPending/2)\n",
		"	return r.cfg.MaxPending\n",
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
