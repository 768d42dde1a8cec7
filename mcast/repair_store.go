// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"math/bits"

	"github.com/gleam-rdma/gleam/rocev2"
)

// retained is a retained frame of the source, with the fields that a copy for any leg
// needs.
type retained struct {
	va       uint64      `state:"encoded"`
	frame    Handle      `state:"encoded"`
	bytes    uint32      `state:"encoded"` // packet memory that the frame takes; 0: no frame
	passedAt rocev2.PSN  `state:"encoded"` // nxt when the PSN first passed: its own, or a higher one if it came late (R106)
	rewrite  rewriteKind `state:"encoded"`
	ackReq   bool        `state:"encoded"`
}

// budget is the packet memory, in bytes, that all groups of a switch together may retain.
type budget struct{ limit, used int64 }

// store retains the source's frames that some receiver may still need, so that a loss is
// repaired from here (R42). It is a ring by PSN, with holes where a frame was lost before
// the switch or did not fit.
type store struct {
	ring           []retained `state:"own(frames)"` // the frames, by PSN modulo its length, a power of two that grows with what is in flight, up to size
	first          rocev2.PSN `state:"encoded"`     // the lowest PSN that the ring spans
	contiguousFrom rocev2.PSN `state:"encoded"`     // everything from here to nxt-1 is retained
	bytes          int64      `state:"derived"`     // packet memory of the retained frames
	limit          int64      `state:"constant"`    // maximum of bytes
	peakBytes      int64      `state:"ignored"`     // the highest value of bytes
	held           held       `state:"encoded if c.g.mayHold() else held{}"`
	sw             *Switch    `state:"constant"`
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
