// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"testing"
	"time"
)

// A Policer passes its rate, after a burst of 100 ms or of ten packets, and WaitFor is the
// time until the next one.
func TestPolicer(t *testing.T) {
	for _, c := range []struct {
		rate, burst int
	}{{1, 10}, {50, 10}, {100, 10}, {1000, 100}, {2000, 200}} {
		p := NewPolicer(c.rate)
		now, gap := time.Second, time.Second/time.Duration(c.rate)
		for n := range c.burst {
			if w := p.WaitFor(now); w != 0 || !p.Allow(now) {
				t.Fatalf("%d/s: packet %d of the burst has to wait for %v", c.rate, n, w)
			}
		}
		for range 3 {
			if w := p.WaitFor(now); w != gap || p.Allow(now) || p.Allow(now+gap-1) || p.WaitFor(now+gap-1) != 1 {
				t.Errorf("%d/s: wait for %v after the burst, want %v", c.rate, w, gap)
			}
			if now += gap; !p.Allow(now) {
				t.Errorf("%d/s: no packet %v after the one before", c.rate, gap)
			}
		}
		if now += time.Minute; p.WaitFor(now) != 0 {
			t.Errorf("%d/s: a packet has to wait after a minute", c.rate)
		}
	}
	for _, rate := range []int{0, -1} {
		p := NewPolicer(rate)
		for range 1000 {
			if !p.Allow(0) || p.WaitFor(0) != 0 {
				t.Fatalf("rate %d is a limit", rate)
			}
		}
	}
}
