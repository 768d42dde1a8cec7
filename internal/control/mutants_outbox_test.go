// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to send answers to whoever the kernel has for the host that asked.
var _ = []mutant.Mutant{
	mutant.New("answers go where the kernel has the host", "Answer", mutant.In((*control).origin,
		"case proved:",
		"case false:")),
	mutant.New("a Challenge goes to whoever asks", "Answer", mutant.In((*control).origin,
		"d, key, proved := c.dir, m.packet.Key, m.asker.proved",
		"d, key, proved := c.dir, m.packet.Key, true")),
	mutant.New("a recorded request leads its answer away from the host's place", "Answer", mutant.In((*control).origin,
		`if key == 0 && !proved {
			return at, false
		}
		h := d.hosts.byIP[m.packet.Dst.Addr()]
		if h != nil {
			if g := d.groups[m.group]; g != nil {
				if _, is := g.hosts[h.ip]; is {
					return at, false
				}
			}
			if p := h.places[key]; p != nil {`,
		`if key == 0 && !proved {
			return at, false
		}
		h := d.hosts.byIP[m.packet.Dst.Addr()]
		if h != nil {
			if g := d.groups[m.group]; g != nil {
				if _, is := g.hosts[h.ip]; is {
					return at, false
				}
			}
			if p := h.places[key]; p != nil && !proved {`)),
	mutant.New("hosts with a place under the key are challenged where another key's holder has them", "Answer", mutant.In((*control).origin,
		`if key == 0 && !proved {
			return at, false
		}
		h := d.hosts.byIP[m.packet.Dst.Addr()]
		if h != nil {
			if g := d.groups[m.group]; g != nil {
				if _, is := g.hosts[h.ip]; is {
					return at, false
				}
			}
			if p := h.places[key]; p != nil {`,
		`if key == 0 && !proved {
			return at, false
		}
		h := d.hosts.byIP[m.packet.Dst.Addr()]
		if h != nil {
			if g := d.groups[m.group]; g != nil {
				if _, is := g.hosts[h.ip]; is {
					return at, false
				}
			}
			if p := h.places[key]; p != nil && proved {`)),
	mutant.New("the end of a group is told where another key's holder has the member", "Answer", mutant.In((*control).origin,
		"left := h.leftFrom(key, c.now())",
		"left := h.$1", host{}.location)),
	mutant.New("an Ack counts from where another key's holder has the member", "Answer", mutant.In((*directory).memberLocation,
		"return h.leftFrom(key, d.now()), false",
		"return h.$1, false", host{}.pinned)),
}

// Wrong ways to tell what a kill -9 would undo.
var _ = []mutant.Mutant{
	mutant.New("an Accept leaves before the file has it", "outbox", mutant.In((*outbox).pass,
		"m.change > o.stored && (m.promises || !o.failing)",
		"m.change > o.stored && !m.promises")),
	mutant.New("a message waits for a change of any group", "outbox", mutant.In((*outbox).release,
		"if m.change = o.changes[m.group]; delay(m.group) {",
		"for _, n := range o.changes {\nm.change = max(m.change, n)\n}\nif delay(m.group) {")),
	mutant.New("a DREP waits for the registration alone", "outbox", mutant.In((*outbox).release,
		"delay(m.group)",
		"delay(m.group) && false")),
	mutant.New("renewals wait for a file that cannot be written", "outbox", mutant.In((*outbox).pass,
		"(m.promises || !o.failing)",
		"(m.promises || o.failing || !o.failing)")),
	mutant.New("what is promised leaves when the file cannot be written", "outbox", mutant.In((*outbox).pass,
		"(m.promises || !o.failing)",
		"!o.failing")),
	mutant.New("the outbox has no bound", "outbox", mutant.In((*outbox).pass,
		"waits && len(keep) < maxOutbox",
		"waits")),
	mutant.New("what need not wait has no room beside what waits", "outbox", mutant.In((*outbox).pass,
		"if o.forget(m); waits {",
		"if o.forget(m); waits || len(o.$1) == 4096 {", outbox{}.waiting)),
	mutant.New("no request is served while others' messages wait", "outbox", mutant.In((*outbox).hasRoom,
		"return o.byPort[port] < maxOutboxPerPort",
		"return o.byPort[port] < maxOutboxPerPort && len(o.$1) < 4096", outbox{}.waiting)),
	mutant.New("one port's requests take the whole outbox", "outbox", mutant.In((*outbox).hasRoom,
		"o.byPort[port] < maxOutboxPerPort",
		"o.byPort[port] < 16*maxOutboxPerPort")),
	mutant.New("messages wait without end", "outbox", mutant.In((*outbox).expire,
		"case until > now:",
		"case until > 0:")),
	mutant.New("an eviction is told for 30 s, and then not", "outbox", mutant.In((*outbox).expire,
		"case m.lasts:",
		"case m.lasts && false:")),
	mutant.New("the end of a large group keeps a port from being served", "outbox", mutant.In((*outbox).add,
		"if !m.lasts {",
		"if true {")),
	mutant.New("what has left counts still", "outbox", mutant.In((*outbox).forget,
		"o.byPort[m.port]--; o.byPort[m.port] == 0",
		"o.byPort[m.port] == 0")),
	mutant.New("a REQ that is refused is kept", "outbox", mutant.In((*control).sendConnections,
		"if e.Refused {",
		"if e.Refused && false {")),
	mutant.New("a registration that is refused is kept", "outbox", mutant.In((*control).report,
		"if e.Kind != envelope.RegistrationFailed || c.dir.groups[e.Group] != nil {",
		"if true {")),
	mutant.New("members are taken while the file cannot be written", "outbox", mutant.In((*directory).check,
		"d.defaults.psnProbe != 0 && d.storageFails() && d.adds(r)",
		"d.defaults.psnProbe != 0 && d.storageFails() && d.adds(r) && false")),
	mutant.New("no member leaves while the file cannot be written", "outbox", mutant.In((*directory).check,
		"d.defaults.psnProbe != 0 && d.storageFails() && d.adds(r)",
		"d.defaults.psnProbe != 0 && d.storageFails()")),
	mutant.New("an operator is not told that a restart undoes a command", "outbox", mutant.In((*Engine).durable,
		"err := c.keeper.file.Flush(); err != nil",
		"err := c.keeper.file.Flush(); err != nil && false")),
	mutant.NewForRoot("a turn waits for the next try to write the file", "R83", mutant.In((*control).storePositions,
		"if c.keeper.file.Failing() {",
		"if c.keeper.file.Failing() && false {")),
}
