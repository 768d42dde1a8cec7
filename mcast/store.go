// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"math/bits"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// retained is a retained frame of the source, with the fields that a copy for any leg
// needs.
type retained struct {
	va       uint64
	frame    Handle
	bytes    uint32     // packet memory that the frame takes; 0: no frame
	passedAt rocev2.PSN // nxt when the PSN first passed: its own, or a higher one if it came late (R106)
	rewrite  rewriteKind
	ackReq   bool
}

// budget is the packet memory, in bytes, that all groups of a switch together may retain.
type budget struct{ limit, used int64 }

// store retains the source's frames that some receiver may still need, so that a loss is
// repaired from here (R42). It is a ring by PSN, with holes where a frame was lost before
// the switch or did not fit.
type store struct {
	ring           []retained // by PSN modulo its length, a power of two that grows with what is in flight, up to size
	first          rocev2.PSN // the lowest PSN that the ring spans
	contiguousFrom rocev2.PSN // everything from here to nxt-1 is retained
	bytes          int64      // packet memory of the retained frames
	limit          int64      // of bytes
	peakBytes      int64      // the highest value of bytes
	held           held
	sw             *Switch
}

// Bounds of a store's ring. A frame takes at least minFrameBytes bytes of packet memory,
// so the ring has a slot for each minFrameBytes of the limit: a shorter ring would be the
// real limit. No known requester has more than 2^15 packets in flight.
const (
	minFrameBytes = 1 << 11
	minRing       = 1 << 4
	maxSlots      = 1 << 15
)

// size is the most PSNs that the ring spans.
func (s *store) size() int {
	return min(maxSlots, 1<<bits.Len64(uint64(s.limit-1)/minFrameBytes))
}

// reach makes the ring span n PSNs, at most size.
func (s *store) reach(n int) {
	if n <= len(s.ring) {
		return
	}
	size := min(minRing, s.size())
	for size < n {
		size *= 2
	}
	ring, old := s.sw.pools.stored.get(size), s.ring
	for i := range old {
		psn := s.first.Add(int32(i))
		ring[uint32(psn)&uint32(size-1)] = *s.at(psn)
	}
	s.ring = ring
	s.sw.pools.stored.put(old)
}

// shrink gives back the ring. Nothing is retained.
func (s *store) shrink() {
	s.sw.pools.stored.put(s.ring)
	s.ring = nil
}

func (s *store) at(psn rocev2.PSN) *retained { return &s.ring[uint32(psn)&uint32(len(s.ring)-1)] }

// find returns the frame of psn; nil if it is not retained.
func (s *store) find(psn rocev2.PSN) *retained {
	if d := psn.Sub(s.first); d < 0 || int(d) >= len(s.ring) {
		return nil
	}
	if e := s.at(psn); e.bytes != 0 {
		return e
	}
	return nil
}

// hasRoom reports whether another frame of that size may be retained.
func (s *store) hasRoom(bytes uint32) bool {
	return bytes != 0 && s.bytes+s.held.bytes+int64(bytes) <= s.limit && s.sw.repair.used+int64(bytes) <= s.sw.repair.limit
}

// couldFit reports whether a frame would fit if nothing else were in s.
func (s *store) couldFit(bytes uint32) bool {
	return bytes != 0 && int64(bytes) <= s.limit && s.sw.repair.used-s.bytes+int64(bytes) <= s.sw.repair.limit
}

// evictSlot frees the frame in slot e, if there is one.
func (s *store) evictSlot(e *retained, out *Output) {
	if e.bytes == 0 {
		return
	}
	s.bytes -= int64(e.bytes)
	s.sw.repair.used -= int64(e.bytes)
	out.Freed = append(out.Freed, e.frame)
	*e = retained{}
}

// freeBelow frees the frames below psn.
func (s *store) freeBelow(psn rocev2.PSN, out *Output) {
	for i := range min(psn.Sub(s.first), int32(len(s.ring))) {
		s.evictSlot(s.at(s.first.Add(i)), out)
	}
	s.first, s.contiguousFrom = rocev2.MaxPSN(s.first, psn), rocev2.MaxPSN(s.contiguousFrom, psn)
}

// reset frees all frames and begins anew at psn.
func (s *store) reset(psn rocev2.PSN, out *Output) {
	if s.bytes != 0 {
		for i := range s.ring {
			s.evictSlot(s.at(s.first.Add(int32(i))), out)
		}
	}
	s.first, s.contiguousFrom = psn, psn
}

// retain stores the frame of p. It replaces a frame of the same PSN, which may have been
// corrupted. Frames up to reclaimable may be freed to make room. It reports whether there
// was room. hi is the group's nxt before p.
func (s *store) retain(p *Packet, psn, hi, reclaimable rocev2.PSN, rewrite rewriteKind, out *Output) bool {
	if first := psn.Add(int32(1 - s.size())); s.couldFit(p.RetainBytes) && s.first.Less(first) {
		s.freeBelow(rocev2.MinPSN(first, reclaimable.Next()), out)
	}
	d, passedAt := psn.Sub(s.first), rocev2.MaxPSN(hi, psn)
	ok := d >= 0 && int(d) < s.size()
	if ok {
		if old := s.find(psn); old != nil {
			passedAt = old.passedAt
			s.evictSlot(old, out)
		}
		for s.couldFit(p.RetainBytes) && !s.hasRoom(p.RetainBytes) && s.first.LessEq(reclaimable) {
			s.freeBelow(s.first.Next(), out)
		}
		ok = s.hasRoom(p.RetainBytes)
	}
	if ok {
		s.reach(int(psn.Sub(s.first)) + 1)
		*s.at(psn) = retained{va: p.VA, frame: p.Frame, bytes: p.RetainBytes, passedAt: passedAt, rewrite: rewrite, ackReq: p.AckReq}
		s.bytes += int64(p.RetainBytes)
		s.sw.repair.used += int64(p.RetainBytes)
		s.peakBytes = max(s.peakBytes, s.bytes)
		out.Retained = true
	}
	switch {
	case !hi.LessEq(psn): // not a new PSN: a hole may be closed, or a frame freed
		if ok && psn.Next() == s.contiguousFrom {
			s.contiguousFrom = psn
			for s.first.Less(s.contiguousFrom) && s.at(s.contiguousFrom.Prev()).bytes != 0 {
				s.contiguousFrom = s.contiguousFrom.Prev()
			}
		} else if !ok && s.contiguousFrom.LessEq(psn) {
			s.contiguousFrom = psn.Next()
		}
	case !ok:
		s.contiguousFrom = psn.Next()
	case hi.Less(psn):
		s.contiguousFrom = psn
	}
	return ok
}

// New data of a source behind another switch that waits, for the verification of receivers
// (R53) or for the file (R83), is held (R96): the packets from nxt on, in order and without a
// gap. When they wait no longer they are served as if they came then. To every other rule
// that is a delay of the link. What is not held is dropped, and requested from the source
// behind the rest.

// held has the packets of a group that wait. Their frames are retained within the budgets of
// the store.
type held struct {
	packets []Packet // those before first were served
	first   int
	bytes   int64 // packet memory of the frames
	lost    bool  // a packet behind them was dropped
	serving bool  // a packet that was held is being served
	since   time.Duration
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
		return why // it is held already
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
