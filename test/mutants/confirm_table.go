// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Wrong ways to answer holders of several keys, and to believe where hosts are. The rule
// is a subject of docs/PROTOCOL.md.
var confirmMutants = []mutant{
	{"answers are under the first key", "Keys", "envelope/registrar.go", []edit{{
		"	r.sendUnder(h.KeyID, us, h.ReplyTo,",
		"	r.sendUnder(r.auth.Send, us, h.ReplyTo,",
	}}},
	{"a Notify is under the first key", "Keys", "envelope/registrar_install.go", []edit{{
		"	r.sendUnder(g.key, netip.AddrPortFrom(ip, r.cfg.Port),",
		"	r.sendUnder(r.auth.Send, netip.AddrPortFrom(ip, r.cfg.Port),",
	}}},
	{"a Gone is under the first key", "Keys", "envelope/registrar_timers.go", []edit{{
		"	r.sendUnder(e.key, us, e.dst,",
		"	r.sendUnder(r.auth.Send, us, e.dst,",
	}}},
	{"the secret of a key that is taken away is forgotten", "Reload", "envelope/registrar_keys.go", []edit{{
		"			r.retired[id] = secret\n",
		"			r.retired[id] = auth.Keys[auth.Send]\n			_ = secret\n",
	}}},
	{"a member speaks from anywhere", "WrongPlace", "envelope/registrar.go", []edit{{
		"	case m.Type != TypeHere && !r.table.AtPlace(",
		"	case m.Type == TypeWhere && !r.table.AtPlace(",
	}}},
	{"a Here has to come from the old place", "WrongPlace", "envelope/registrar.go", []edit{{
		"	case m.Type != TypeHere && !r.table.AtPlace(",
		"	case !r.table.AtPlace(",
	}}},
	{"an Ack comes from anywhere", "WrongPlace", "envelope/registrar.go", []edit{{
		"from.Addr(), m.Type == TypeAck):",
		"from.Addr(), false):",
	}}},
	{"a member's port is enough", "WrongPlace", "dataplane/atplace.go", []edit{{
		"d.from.port == pi && locate.MAC(d.from.mac) == locate.MAC(d.home.MAC)",
		"d.from.port == pi",
	}}},
	{"a member's MAC address is enough", "WrongPlace", "dataplane/atplace.go", []edit{{
		"d.from.port == pi && locate.MAC(",
		"locate.MAC(",
	}}},
	{"a member without a place speaks from anywhere", "WrongPlace", "dataplane/atplace.go", []edit{{
		"			return h.pin // the kernel has none at the moment\n",
		"			return locate.Location{}\n",
	}}},
	{"the place that a member left from is forgotten", "WrongPlace", "dataplane/hosts.go", []edit{{
		"		h.left = h.pin\n",
		"",
	}}},
	{"one that has left speaks from its old place alone", "WrongPlace", "dataplane/atplace.go", []edit{{
		"	case !left:\n",
		"	case h == nil:\n",
	}}},
	{"envelopes from elsewhere are no warning", "WrongPlace", "dataplane/refusal.go", []edit{{
		"	c.notify(x.reason == envelope.WrongPlace, ",
		"	c.notify(false, ",
	}}},
}
