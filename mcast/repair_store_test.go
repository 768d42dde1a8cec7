// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"slices"
	"testing"

	"github.com/gleam-rdma/gleam/rocev2"
)

// shelf is the obvious store: the retained frames by PSN.
type shelf struct {
	frames       map[rocev2.PSN]retained
	first, nxt   rocev2.PSN
	size         int
	limit, other int64 // other: free bytes of the switch beside those of the shelf
	longest      int   // the most PSNs that it has spanned
	peak         int64
	freed        []Handle
}

func (s *shelf) bytes() (n int64) {
	for _, e := range s.frames {
		n += int64(e.bytes)
	}
	return n
}

func (s *shelf) free(psn rocev2.PSN) {
	if e, ok := s.frames[psn]; ok {
		s.freed = append(s.freed, e.frame)
		delete(s.frames, psn)
	}
}

func (s *shelf) freeBelow(psn rocev2.PSN) {
	for ; s.first.Less(psn); s.first = s.first.Next() {
		s.free(s.first)
	}
}

func (s *shelf) room() int64 { return min(s.limit, s.other) }

// retain is store.retain, as R42 and R49 have it.
func (s *shelf) retain(psn, reclaimable rocev2.PSN, e retained) bool {
	n := int64(e.bytes)
	possible := n > 0 && n <= s.room()
	for possible && int(psn.Sub(s.first)) >= s.size && s.first.LessEq(reclaimable) {
		s.freeBelow(s.first.Next())
	}
	ok := false
	if d := int(psn.Sub(s.first)); d >= 0 && d < s.size {
		s.free(psn)
		for possible && s.bytes()+n > s.room() && s.first.LessEq(reclaimable) {
			s.freeBelow(s.first.Next())
		}
		if ok = n > 0 && s.bytes()+n <= s.room(); ok {
			s.frames[psn] = e
			s.longest = max(s.longest, d+1)
		}
	}
	s.nxt = rocev2.MaxPSN(s.nxt, psn.Next())
	s.peak = max(s.peak, s.bytes())
	return ok
}

// contiguousFrom is the lowest PSN from which on everything is retained.
func (s *shelf) contiguousFrom() rocev2.PSN {
	psn := s.nxt
	for s.first.Less(psn) && s.frames[psn.Prev()].bytes > 0 {
		psn = psn.Prev()
	}
	return rocev2.MaxPSN(psn, s.first)
}

// TestStoreIsAMap: after random frames are retained, freed and sent again, the store has the
// frames that a map of PSNs has, and frees the same ones in the same order.
func TestStoreIsAMap(t *testing.T) {
	for _, c := range []struct {
		limit, total, taken int64 // bytes: limits of the group and of the switch, and what other groups have taken
		begin               rocev2.PSN
		least, most         int // bytes of a frame
	}{
		{5 * minFrameBytes, 1 << 30, 0, 0, minFrameBytes, minFrameBytes},
		{64 * minFrameBytes, 1 << 30, 0, 0xFFFFF0, minFrameBytes, minFrameBytes},
		{64 * minFrameBytes, 100 * minFrameBytes, 90 * minFrameBytes, 0x7FFFF0, 0, 3 * minFrameBytes},
		{40 * minFrameBytes, 1 << 30, 0, 0xFFFFE0, 1, 2}, // the ring is the limit
		{9000, 9000, 2000, 5, 0, 9100},
		{minFrameBytes, 1 << 30, 0, 0xFFFFFE, 100, minFrameBytes + 1},
		{2 * minFrameBytes, 1 << 30, 0, 9, 2 * minFrameBytes, 2 * minFrameBytes}, // one frame fills it
		{3 * minFrameBytes, 2 * minFrameBytes, 0, 9, 2 * minFrameBytes, 2 * minFrameBytes},
		{100 * minFrameBytes, 1 << 30, 77, 0xFFFF00, 0, 2 * minFrameBytes},
	} {
		for seed := range uint64(6) {
			rng := random(seed)
			sw := &Switch{repair: budget{limit: c.total, used: c.taken}}
			s := &store{sw: sw, limit: c.limit}
			size := 1
			for int64(size)*minFrameBytes < c.limit {
				size *= 2
			}
			x := &shelf{frames: map[rocev2.PSN]retained{}, size: size, limit: c.limit, other: c.total - c.taken, first: c.begin, nxt: c.begin}
			var out Output
			s.reset(c.begin, &out)
			acked := c.begin.Prev()
			for step := range 400 {
				out.reset()
				x.freed = nil
				switch rng(8) {
				case 0: // some are acknowledged
					acked = acked.Add(int32(rng(int(x.nxt.Sub(acked)))))
					s.freeBelow(acked.Next(), &out)
					x.freeBelow(acked.Next())
				case 1: // under a quorum, some are acknowledged but still needed
					acked = acked.Add(int32(rng(int(x.nxt.Sub(acked)))))
				case 2:
					if rng(12) == 0 {
						s.reset(x.nxt, &out)
						x.freeBelow(x.nxt)
						acked = x.nxt.Prev()
					}
				case 3: // the source goes back
					psn := acked.Add(1 + int32(rng(int(x.nxt.Sub(acked)))))
					retainBoth(t, s, x, psn, acked, &out, step, c.least, c.most, rng)
				default:
					retainBoth(t, s, x, x.nxt.Add(int32(rng(9)/8*rng(4))), acked, &out, step, c.least, c.most, rng)
				}
				compareStores(t, x, s, sw.repair.used-c.taken, &out, step)
			}
			n := min(minRing, size)
			for n < x.longest {
				n *= 2
			}
			if len(s.ring) != n {
				t.Errorf("%d slots for %d PSNs of at most %d", len(s.ring), x.longest, size)
			}
			s.reset(x.nxt, &out)
			if s.shrink(); s.ring != nil || sw.repair.used != c.taken || s.find(x.nxt) != nil {
				t.Errorf("%d slots, %d bytes in the end", len(s.ring), sw.repair.used-c.taken)
			}
		}
	}
}

// retainBoth gives both the same frame.
func retainBoth(t *testing.T, s *store, x *shelf, psn, reclaimable rocev2.PSN, out *Output, step, least, most int, rng func(int) int) {
	t.Helper()
	e := retained{
		va: uint64(rng(1000)), frame: Handle(step), bytes: uint32(least + rng(most-least+1)), rewrite: rewriteKind(rng(5)), ackReq: rng(2) == 0,
	}
	e.passedAt = rocev2.MaxPSN(psn, x.nxt)
	if old, ok := x.frames[psn]; ok {
		e.passedAt = old.passedAt
	}
	p := Packet{PSN: psn, VA: e.va, Frame: e.frame, RetainBytes: e.bytes, AckReq: e.ackReq}
	hi := x.nxt
	want := x.retain(psn, reclaimable, e)
	if got := s.retain(&p, psn, hi, reclaimable, e.rewrite, out); got != want || out.Retained != want {
		t.Fatalf("step %d: frame of %d bytes is retained: %v, %v, want %v", step, e.bytes, got, out.Retained, want)
	}
}

func compareStores(t *testing.T, x *shelf, s *store, used int64, out *Output, step int) {
	t.Helper()
	if !slices.Equal(out.Freed, x.freed) {
		t.Fatalf("step %d: freed %v, want %v", step, out.Freed, x.freed)
	}
	if s.first != x.first || s.bytes != x.bytes() || used != s.bytes || s.peakBytes != x.peak {
		t.Fatalf("step %d: from %06x %d bytes (%d of the switch's), %d at most; want from %06x %d bytes, %d at most", step, uint32(s.first), s.bytes, used, s.peakBytes, uint32(x.first), x.bytes(), x.peak)
	}
	if want := x.contiguousFrom(); s.contiguousFrom != want {
		t.Fatalf("step %d: contiguous from %06x, want %06x (first %06x, nxt %06x)", step, uint32(s.contiguousFrom), uint32(want), uint32(x.first), uint32(x.nxt))
	}
	for psn := x.first.Add(-20); psn != x.nxt.Add(20); psn = psn.Next() {
		want, ok := x.frames[psn]
		if e := s.find(psn); (e != nil) != ok || ok && *e != want {
			t.Fatalf("step %d: %06x is %+v, want %+v, %v", step, uint32(psn), e, want, ok)
		}
	}
}
