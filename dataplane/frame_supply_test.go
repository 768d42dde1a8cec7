// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"testing"

	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/test/xsktest"
)

// The fill rings get half of the frames at most, in chunks, and a supply that runs dry is
// known as such; what a closed queue had comes back.
func TestFrameSupply(t *testing.T) {
	for _, c := range []struct {
		name                        string
		frames, ring, rings, filled int
	}{
		{"frames for all", 1024, 128, 4, 128},
		{"half of the frames", 512, 128, 4, 64},
		{"less than a chunk of each", 96, 64, 4, 0},
	} {
		u, err := xsk.NewUmem(c.frames, 2048)
		if err != nil {
			t.Fatal(err)
		}
		s := newFrameSupply(u, xsk.NewPool(u), c.ring, c.ring, c.rings)
		q := xsktest.New(u, xsktest.Config{Ring: c.ring})
		s.refill(q)
		if n := q.Occupancy().Fill; n != c.filled || s.starved {
			t.Errorf("%s: %d frames to receive into, want %d; starved %v", c.name, n, c.filled, s.starved)
		}
		if c.filled > 0 {
			for range fillChunk - 1 {
				q.Arrive(make([]byte, 60))
			}
			var ds [fillChunk]xsk.Desc
			n := q.Receive(ds[:])
			if s.refill(q); q.Occupancy().Fill != c.filled-n {
				t.Errorf("%s: %d frames after %d were received: less than a chunk is not filled", c.name, q.Occupancy().Fill, n)
			}
			s.freeFrames(ds[:n])
			q.Arrive(make([]byte, 60))
			n = q.Receive(ds[:])
			var taken []uint64
			for s.pool.Len() > 10 {
				a, _ := s.pool.TakeOne()
				taken = append(taken, a)
			}
			if s.refill(q); q.Occupancy().Fill != c.filled-fillChunk+10 || !s.starved {
				t.Errorf("%s: %d frames of 10 that are left, starved %v", c.name, q.Occupancy().Fill, s.starved)
			}
			s.freeFrames(ds[:n])
			s.pool.Give(taken)
		}
		q.Close()
		if s.reclaim(q); s.pool.Len() != c.frames {
			t.Errorf("%s: %d of %d frames are free in the end", c.name, s.pool.Len(), c.frames)
		}
		if n := s.reserveFrames(c.frames, 3); n != c.frames/3 {
			t.Errorf("%s: frames for %d packets of 3", c.name, n)
		}
		u.Close()
	}
}
