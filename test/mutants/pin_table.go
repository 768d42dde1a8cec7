// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

// pinMutants bring back what let a stranger move a member.
var pinMutants = []mutant{
	{"a Here under another key counts", "Where", "envelope/where.go", []edit{{
		"h.Member != m.ReplyTo.Addr() || m.KeyID != r.keyOf(g)",
		"h.Member != m.ReplyTo.Addr()",
	}}},
	{"a Here for another host counts", "Where", "envelope/where.go", []edit{{
		"h.Member != m.ReplyTo.Addr() || m.KeyID != r.keyOf(g)",
		"m.KeyID != r.keyOf(g)",
	}}},
	{"a host answers for another one's address", "Where", "envelope/where.go", []edit{{
		"if w.Member != m.cfg.Local.Addr() {",
		"if w.Member == m.cfg.Local.Addr().Next() {",
	}}},
	{"an answer from another MAC address counts", "Places", "dataplane/question.go", []edit{{
		"q != nil && q.at == s {",
		"q != nil && q.at.port == s.port {",
	}}},
	{"a port is asked at without bound", "Places", "dataplane/question.go", []edit{{
		" && x.count[port] < maxQuestions",
		"",
	}}},
	{"an answer in another group's name counts", "Places", "dataplane/moves.go", []edit{{
		"q == nil || h == nil || a.group != e.Group:",
		"q == nil || h == nil:",
	}}},
	{"a confirmation moves a member in the groups of all keys", "Places", "dataplane/moves.go", []edit{{
		"return ok && k == a.key",
		"return ok || k == a.key",
	}}},
	{"a member that answers from its old place is evicted", "Places", "dataplane/moves.go", []edit{{
		"config.MovesEvict && !q.atHome && ",
		"config.MovesEvict && ",
	}}},
	{"a member is held behind a port that is down", "Places", "dataplane/moves.go", []edit{{
		"p.set(h.ip, pin{h.pin, c.crew.ports[pi].saidUp})",
		"p.set(h.ip, pin{h.pin, true})",
	}}},
	{"what a bridge has learnt moves a member", "Places", "dataplane/relocate.go", []edit{{
		"samePlace(at, h.pin), !sameWay(at, h.pin):",
		"samePlace(at, h.pin), h.pin.Ifindex != 0:",
	}}},
	{"a changed route is not followed", "Places", "dataplane/relocate.go", []edit{{
		"samePlace(at, h.pin), !sameWay(at, h.pin):",
		"samePlace(at, h.pin):",
	}}},
	{"pins outlive the groups", "Places", "dataplane/hosts.go", []edit{{
		"\t\th.pin, h.seen = locate.Location{}, nil\n\t\tx.pinned(h)\n",
		"",
	}}},
	{"a MAC address at two ports is watched at one", "Places", "dataplane/pinner.go", []edit{{
		"return w.list.SetMAC(mac, 0)",
		"return nil",
	}}},
	{"an operator's neighbour entry is overwritten", "Places", "dataplane/locate/pin.go", []edit{{
		"case e != nil && (!ours || string(e.HardwareAddr) == string(mac)):",
		"case e != nil && (!ours && mac == nil || string(e.HardwareAddr) == string(mac)):",
	}}},
	{"an operator's sticky entry is taken for a pin", "Places", "dataplane/locate/pin.go", []edit{{
		"e.Flags&pinFlags == pinFlags",
		"e.Flags&pinFlags != 0",
	}}},
	{"pins of another gleamd's ports are removed", "Places", "dataplane/locate/pin.go", []edit{{
		"if len(chosen) > 0 && !chosen[e.LinkIndex] {",
		"if len(chosen) > 9 && !chosen[e.LinkIndex] {",
	}}},
	{"a shared entry goes with the first of its hosts", "Places", "dataplane/locate/pins.go", []edit{{
		"p.macs[s] > 1 {",
		"p.macs[s] > 9 {",
	}}},
}
