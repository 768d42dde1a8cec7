// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"math/bits"

	"github.com/gleam-rdma/gleam/lab/sim/topology"
)

// HPL is a phase of HPL, in all rows or columns of its matrix at a time: the broadcast of a
// panel in rows, or the swap of rows in columns.
type HPL struct {
	Algorithm string // one of HPLAlgorithms
	Bytes     int64  // bytes that each rank gets
	Chunks    int    // chunks of rings and groups; 1 is a whole panel as one message
	// Synchronous lets each step of long's roll wait for the completion of its own message, as MPI_Issend
	// and MPI_Wait do. Otherwise it waits for the neighbour's only.
	Synchronous bool
	Rendezvous  bool          // a message between ranks is sent when its receiver waits for it
	Overhead    topology.Time // the time of each message at its sender
}

// HPLAlgorithms are HPL's broadcasts, its row swaps by spread and roll, with pivots everywhere or at one
// rank, and by exchange, and a Gleam group.
var HPLAlgorithms = []string{"1ring", "1ringM", "2ring", "2ringM", "long", "longM", "swap", "swap-central", "exchange", "group"}

// New returns the program for communicators, each with the rank that has the data.
func (h HPL) New(cs []Communicator) (*Script, error) {
	if err := checkSize(h.Bytes, h.Chunks); err != nil {
		return nil, err
	}
	ring := func(parent func(ranks, rank int) int) func(int) []schedule {
		return func(n int) []schedule {
			return []schedule{newTree(n, h.Bytes, h.Chunks, posted, func(r int) int { return parent(n, r) })}
		}
	}
	var schedules func(int) []schedule
	switch h.Algorithm {
	case "1ring":
		schedules = ring(func(_, r int) int { return r - 1 })
	case "1ringM":
		schedules = ring(func(_, r int) int {
			if r == 2 {
				return 0
			}
			return r - 1
		})
	case "2ring":
		schedules = ring(func(n, r int) int {
			if r == (n+1)/2 {
				return 0
			}
			return r - 1
		})
	case "2ringM":
		schedules = ring(func(n, r int) int {
			if r == 2 || r == 2+(n-1)/2 {
				return 0
			}
			return r - 1
		})
	case "long":
		schedules = func(n int) []schedule { return []schedule{newLong(n, h.Bytes, h.Synchronous)} }
	case "longM":
		schedules = func(n int) []schedule {
			if n == 2 { // rank 1 has everything from the root already
				return []schedule{newTree(n, h.Bytes, 1, posted, inChain)}
			}
			return []schedule{longModified{newLong(n-1, h.Bytes, h.Synchronous)}}
		}
	case "swap":
		schedules = func(n int) []schedule {
			return []schedule{newRowSwap(uniformPivots(n, h.Bytes), h.Synchronous)}
		}
	case "swap-central":
		schedules = func(n int) []schedule {
			return []schedule{newRowSwap(centralPivots(n, h.Bytes), h.Synchronous)}
		}
	case "exchange":
		for i, c := range cs {
			if n := len(c.Ranks); bits.OnesCount(uint(n)) != 1 {
				return nil, fmt.Errorf("workload: communicator %d has %d ranks; a binary exchange wants a power of two", i, n)
			}
		}
		schedules = func(n int) []schedule { return []schedule{exchange{n, h.Bytes}} }
	case "group":
		schedules = func(int) []schedule { return []schedule{multicast{h.Bytes, h.Chunks}} }
	default:
		return nil, fmt.Errorf("workload: HPL algorithm %q; want one of %v", h.Algorithm, HPLAlgorithms)
	}
	return newScript(cs, h.Overhead, h.Rendezvous, schedules)
}

// checkSize returns an error if bytes and chunks are out of range.
func checkSize(bytes int64, chunks int) error {
	switch {
	case bytes < 1 || bytes > MaxBytes:
		return fmt.Errorf("workload: %d bytes; want 1 to %d", bytes, int64(MaxBytes))
	case chunks < 1 || int64(chunks) > bytes || chunks > maxSeq:
		return fmt.Errorf("workload: %d chunks of %d bytes; want 1 to %d, each at least a byte", chunks, bytes, maxSeq)
	}
	return nil
}

// MaxBytes is the largest size of what a program sends at a time.
const MaxBytes = 1 << 50

// multicast is the broadcast by a group: the root sends all chunks to it.
type multicast struct {
	bytes  int64
	chunks int
}

func (m multicast) step(rank, k int) (step, bool) {
	if k >= m.chunks {
		return step{}, false
	}
	if rank > 0 {
		return receive(0), true
	}
	off, n := span(m.bytes, m.chunks, k)
	return send(toGroup, off, n), true
}
