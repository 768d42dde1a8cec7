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
}
