// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/test/model/notation"
)

// The fast path in transcripts.

// fastName describes a step of a fast path or of its driver.
func (w *World) fastName(a action) string {
	sw := a.arg() & 3
	f := &w.switches[sw].fast
	switch {
	case a.kind() == fast && a.arg()&^3 == storeStep:
		return fmt.Sprintf("fast path of switch %d: packet %d is in the ring", sw, f.taken[len(f.taken)-1].index)
	case a.kind() == fast && a.arg()&^3 >= scanStep:
		s := &f.acks.scans[(a.arg()&^3-scanStep)/4]
		switch {
		case s.answered:
			return fmt.Sprintf("fast path of switch %d: ACK %s leaves", sw, notation.PSN(s.lowest))
		case int(s.at) < len(f.acks.words):
			return fmt.Sprintf("fast path of switch %d: a program reads the words from leg %d on", sw, s.at)
		}
		return fmt.Sprintf("fast path of switch %d: a program has read all words", sw)
	case a.kind() == fast:
		return fmt.Sprintf("fast path of switch %d: the copies of packet %d leave", sw, f.unsent().index)
	case a.arg()&idleStep != 0:
		return fmt.Sprintf("driver of switch %d: the fast path is idle", sw)
	case len(f.todo) > 0:
		return fmt.Sprintf("driver of switch %d: %s", sw, [...]string{
			"reports", "gives the packet", "calls Advance", "takes the word back", "calls Revoked", "opens a gate", "shuts a gate", "asks for the fast path", "stores the word",
			"reads the words of ACKs", "tells of the words of ACKs", "closes a word of ACKs", "opens the words of ACKs",
			"has the limit stay", "has the programs move the limit", "tells of what all have",
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
	fmt.Fprintf(t, "granted from %s to %s, mid-message %v\n", notation.PSN(g.Nxt), notation.PSN(g.Limit), g.MidMessage)
	for _, line := range r.orders(w, sw, &w.swOut) {
		fmt.Fprintln(t, line)
	}
	fmt.Fprintln(t)
}

func (r *recorder) orders(w *World, sw int, o *mcast.Output) (lines []string) {
	if o.NeedRevoke {
		lines = append(lines, "take it back first")
	}
	for _, x := range o.Orders {
		switch x.Kind {
		case mcast.AskOffload:
			lines = append(lines, "order: ask for the fast path")
		case mcast.Revoke:
			lines = append(lines, "order: revoke")
		case mcast.OpenGate:
			lines = append(lines, fmt.Sprintf("order: open the gate of %s at %s", w.legName(sw, x.Leg), notation.PSN(x.Next)))
		case mcast.ShutGate:
			lines = append(lines, "order: shut the gate of "+w.legName(sw, x.Leg))
		}
	}
	return lines
}
