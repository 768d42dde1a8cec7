// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"testing"
	"time"
)

// sleeps runs a worker for a second in which packets come every gap, and returns
// the share of the packets that found it asleep, and of the time that it slept.
func sleeps(least, gap time.Duration) (packets, slept float64) {
	i := newIdlePolicy(least)
	const step = time.Microsecond
	next, asleep, n, found := gap, false, 0, 0
	var dark time.Duration
	for now := time.Duration(0); now < time.Second; now += step {
		switch {
		case now >= next:
			n++
			if asleep {
				found++
			}
			i.packetsCame(now)
			asleep, next = false, now+gap
		case asleep:
			dark += step
		default:
			asleep = i.shouldSleep(now, false)
		}
	}
	return float64(found) / float64(n), dark.Seconds()
}

func TestIdler(t *testing.T) {
	const us = time.Microsecond
	for _, c := range []struct {
		least, gap             time.Duration
		mostPackets, leastTime float64
	}{
		{50 * us, 20 * us, 0, 0},
		{50 * us, 100 * us, 0.01, 0}, // often enough to wait for
		{50 * us, 750 * us, 0.01, 0}, // just so
		{50 * us, 1200 * us, 1, 0.3}, // too seldom: the core is for others
		{50 * us, 10 * time.Millisecond, 1, 0.99},
		{0, 20 * us, 1, 0.8}, // never poll
	} {
		packets, slept := sleeps(c.least, c.gap)
		if packets > c.mostPackets || slept < c.leastTime {
			t.Errorf("spin %v, a packet every %v: %.0f %% of them found the worker asleep, it slept %.0f %% of the time", c.least, c.gap, 100*packets, 100*slept)
		}
	}
}

// After a pause the worker soon waits for packets again, and the other way round.
func TestIdlerAdapts(t *testing.T) {
	i := newIdlePolicy(50 * time.Microsecond)
	now := time.Duration(0)
	after := func(gap time.Duration) (slept bool) {
		for end := now + gap; now < end; now += time.Microsecond {
			slept = i.shouldSleep(now, false) || slept
		}
		i.packetsCame(now)
		return slept
	}
	for range 10 {
		after(time.Second)
	}
	n := 1
	for after(400*time.Microsecond) && n < 100 {
		n++
	}
	if n > 12 {
		t.Errorf("asleep for %d packets after a pause", n)
	}
}

// A worker spins for two mean gaps, at least minSpin and at most spinFactor times that; for
// minSpin alone where packets come more rarely.
func TestSpinFollowsTheMeanGap(t *testing.T) {
	const least, us = 50 * time.Microsecond, time.Microsecond
	for _, c := range []struct{ gap, spin time.Duration }{
		{0, least}, {25 * us, least}, {30 * us, 60 * us}, {spinFactor * least / 2, spinFactor * least},
		{spinFactor*least - 1, spinFactor * least}, {spinFactor * least, least}, {2 * spinFactor * least, least},
	} {
		i := newIdlePolicy(least)
		i.meanGap = c.gap
		if i.shouldSleep(time.Second, false) || i.shouldSleep(time.Second+c.spin-1, false) || !i.shouldSleep(time.Second+c.spin, false) {
			t.Errorf("with a mean gap of %v a worker does not spin for %v", c.gap, c.spin)
		}
		if i.packetsCame(time.Second); i.shouldSleep(2*time.Second, false) || i.idleSince != 2*time.Second {
			t.Errorf("with a mean gap of %v the time without packets began at %v, want 2 s", c.gap, i.idleSince)
		}
	}
}

func TestMayPoll(t *testing.T) {
	for _, c := range []struct {
		cpus []int
		n    int
		want bool
	}{
		{[]int{-1}, 2, true},
		{[]int{0}, 1, false},
		{[]int{0, 1}, 2, false},
		{[]int{-1, -1}, 3, true},
		{[]int{0, -1, -1, -1}, 4, false},
		{[]int{3, 5}, 8, true},
		{[]int{3, 5, 3}, 8, false},
	} {
		if got := maySpin(c.cpus, c.n); got != c.want {
			t.Errorf("workers on %v of %d CPUs: %v", c.cpus, c.n, got)
		}
	}
}
