// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import "time"

// Policer is a token bucket: rate packets per second, and a burst of BurstTime. The zero
// value has no limit. Workers bound the packets of a port with it, the control loop its own
// work; it belongs to one goroutine and reads no clock.
type Policer struct {
	gap    time.Duration // the time between two packets at the full rate; 0: no limit
	burst  time.Duration // how far packets may run ahead of the rate
	fullAt time.Duration // the time when the bucket would be full again
}

// BurstTime is the time whose packets at the full rate may pass in one burst.
const BurstTime = 100 * time.Millisecond

// NewPolicer makes a Policer of rate packets per second; 0 means no limit.
func NewPolicer(rate int) Policer {
	if rate <= 0 {
		return Policer{}
	}
	gap := time.Second / time.Duration(rate)
	return Policer{gap: gap, burst: max(BurstTime, 10*gap)}
}

// Allow reports whether one more packet may pass at time now.
func (b *Policer) Allow(now time.Duration) bool {
	if b.gap == 0 {
		return true
	}
	next := max(b.fullAt, now) + b.gap
	if next-now > b.burst {
		return false
	}
	b.fullAt = next
	return true
}

// WaitFor returns how long after now Allow would let a packet pass.
func (b *Policer) WaitFor(now time.Duration) time.Duration {
	if b.gap == 0 {
		return 0
	}
	return max(0, max(b.fullAt, now)+b.gap-now-b.burst)
}
