// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"strings"

	"github.com/gleam-rdma/gleam/mcast"
)

// The fast path in transcripts.

// fastName describes a step of a fast path or of its driver.
func (w *World) fastName(a action) string {
	sw := a.arg() & 3
	f := &w.switches[sw].fast
	switch {
	case a.kind() == fast && a.arg()&^3 == storeStep:
		return fmt.Sprintf("fast path of switch %d: packet %d is in the ring", sw, f.taken[len(f.taken)-1].index)
	case a.kind() == fast:
		return fmt.Sprintf("fast path of switch %d: the copies of packet %d leave", sw, f.unsent().index)
	case a.arg()&idleStep != 0:
		return fmt.Sprintf("driver of switch %d: the fast path is idle", sw)
	case len(f.todo) > 0:
		return fmt.Sprintf("driver of switch %d: %s", sw, [...]string{
			"reports", "gives the packet", "calls Advance", "takes the word back", "calls Revoked", "opens a gate", "shuts a gate", "asks for the fast path", "stores the word",
		}[f.todo[0].kind])
	}
	return fmt.Sprintf("driver of switch %d: looks", sw)
}

// clock records the time that has passed.
func (r *recorder) clock(w *World, sw int) {
	if later := w.now - r.now[sw]; later > 0 {
		r.now[sw] = w.now
		fmt.Fprintf(&r.text[sw], "clock +%v\n----\nnothing\n\n", later)
	}
}

// granted records a call of Offload.
func (r *recorder) granted(w *World, sw int, g *mcast.Grant, ok bool) {
	t := &r.text[sw]
	r.clock(w, sw)
	fmt.Fprint(t, "offload\n----\n")
	if !ok {
		fmt.Fprint(t, "not granted\n\n")
		return
	}
	fmt.Fprintf(t, "granted from %06x to %06x, mid-message %v\n", uint32(g.Nxt), uint32(g.Limit), g.MidMessage)
	r.orders(t, w, sw, &w.swOut)
	fmt.Fprintln(t)
}

func (r *recorder) orders(t *strings.Builder, w *World, sw int, o *mcast.Output) {
	if o.NeedRevoke {
		fmt.Fprintln(t, "take it back first")
	}
	for _, x := range o.Orders {
		switch x.Kind {
		case mcast.AskOffload:
			fmt.Fprintln(t, "order: ask for the fast path")
		case mcast.Revoke:
			fmt.Fprintln(t, "order: revoke")
		case mcast.OpenGate:
			fmt.Fprintf(t, "order: open the gate of %s at %06x\n", w.legName(sw, x.Leg), uint32(x.Next))
		case mcast.ShutGate:
			fmt.Fprintf(t, "order: shut the gate of %s\n", w.legName(sw, x.Leg))
		}
	}
}
