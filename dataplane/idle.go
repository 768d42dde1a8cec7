// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"slices"
	"time"
)

// idler says when a worker that finds nothing to do goes to sleep. To be woken
// costs a packet some 30 µs, so the worker polls on for a while: for least at
// any rate, and for up to spinFactor times that where packets have lately come
// so often that the next one is likely to come meanwhile.
type idler struct {
	least time.Duration // 0: sleep at once
	gap   time.Duration // mean time without packets, bounded
	since time.Duration // nothing has come since; -1: something has just now
}

// spinFactor bounds the polling for packets that may not come.
const spinFactor = 16

func newIdler(least time.Duration) idler {
	return idler{least: least, gap: 2 * spinFactor * least, since: -1}
}

// mayPoll reports whether workers on these CPUs (-1: any), of n that there are, may
// poll when they have nothing to do: if each has one to itself and one is left. Else
// they would keep each other, the kernel's share of the work and everybody else from
// running: four on two CPUs then do a quarter of what they do otherwise.
func mayPoll(cpus []int, n int) bool {
	for i, c := range cpus {
		if c >= 0 && slices.Contains(cpus[:i], c) {
			return false
		}
	}
	return len(cpus) < n
}

// busy notes that packets came.
func (i *idler) busy(now time.Duration) {
	if i.since >= 0 {
		i.gap += (min(now-i.since, 2*spinFactor*i.least) - i.gap) / 4
		i.since = -1
	}
}

// sleepy notes that none came, and reports whether to sleep.
func (i *idler) sleepy(now time.Duration) bool {
	if i.since < 0 {
		i.since = now
	}
	patience := i.least
	if most := spinFactor * i.least; i.gap < most {
		patience = max(patience, min(2*i.gap, most))
	}
	return now-i.since >= patience
}
