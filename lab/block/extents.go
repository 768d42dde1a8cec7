// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package block

import "math/bits"

// blockSize is the granularity of what a replica lacks.
const blockSize = 64 << 10

// extents are blocks of the device: those that a replica lacks, or has not flushed.
type extents []uint64

func newExtents(size int64) extents { return make(extents, (size+64*blockSize-1)/(64*blockSize)) }

// mark adds the blocks of a range.
func (x extents) mark(off, n int64) {
	for b := off / blockSize; b*blockSize < off+n; b++ {
		x[b/64] |= 1 << (b % 64)
	}
}

// add adds all of y.
func (x extents) add(y extents) {
	for i, w := range y {
		x[i] |= w
	}
}

// take removes the first run of blocks, at most limit, and returns its range; n is 0 if there is none.
func (x extents) take(limit int, size int64) (off, n int64) {
	for i, w := range x {
		if w == 0 {
			continue
		}
		b := int64(i)*64 + int64(bits.TrailingZeros64(w))
		off = b * blockSize
		for ; limit > 0 && b < int64(len(x))*64 && x[b/64]&(1<<(b%64)) != 0; limit-- {
			x[b/64] &^= 1 << (b % 64)
			b++
		}
		return off, min(b*blockSize, size) - off
	}
	return 0, 0
}

// count returns the number of blocks.
func (x extents) count() (n int) {
	for _, w := range x {
		n += bits.OnesCount64(w)
	}
	return n
}

// span is a range of the device.
type span struct{ off, n int64 }

func (a span) overlaps(b span) bool {
	return a.n > 0 && b.n > 0 && a.off < b.off+b.n && b.off < a.off+a.n
}
