// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"slices"
	"time"
)

// idlePolicy decides when a worker without packets goes to sleep. A wakeup delays a
// packet by some 30 µs, so the worker first goes on polling: for minSpin at least, and
// for up to spinFactor times minSpin if packets have lately come so often that the next
// one is likely to come in that time.
type idlePolicy struct {
	minSpin   time.Duration // 0: sleep at once
	meanGap   time.Duration // mean time without packets, each bounded
	idleSince time.Duration // time since which no packet has come; -1: packets have just come
}

// spinFactor bounds the time of polling without packets, in units of minSpin.
const spinFactor = 16

func newIdlePolicy(least time.Duration) idlePolicy {
	return idlePolicy{minSpin: least, meanGap: 2 * spinFactor * least, idleSince: -1}
}

// maySpin reports whether workers on these CPUs (-1: any), of n that exist, may poll
// without packets: only if each has a CPU to itself and one is left. Otherwise they would
// take CPU time from each other, from the kernel's share of the work and from all other
// processes: four workers on two CPUs then do a quarter of the work.
func maySpin(cpus []int, n int) bool {
	for i, c := range cpus {
		if c >= 0 && slices.Contains(cpus[:i], c) {
			return false
		}
	}
	return len(cpus) < n
}

// packetsCame records that packets came.
func (i *idlePolicy) packetsCame(now time.Duration) {
	if i.idleSince >= 0 {
		i.meanGap += (min(now-i.idleSince, 2*spinFactor*i.minSpin) - i.meanGap) / 4
		i.idleSince = -1
	}
}

// shouldSleep records that no packets came, and reports whether to sleep. brief: what comes
// is feedback of groups on the fast path, which is not worth a CPU.
func (i *idlePolicy) shouldSleep(now time.Duration, brief bool) bool {
	if i.idleSince < 0 {
		i.idleSince = now
	}
	spin := i.minSpin
	if most := spinFactor * i.minSpin; i.meanGap < most && !brief {
		spin = max(spin, min(2*i.meanGap, most))
	}
	return now-i.idleSince >= spin
}
