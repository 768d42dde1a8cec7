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
}
