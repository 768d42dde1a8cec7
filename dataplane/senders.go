// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"hash/maphash"
	"net/netip"
	"time"
)

// senders bounds the rate of envelopes from each source address of a port, before the
// port's own bound: one host's flood leaves the others' share alone. Addresses share
// buckets by a hash that nobody outside knows, so memory is fixed and nothing is
// walked. The zero value lets everything pass. It belongs to the worker.
type senders struct {
	gap, depth time.Duration // as in bucket
	seed       maphash.Seed
	next       [256]time.Duration
}

// newSenders makes buckets of rate envelopes a second; 0 means no limit.
func newSenders(rate int) senders {
	b := newBucket(rate)
	return senders{gap: b.gap, depth: b.depth, seed: maphash.MakeSeed()}
}

// take reports whether one more envelope of src may pass at time now.
func (s *senders) take(now time.Duration, src netip.Addr) bool {
	if s.gap == 0 {
		return true
	}
	i := maphash.Comparable(s.seed, src) % uint64(len(s.next))
	b := bucket{gap: s.gap, depth: s.depth, next: s.next[i]}
	ok := b.take(now)
	s.next[i] = b.next
	return ok
}
