// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import "github.com/gleam-rdma/gleam/dataplane/xsk"

// fillChunk is the least number of frames given to the kernel at a time: each update of
// the ring's shared index costs a cache line, the frames cost none.
const fillChunk = 32

// frameSupply is a worker's free frames, and how they are shared between the fill rings
// and the worker's own use: fillReserve entries of each fill ring stay empty, so that at
// most half of all frames are there.
type frameSupply struct {
	umem        *xsk.Umem
	pool        *xsk.Pool
	addrs       []uint64 // scratch
	fill        int      // entries of each fill ring
	fillReserve int      // the entries of each fill ring that are left empty
	starved     bool     // true: there were too few free frames to fill a fill ring
}

// newFrameSupply makes a supply for a worker whose rings have at most ring entries. All
// workers together fill the given number of rings, each of fill entries.
func newFrameSupply(umem *xsk.Umem, pool *xsk.Pool, ring, fill, rings int) frameSupply {
	return frameSupply{
		umem: umem, pool: pool, addrs: make([]uint64, ring),
		fill:        fill,
		fillReserve: fillReserve(umem, fill, rings),
	}
}

// fillReserve returns how many entries of each of the given number of fill rings stay empty.
// At most half of the frames are in the fill rings, in equal parts: the other half is for
// copies and feedback.
func fillReserve(umem *xsk.Umem, fill, rings int) int {
	return max(0, fill-umem.Frames()/2/max(1, rings))
}

// refill gives q free frames to receive into, at least fillChunk at a time.
func (s *frameSupply) refill(q xsk.Queue) {
	room := q.FillRoom() - s.fillReserve
	if room < fillChunk {
		return
	}
	want := min(room, len(s.addrs))
	n := s.pool.Take(s.addrs[:want])
	s.starved = s.starved || n < want
	taken := q.Fill(s.addrs[:n])
	s.pool.Give(s.addrs[taken:n])
}

// reclaim takes back the frames that the kernel had when q was closed.
func (s *frameSupply) reclaim(q xsk.BoundQueue) {
	for {
		n := q.Reclaim(s.addrs)
		if n == 0 {
			return
		}
		s.pool.Give(s.addrs[:n])
	}
}

// reserveFrames returns the number of packets of the given number of buffers that there
// are free frames for; it fetches frames into the pool for up to want packets.
func (s *frameSupply) reserveFrames(want, buffers int) int {
	return wholePackets(s.pool.Reserve(want*buffers), buffers)
}

// freeFrames returns the buffers of a packet to the pool.
func (s *frameSupply) freeFrames(ds []xsk.Desc) {
	for i := range ds {
		s.pool.GiveOne(ds[i].Addr)
	}
}
