// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	"github.com/gleam-rdma/gleam/mcast"
)

// How the driver of a fast path asks for it, obeys orders about it, and takes it back.

// askOffload asks the switch for the fast path, if the driver has nothing left of the group.
func (w *World) askOffload(sw int) {
	r := &w.switches[sw]
	f := &r.fast
	if f.on || len(f.queue) > 0 || len(f.todo) > 0 || f.unreported() {
		return
	}
	g, ok := r.dev.Offload(w.now, 0, &w.swOut)
	if w.recorder != nil {
		w.recorder.granted(w, sw, &g, ok)
	}
	if !ok {
		return
	}
	w.snapshot(sw, &w.after)
	f.hi, f.limit, f.source = g.Nxt, g.Limit, uint8(w.after.Source)
	f.acks.granted, f.acks.before = g.Nxt, g.Messages
	if w.cfg.ACKs {
		w.setWords(sw)
	}
	clear(f.gates)
	for _, o := range w.swOut.Orders {
		f.gates[o.Leg] = gate{true, o.Next, o.Delta}
	}
	f.todo = append(f.todo, chore{kind: storeWord})
}

// takeOrders has the driver carry out the orders of the last call.
func (w *World) takeOrders(sw int) {
	r := &w.switches[sw]
	f := &r.fast
	for _, o := range w.swOut.Orders {
		c := chore{leg: uint8(o.Leg)}
		switch o.Kind {
		case mcast.AskOffload:
			if c.kind = askOffload; slices.ContainsFunc(f.todo, func(c chore) bool { return c.kind == askOffload }) {
				continue
			}
		case mcast.Revoke:
			if slices.ContainsFunc(f.todo, func(c chore) bool { return c.kind == takeBack }) {
				continue
			}
			cs := w.takesBack(f)
			f.todo = append(f.todo, cs...)
			continue
		case mcast.OpenGate:
			c.kind, c.next, c.by = openGate, o.Next, o.Delta
		case mcast.ShutGate:
			c.kind = shutGate
		}
		f.todo = append(f.todo, c)
	}
	if f.on {
		if !f.acks.moved {
			f.limit = r.dev.Group(0).OffloadLimit()
		}
		w.judgeACKs(sw)
	}
}

// recall takes the fast path back at once, before the control plane changes the group, or a
// neighbour's report arrives.
func (w *World) recall(sw int) {
	f := &w.switches[sw].fast
	if f.on || slices.ContainsFunc(f.todo, func(c chore) bool { return c.kind == callRevoked || c.kind == storeWord }) {
		f.todo = slices.DeleteFunc(f.todo, func(c chore) bool { return c.kind == storeWord })
		f.on, f.moves = false, false
		for _, c := range f.closes() {
			if c.kind == closeWord {
				f.closeWord(int(c.leg))
			}
		}
		w.report1(sw)
		w.tellWords(sw)
		w.revoked(sw)
	}
	if f.acks.scanning() {
		f.acks.tables++
	}
}

func (w *World) revoked(sw int) {
	w.stepOp = "revoked"
	w.callSwitch(sw, func(r *switchState) { r.dev.Revoked(w.now, 0, &w.swOut) })
	w.stepOp = ""
}
