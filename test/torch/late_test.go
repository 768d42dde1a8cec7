// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package torch

import (
	"os"
	"slices"
	"testing"
	"time"
)

// What a late process gets by catch_up is bounded, and leaves the others their rate.
const (
	catchUpRate  = 20.0 // Mbit/s: 5 % of a link of killRate
	leastRate    = 0.85 // the share of their rate that the others keep, by medians of turns; the bound leaves 0.95 where the source serves
	mostCatchUp  = 1.1  // the most of the bound that is used
	leastCatchUp = 0.5
)

// A new process fetches 8 MiB that all have kept at 5 % of the links' rate, four times, with pauses in between, while the
// others go on with updates; then it comes back.
func TestCatchUpRate(t *testing.T) {
	j := newJob(t, 4, killRate, "GLEAM_POLICY=evict", "GLEAM_CATCH_UP_RATE=20", "GLEAM_KEEP=100000", "GLEAM_DEAD_AFTER=1500", "GLEAM_QP_TIMEOUT=16")
	j.startAll("late", killBytes, "0")
	w := &watch{job: j, cut: -1}
	w.update(3)
	j.kill(3, true)
	w.until(func(l line) bool { return l.word == "update" && l.rank == 0 && len(w.members) == 3 })
	j.start(3, "late", killBytes, "1")
	times, phase := make(map[string][]float64), ""
	for back := false; !back; {
		l := w.step()
		switch {
		case l.word == "idle" || l.word == "begins":
			phase = l.word
		case l.word == "caught":
			phase = ""
			rate := 8388608 * 8 / 1e6 / l.number(2)
			t.Logf("8 MiB from rank %v in %.2f s: %.1f Mbit/s", l.values[1], l.number(2), rate)
			if rate > mostCatchUp*catchUpRate || rate < leastCatchUp*catchUpRate {
				t.Errorf("%.1f Mbit/s, want %v", rate, catchUpRate)
			}
		case l.word == "update" && l.rank == 0:
			times[phase] = append(times[phase], l.number(1))
		case l.word == "back":
			back = true
		}
	}
	w.until(func(l line) bool { return l.word == "update" && l.rank == 3 })
	if err := os.WriteFile(j.stop(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	j.ended(time.Minute)
	slices.Sort(times["idle"])
	slices.Sort(times["begins"])
	idle, busy := times["idle"], times["begins"]
	if len(idle) < 8 || len(busy) < 8 {
		t.Fatalf("%d updates between, %d beside a catch-up: too few", len(idle), len(busy))
	}
	ratio := idle[len(idle)/2] / busy[len(busy)/2]
	t.Logf("an update takes %.3f s between, %.3f s beside a catch-up (medians of %d and %d): %.3f of the rate; the shortest %.3f and %.3f s: %.3f", idle[len(idle)/2], busy[len(busy)/2], len(idle), len(busy), ratio, idle[0], busy[0], idle[0]/busy[0])
	if ratio < leastRate {
		t.Errorf("the others keep %.3f of their rate, want %v", ratio, leastRate)
	}
}
