// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// New data of a source behind another switch that waits, for the verification of receivers
// (R53) or for the file (R83), is held (R96): the packets from nxt on, in order and without a
// gap. When they wait no longer they are served as if they came then. To every other rule
// that is a delay of the link. What is not held is dropped, and requested from the source
// behind the rest.

// held has the packets of a group that wait. Their frames are retained within the budgets of
// the store.
type held struct {
	packets []Packet      `state:"own(heldPackets)"` // those before first were served
	first   int           `state:"derived"`
	bytes   int64         `state:"derived"`  // packet memory of the frames
	lost    bool          `state:"encoded"`  // a packet behind them was dropped
	serving bool          `state:"constant"` // a packet that was held is being served
	since   time.Duration `state:"time if c.g.is(holding)"`
}

// mayHold reports whether the group may have packets that it holds.
func (g *group) mayHold() bool {
	return g.repair.store != nil && g.numbering.interval > 0
}

// hold holds the source's new packet p, which was not served because of why, if it waits. It
// returns None if it does. Else the packet is dropped because of why.
func (g *group) hold(now time.Duration, p *Packet, why Reason, out *Output) Reason {
	if why != AwaitsVerification && why != AwaitsStorage || !g.mayHold() || g.src.neighbor == 0 {
		return why
	}
	s, psn := g.repair.store, p.PSN&rocev2.PSNMask
	h := &s.held
	n, next := len(h.packets), g.fwd.nxt
	if n != 0 {
		next = h.packets[n-1].PSN.Next() & rocev2.PSNMask
	}
	switch {
	case psn.Less(next):
		return why // the packet is held already
	case psn != next || n == s.size() || g.isTargetMessage(p) || !s.hasRoom(p.RetainBytes):
		h.lost = n != 0
		return why
	}
	if n == 0 {
		h.since = now
	}
	if n == cap(h.packets) {
		h.packets = s.sw.pools.held.resize(h.packets, max(minRing, 2*n))[:n]
	}
	h.packets = append(h.packets, *p)
	h.packets[n].PSN, h.packets[n].Targets = psn, nil
	s.countHeld(int64(p.RetainBytes))
	g.set(holding, true)
	out.Retained = true
	return None
}

// countHeld adds n to the bytes of the held frames.
func (s *store) countHeld(n int64) {
	s.held.bytes += n
	s.peakBytes = max(s.peakBytes, s.bytes+s.held.bytes)
	s.sw.repair.used += n
}

// mayRelease reports whether packets are held that wait no longer. Advance serves them: it has
// memory for their copies.
func (g *group) mayRelease() bool {
	return g.gates&(holding|blocked|unstored) == holding
}

// releaseHeld serves the held packets that wait no longer, as far as the caller has memory.
func (g *group) releaseHeld(now time.Duration, out *Output) {
	s := g.repair.store
	h := &s.held
	retained := out.Retained
	for g.mayRelease() && h.first < len(h.packets) && out.hasMemoryFor(int(g.recv.count)) {
		p := h.packets[h.first]
		h.first++
		s.countHeld(-int64(p.RetainBytes))
		direct, counted := len(out.Copies)-out.resends, g.counters.DataIn
		h.serving, out.Retained = true, false
		r := g.handleData(now, &p, p.Op.Flags(), out)
		h.serving, g.counters.DataIn = false, counted
		out.resends = len(out.Copies) - direct
		if g.is(holding) && (r == AwaitsVerification || r == AwaitsStorage) {
			h.first--
			s.countHeld(int64(p.RetainBytes))
			break
		}
		if !out.Retained {
			out.Freed = append(out.Freed, p.Frame)
		}
		if r != None {
			g.counters.rare().Drops[r]++
		}
	}
	out.Retained = retained
	if g.is(holding) && h.first == len(h.packets) { // else the turn has ended, or the group has failed
		if h.lost {
			g.set(asking, true)
		}
		g.dropHeld(out)
		g.evaluate(out)
	}
}

// dropHeld ends the hold, and frees the frames that were not served.
func (g *group) dropHeld(out *Output) {
	s := g.repair.store
	for i := s.held.first; i < len(s.held.packets); i++ {
		out.Freed = append(out.Freed, s.held.packets[i].Frame)
	}
	s.countHeld(-s.held.bytes)
	s.sw.pools.held.put(s.held.packets)
	s.held = held{}
	g.set(holding, false)
}

// hasMemoryFor reports whether the caller has memory for n copies more. The first copies of a
// call may be as many as a packet has receivers.
func (o *Output) hasMemoryFor(n int) bool {
	return !o.resendsExhausted() && (o.MaxResends == 0 || o.resends == 0 || o.resends+n <= o.MaxResends)
}
