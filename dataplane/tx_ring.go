// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"math/bits"
	"time"

	"github.com/gleam-rdma/gleam/dataplane/xsk"
)

// txRing is a port's TX ring, with an account of what is in it, and of the kernel's
// progress. It belongs to the worker that transmits for the port.
//
// A frame is in the ring from put until its completion is taken: bytes is the sum of the
// lengths of these frames. Frames complete in the order in which they were sent, or nearly
// so; bytes is exact again when all have completed.
type txRing struct {
	socket  xsk.Queue // nil: another worker transmits, or the port is not attached
	lengths []uint16  // descLinkBytes of the buffers in the ring, in order; its length is a power of two
	head    uint32    // head and tail are free-running: the index completed next, and put next
	tail    uint32
	bytes   int
	packets uint64 // put so far
	sent    uint64 // bytes of them

	kickAt      time.Duration // the kernel has not taken all frames, and is not kicked before this time; 0: it has taken all
	takenAtKick uint32        // frames that the kernel had taken in total after the last kick
}

// newTXRing returns the account of a ring of up to the given number of frames.
func newTXRing(q xsk.Queue, frames int) txRing {
	return txRing{socket: q, lengths: make([]uint16, 1<<bits.Len(uint(frames-1)))}
}

// frames returns how many frames are in the ring.
func (r *txRing) frames() int { return int(r.tail - r.head) }

// put puts staged frames into the ring, and returns those for which there was no room.
func (r *txRing) put(staged []xsk.Desc) (left []xsk.Desc) {
	if len(staged) == 0 {
		return nil
	}
	n := r.socket.Send(staged)
	for _, d := range staged[:n] {
		b := descLinkBytes(d)
		if isLast(d) {
			r.packets++
		}
		r.lengths[r.tail&uint32(len(r.lengths)-1)] = uint16(b)
		r.tail++
		r.bytes += b
		r.sent += uint64(b)
	}
	return staged[n:]
}

// kick makes the kernel send the frames in the ring, and reports whether it has taken any.
// If the kernel has taken none since the last kick, it is not kicked again before kickAt,
// which p gives.
func (r *txRing) kick(now time.Duration, p *progress) error {
	before, pending := r.socket.Consumed()
	if pending == 0 {
		r.kickAt = 0
		return nil
	}
	if now < r.kickAt && before == r.takenAtKick {
		return nil
	}
	err := r.socket.Kick()
	r.takenAtKick, pending = r.socket.Consumed()
	if r.takenAtKick != before {
		p.last = now
	}
	r.kickAt = 0
	if pending > 0 {
		r.kickAt = p.retryAt(now)
	}
	return err
}

// complete returns the frames that have left to pool, by way of addrs, and reports whether
// there were any.
func (r *txRing) complete(pool *xsk.Pool, addrs []uint64) (any bool) {
	for {
		n := r.socket.Complete(addrs)
		pool.Give(addrs[:n])
		for range n {
			r.bytes -= int(r.lengths[r.head&uint32(len(r.lengths)-1)])
			r.head++
		}
		any = any || n > 0
		if n < len(addrs) {
			return any
		}
	}
}

// forget empties the account of a ring whose frames were reclaimed.
func (r *txRing) forget() { r.head, r.bytes = r.tail, 0 }
