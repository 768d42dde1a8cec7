// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package store

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to tell what a kill -9 would undo.
var _ = []mutant.Mutant{
	mutant.New("an Accept leaves before the file has it", "outbox", mutant.In((*Outbox[int]).pass,
		"m.change > o.stored && (m.Promises || !o.failing)",
		"m.change > o.stored && !m.Promises")),
	mutant.New("a message waits for a change of any group", "outbox", mutant.In((*Outbox[int]).Release,
		"if m.change = o.changes[m.Group]; delay(m.Group) {",
		"for _, n := range o.changes {\nm.change = max(m.change, n)\n}\nif delay(m.Group) {")),
	mutant.New("a DREP waits for the registration alone", "outbox", mutant.In((*Outbox[int]).Release,
		"delay(m.Group)",
		"delay(m.Group) && false")),
	mutant.New("renewals wait for a file that cannot be written", "outbox", mutant.In((*Outbox[int]).pass,
		"(m.Promises || !o.failing)",
		"(m.Promises || o.failing || !o.failing)")),
	mutant.New("what need not wait has no room beside what waits", "outbox", mutant.In((*Outbox[int]).pass,
		"if o.forget(m); waits {",
		"if o.forget(m); waits || len(o.$1) == 4096 {", Outbox[int]{}.waiting)),
	mutant.New("no request is served while others' messages wait", "outbox", mutant.In((*Outbox[int]).HasRoom,
		"return o.byPort[port] < maxOutboxPerPort",
		"return o.byPort[port] < maxOutboxPerPort && len(o.$1) < 4096", Outbox[int]{}.waiting)),
	mutant.New("one port's requests take the whole outbox", "outbox", mutant.In((*Outbox[int]).HasRoom,
		"o.byPort[port] < maxOutboxPerPort",
		"o.byPort[port] < 16*maxOutboxPerPort")),
	mutant.New("messages wait without end", "outbox", mutant.In((*Outbox[int]).Expire,
		"case until > now:",
		"case until > 0:")),
	mutant.New("an eviction is told for 30 s, and then not", "outbox", mutant.In((*Outbox[int]).Expire,
		"case m.Lasts:",
		"case m.Lasts && false:")),
	mutant.New("the end of a large group keeps a port from being served", "outbox", mutant.In((*Outbox[int]).Add,
		"if !m.Lasts {",
		"if true {")),
	mutant.New("what has left counts still", "outbox", mutant.In((*Outbox[int]).forget,
		"o.byPort[m.Port]--; o.byPort[m.Port] == 0",
		"o.byPort[m.Port] == 0")),
}
