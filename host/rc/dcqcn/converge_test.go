// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dcqcn

import (
	"fmt"
	"testing"
	"time"
)

// TestConverges: one sender settles near the rate of its bottleneck, with a queue
// that stays within bounds, follows the bottleneck down to a quarter and up
// again within a second, and never leaves MinRate to LineRate. The simulation
// repeats exactly.
func TestConverges(t *testing.T) {
	for _, c := range []struct {
		line  int64
		share float64 // part of line that the bottleneck has
		mark  int     // bytes
	}{
		{100e6, 0.1, 32 << 10}, {100e6, 0.5, 32 << 10}, {100e6, 0.5, 128 << 10}, {100e6, 0.9, 64 << 10},
		{1e9, 0.05, 32 << 10}, {1e9, 0.1, 32 << 10}, {1e9, 0.1, 128 << 10}, {1e9, 0.5, 32 << 10}, {1e9, 0.9, 32 << 10},
		{4e9, 0.1, 64 << 10}, {4e9, 0.5, 64 << 10},
	} {
		t.Run(fmt.Sprintf("%dM/%v/%dK", c.line/1e6, c.share, c.mark>>10), func(t *testing.T) {
			l, err := newLink(Config{LineRate: c.line}, float64(c.line)*c.share, c.mark)
			if err != nil {
				t.Fatal(err)
			}
			full := l.rate
			for _, phase := range []struct {
				name string
				rate float64
			}{{"start", full}, {"quarter", full / 4}, {"back", full}} {
				l.rate = phase.rate
				l.run(time.Second) // to settle
				used, queue := l.run(time.Second)
				most := 6 * c.mark
				if l.rate < float64(c.line)/10 { // the steps are as large as the rate
					most = 17 * c.mark
				}
				t.Logf("%s: %.2f of %.1f Mbit/s, queue %d KB, %d CNPs", phase.name, used, l.rate/1e6, queue>>10, l.cnpsSent)
				if used < 0.62 || used > 1.01 || queue > most {
					t.Errorf("%s: %.2f of the link used, the queue came to %d bytes: want 0.62 to 1, %d", phase.name, used, queue, most)
				}
			}
			if cfg := l.rp.Config(); l.least < cfg.MinRate || l.most > cfg.LineRate {
				t.Errorf("rates from %d to %d: want %d to %d", l.least, l.most, cfg.MinRate, cfg.LineRate)
			}
			if s := l.rp.Stats(); s.Cuts == 0 || s.CNPs < s.Cuts {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestQueueGrowsWithoutCNPs shows that it is the CNPs that bound the queue of
// TestConverges.
func TestQueueGrowsWithoutCNPs(t *testing.T) {
	l, err := newLink(Config{LineRate: 1e9}, 100e6, 1<<40)
	if err != nil {
		t.Fatal(err)
	}
	if _, queue := l.run(time.Second); queue < 100<<20 {
		t.Errorf("the queue came to %d bytes only", queue)
	}
}
