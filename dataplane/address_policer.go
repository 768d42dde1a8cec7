// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"hash/maphash"
	"net/netip"
	"time"
)

// addressPolicers bounds the rate of envelopes from each source address of a port, before
// the port's own bound applies: one host's flood does not take the share of others.
// Addresses share policers by a hash with a secret seed, so memory is fixed and nothing
// is scanned. The zero value has no limit. It belongs to the worker.
type addressPolicers struct {
	gap, burst time.Duration // the bounds, as in Policer
	seed       maphash.Seed
	fullAt     [256]time.Duration
}

// newAddressPolicers makes policers of rate envelopes per second; 0 means no limit.
func newAddressPolicers(rate int) addressPolicers {
	b := NewPolicer(rate)
	return addressPolicers{gap: b.gap, burst: b.burst, seed: maphash.MakeSeed()}
}

// allow reports whether one more envelope from src may pass at time now.
func (s *addressPolicers) allow(now time.Duration, src netip.Addr) bool {
	if s.gap == 0 {
		return true
	}
	i := maphash.Comparable(s.seed, src) % uint64(len(s.fullAt))
	b := Policer{gap: s.gap, burst: s.burst, fullAt: s.fullAt[i]}
	ok := b.Allow(now)
	s.fullAt[i] = b.fullAt
	return ok
}
