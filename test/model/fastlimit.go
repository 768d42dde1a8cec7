// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/model/notation"
)

// The limit that the programs move, and what the switch is told of at once (R114). The programs go on although
// nobody reports, and write slots of packets that were not reported. No packet is reported, and no copy made
// of one, that has left the ring.

// moveLimit has a program that has read all words move the limit. It returns false if that changes nothing.
func (w *World) moveLimit(f *program, s *scan) bool {
	to := s.lowest.Add(int32(w.cfg.FastPath))
	if !s.moves || !f.moves || f.limit != s.limit || !f.limit.Less(to) {
		return false
	}
	f.limit, s.moves = to, false
	return true
}

// haveLimitMoved has the driver have the programs move the limit, if it is not about to.
func (w *World) haveLimitMoved(f *program) {
	if !f.mayMove() {
		f.todo = append(f.todo, chore{kind: openLimit})
	}
}

// mayMove reports whether the programs may move the limit when the driver has done what it has to do.
func (f *program) mayMove() bool {
	return f.acks.moved || slices.ContainsFunc(f.todo, func(c chore) bool { return c.kind == openLimit })
}

// lowest returns what all legs have, as the driver has read the words.
func (f *program) lowest() (low rocev2.PSN, any bool) {
	for l := range f.acks.words {
		if x := &f.acks.words[l]; x.leg && (!any || x.read.Less(low)) {
			low, any = x.read, true
		}
	}
	return low, any
}

// nextReport returns the first packet that the driver has not reported.
func (f *program) nextReport() rocev2.PSN {
	for i := range f.taken {
		if !f.taken[i].reported {
			return f.taken[i].psn
		}
	}
	return f.hi
}

// tellCovered tells the switch of what all have and it was not told of. If there is nothing, everything is reported.
func (w *World) tellCovered(sw int) {
	f := &w.switches[sw].fast
	low, any := f.lowest()
	switch next := f.nextReport(); {
	case next == f.hi:
		w.tellWords(sw)
	case any && f.inRing(w, low) && w.cover(sw, low):
	default:
		f.todo = append(w.reports(f), f.todo...)
	}
}

// coverAll is what comes before the driver reports everything.
func (w *World) coverAll(sw int) {
	f := &w.switches[sw].fast
	if !f.acks.moved || w.cfg.faultyACKs.behind {
		f.acks.moved = false
		return
	}
	f.acks.moved = false
	if low, any := f.lowest(); any && !low.Less(f.nextReport()) {
		w.checkRing(sw, low, "what all have is told")
		w.cover(sw, low)
	}
}

// cover tells the switch of the packets up to last, which all have. It returns false if it was told of last.
func (w *World) cover(sw int, last rocev2.PSN) bool {
	r := &w.switches[sw]
	f := &r.fast
	if last.Less(f.nextReport()) || !last.Less(f.hi) {
		return false
	}
	var c mcast.Covered
	src := int(f.source)
	from := f.nextReport()
	for i := range f.taken {
		if t := &f.taken[i]; t.psn == last {
			c.Last = w.inputOf(sw, int(t.link), t.packet)
		}
	}
	st := &w.streams[src]
	c.Ends = uint32(st.messagesIn(w.count(src, last)) - st.messagesIn(w.count(src, from)-1))
	sent := mcast.SentACK{PSN: f.acks.sent.read}
	var legs []mcast.LegACK
	text := fmt.Sprintf("covered psn=%s op=%s ends=%d", notation.PSN(last), opNames[c.Last.Op], c.Ends)
	if c.Last.DMALen > 0 {
		text += fmt.Sprintf(" dma=%x", c.Last.DMALen)
	}
	for l := range f.acks.words {
		if x := &f.acks.words[l]; x.leg {
			legs = append(legs, mcast.LegACK{Leg: mcast.LegID(l), Acked: last, Count: 1, At: x.at})
			if x.told = last; x.acked == last {
				x.at = 0
			}
		}
	}
	if f.acks.sent.read != f.acks.sent.told {
		text += " sent=" + notation.PSN(f.acks.sent.read)
	}
	f.acks.sent.told = f.acks.sent.read
	for i := range f.taken {
		if t := &f.taken[i]; t.psn.LessEq(last) {
			t.stored, t.reported = true, true
		}
	}
	if w.recorder != nil {
		w.stepOp = text
	}
	ok := false
	w.callSwitch(sw, func(r *switchState) { ok = r.dev.InputCovered(w.now, 0, &c, legs, sent, &w.swOut) })
	w.stepOp = ""
	if !ok {
		w.fault(sw, "the switch does not skip what all have, up to packet %s", notation.PSN(last))
	}
	f.forget()
	return true
}

// inRing reports whether the ring has a packet that the program has taken in this grant.
func (f *program) inRing(w *World, psn rocev2.PSN) bool { return int(f.hi.Sub(psn)) <= w.cfg.FastPath }

// checkRing checks that the ring has a packet of which something is made.
func (w *World) checkRing(sw int, psn rocev2.PSN, what string) {
	if f := &w.switches[sw].fast; !w.cfg.ACKs || !f.acks.granted.Less(psn.Next()) || !psn.Less(f.hi) || f.inRing(w, psn) {
		return
	}
	w.fault(sw, "%s of packet %s, which has left the ring", what, notation.PSN(psn))
}
