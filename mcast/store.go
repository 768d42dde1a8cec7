// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"math/bits"

	"github.com/gleam-rdma/gleam/rocev2"
)

// stored is a frame of the source that is kept, with what is needed to make
// copies of it for any leg.
type stored struct {
	va     uint64
	frame  Handle
	bytes  uint32 // what keeping it costs; 0: no frame
	how    rewriting
	ackReq bool
}

// budget is what all groups of a switch together may keep.
type budget struct{ limit, used int64 }

// store keeps the source's frames that some receiver may still need, so that a
// loss is repaired from here (R42). It is a ring by PSN, with holes where a
// frame was lost before the switch or did not fit.
type store struct {
	ring  []stored // by PSN modulo its length, a power of two: as much of size as was in flight
	low   rocev2.PSN
	whole rocev2.PSN // everything from here to hi-1 is there
	bytes int64
	limit int64
	high  int64 // the most it ever kept
	sw    *Switch
}

// Bounds of a store's ring. A frame costs no less than minStored bytes of packet
// memory, so a shorter ring than that would be the real limit; a requester has no
// more than 2^15 packets in flight that anybody has seen.
const (
	minStored = 1 << 11
	minRing   = 1 << 4
	maxRing   = 1 << 15
)

// size is the most PSNs that the ring spans.
func (s *store) size() int {
	return min(maxRing, 1<<bits.Len64(uint64(s.limit-1)/minStored))
}

// reach makes the ring span n PSNs, which are not more than size.
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
		psn := s.low.Add(int32(i))
		ring[uint32(psn)&uint32(size-1)] = *s.at(psn)
	}
	s.ring = ring
	s.sw.pools.stored.put(old)
}

// shrink gives back the ring. Nothing is kept.
func (s *store) shrink() {
	s.sw.pools.stored.put(s.ring)
	s.ring = nil
}

func (s *store) at(psn rocev2.PSN) *stored { return &s.ring[uint32(psn)&uint32(len(s.ring)-1)] }

// find returns the frame of psn, nil if it is not there.
func (s *store) find(psn rocev2.PSN) *stored {
	if d := psn.Sub(s.low); d < 0 || int(d) >= len(s.ring) {
		return nil
	}
	if e := s.at(psn); e.bytes > 0 {
		return e
	}
	return nil
}

// fits says whether another frame of so many bytes may be kept.
func (s *store) fits(bytes uint32) bool {
	return bytes > 0 && s.bytes+int64(bytes) <= s.limit && s.sw.repair.used+int64(bytes) <= s.sw.repair.limit
}

// could says whether a frame would fit if nothing else were in s.
func (s *store) could(bytes uint32) bool {
	return bytes > 0 && int64(bytes) <= s.limit && s.sw.repair.used-s.bytes+int64(bytes) <= s.sw.repair.limit
}

// take forgets e, if there is a frame, and lets go of it.
func (s *store) take(e *stored, out *Output) {
	if e.bytes == 0 {
		return
	}
	s.bytes -= int64(e.bytes)
	s.sw.repair.used -= int64(e.bytes)
	out.Release = append(out.Release, e.frame)
	*e = stored{}
}

// free lets go of everything below psn.
func (s *store) free(psn rocev2.PSN, out *Output) {
	n := int(psn.Sub(s.low))
	if n <= 0 {
		return
	}
	for i := range min(n, len(s.ring)) {
		s.take(s.at(s.low.Add(int32(i))), out)
	}
	s.low = psn
	if s.whole.Less(psn) {
		s.whole = psn
	}
}

// clear lets go of everything and begins anew at psn.
func (s *store) clear(psn rocev2.PSN, out *Output) {
	if s.bytes > 0 {
		for i := range s.ring {
			s.take(s.at(s.low.Add(int32(i))), out)
		}
	}
	s.low, s.whole = psn, psn
}

// keep stores the frame of p, which may be a newer one of a PSN that is there
// already: what was kept may have been corrupted. spare is up to where frames
// may be given up for it. It reports whether there was room. hi is the PSN after
// the highest forwarded one, before p.
func (s *store) keep(p *Packet, psn, hi, spare rocev2.PSN, how rewriting, out *Output) bool {
	if first := psn.Add(int32(1 - s.size())); s.could(p.Bytes) && s.low.Less(first) {
		s.free(rocev2.MinPSN(first, spare.Next()), out)
	}
	d := psn.Sub(s.low)
	ok := d >= 0 && int(d) < s.size()
	if ok {
		if int(d) < len(s.ring) {
			s.take(s.at(psn), out)
		}
		for s.could(p.Bytes) && !s.fits(p.Bytes) && s.low.LessEq(spare) && s.bytes > 0 {
			s.free(s.low.Next(), out)
		}
		ok = s.fits(p.Bytes)
	}
	if ok {
		s.reach(int(psn.Sub(s.low)) + 1)
		*s.at(psn) = stored{va: p.VA, frame: p.Frame, bytes: p.Bytes, how: how, ackReq: p.AckReq}
		s.bytes += int64(p.Bytes)
		s.sw.repair.used += int64(p.Bytes)
		s.high = max(s.high, s.bytes)
		out.Held = true
	}
	switch {
	case !hi.LessEq(psn): // not a new one: the hole may be closed, or a frame have gone
		if ok && psn.Next() == s.whole {
			s.whole = psn
			for s.low.Less(s.whole) && s.at(s.whole.Prev()).bytes > 0 {
				s.whole = s.whole.Prev()
			}
		} else if !ok && s.whole.LessEq(psn) {
			s.whole = psn.Next()
		}
	case !ok:
		s.whole = psn.Next()
	case hi.Less(psn):
		s.whole = psn
	}
	return ok
}
