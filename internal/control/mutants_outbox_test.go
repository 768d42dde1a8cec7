// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"github.com/gleam-rdma/gleam/internal/control/location"
	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Wrong ways to send answers to whoever the kernel has for the host that asked.
var _ = []mutant.Mutant{
	mutant.New("answers go where the kernel has the host", "Answer", mutant.In((*control).origin,
		"case proved:",
		"case false:")),
	mutant.New("a Challenge goes to whoever asks", "Answer", mutant.In((*control).origin,
		"d, key, proved := c.dir, m.Body.packet.Key, m.Body.asker.proved",
		"d, key, proved := c.dir, m.Body.packet.Key, true")),
	mutant.New("a recorded request leads its answer away from the host's place", "Answer", mutant.In((*control).origin,
		`if key == 0 && !proved {
			return at, false
		}
		h := d.hosts.Of(m.Body.packet.Dst.Addr())
		if h != nil {
			if g := d.groups[m.Group]; g != nil {
				if _, is := g.hostSlot(h.IP()); is {
					return at, false
				}
			}
			if place, has := h.Place(key); has {`,
		`if key == 0 && !proved {
			return at, false
		}
		h := d.hosts.Of(m.Body.packet.Dst.Addr())
		if h != nil {
			if g := d.groups[m.Group]; g != nil {
				if _, is := g.hostSlot(h.IP()); is {
					return at, false
				}
			}
			if place, has := h.Place(key); has && !proved {`)),
	mutant.New("hosts with a place under the key are challenged where another key's holder has them", "Answer", mutant.In((*control).origin,
		`if key == 0 && !proved {
			return at, false
		}
		h := d.hosts.Of(m.Body.packet.Dst.Addr())
		if h != nil {
			if g := d.groups[m.Group]; g != nil {
				if _, is := g.hostSlot(h.IP()); is {
					return at, false
				}
			}
			if place, has := h.Place(key); has {`,
		`if key == 0 && !proved {
			return at, false
		}
		h := d.hosts.Of(m.Body.packet.Dst.Addr())
		if h != nil {
			if g := d.groups[m.Group]; g != nil {
				if _, is := g.hostSlot(h.IP()); is {
					return at, false
				}
			}
			if place, has := h.Place(key); has && proved {`)),
	mutant.New("the end of a group is told where another key's holder has the member", "Answer", mutant.In((*control).origin,
		"at = d.hosts.Origin(h.LeftFrom(key, c.now()))",
		"at = d.hosts.Origin(h.$1())", (*location.Host).At)),
	mutant.New("an Ack counts from where another key's holder has the member", "Answer", mutant.In((*directory).memberLocation,
		"return h.LeftFrom(key, d.now()), false",
		"return h.$1(), false", (*location.Host).Pinned)),
}

// Wrong ways to tell what a kill -9 would undo.
var _ = []mutant.Mutant{
	mutant.New("a REQ that is refused is kept", "outbox", mutant.In((*control).sendConnections,
		"if e.Refused {\n\t\t\tcontinue",
		"if e.Refused && false {\n\t\t\tcontinue")),
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
		"err := c.keeper.Flush(); err != nil",
		"err := c.keeper.Flush(); err != nil && false")),
	mutant.NewForRoot("a turn waits for the next try to write the file", "R83", mutant.In((*control).storePositions,
		"if c.keeper.Failing() {",
		"if c.keeper.Failing() && false {")),
}
