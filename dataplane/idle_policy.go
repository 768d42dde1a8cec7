// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"slices"
	"time"
)

// idlePolicy says when a worker that finds nothing to do goes to sleep. To be woken
// costs a packet some 30 µs, so the worker polls on for a while: for least at
// any rate, and for up to spinFactor times that where packets have lately come
// so often that the next one is likely to come meanwhile.
type idlePolicy struct {
	minSpin   time.Duration // 0: sleep at once
	meanGap   time.Duration // mean time without packets, bounded
	idleSince time.Duration // nothing has come since; -1: something has just now
}

// spinFactor bounds the polling for packets that may not come.
const spinFactor = 16

func newIdlePolicy(least time.Duration) idlePolicy {
	return idlePolicy{minSpin: least, meanGap: 2 * spinFactor * least, idleSince: -1}
}

// maySpin reports whether workers on these CPUs (-1: any), of n that there are, may
// poll when they have nothing to do: if each has one to itself and one is left. Else
// they would keep each other, the kernel's share of the work and everybody else from
// running: four on two CPUs then do a quarter of what they do otherwise.
func maySpin(cpus []int, n int) bool {
	for i, c := range cpus {
		if c >= 0 && slices.Contains(cpus[:i], c) {
			return false
		}
	}
	return len(cpus) < n
}

// packetsCame notes that packets came.
func (i *idlePolicy) packetsCame(now time.Duration) {
	if i.idleSince >= 0 {
		i.meanGap += (min(now-i.idleSince, 2*spinFactor*i.minSpin) - i.meanGap) / 4
		i.idleSince = -1
	}
}

// shouldSleep notes that none came, and reports whether to sleep.
func (i *idlePolicy) shouldSleep(now time.Duration) bool {
	if i.idleSince < 0 {
		i.idleSince = now
	}
	spin := i.minSpin
	if most := spinFactor * i.minSpin; i.meanGap < most {
		spin = max(spin, min(2*i.meanGap, most))
	}
	return now-i.idleSince >= spin
}
