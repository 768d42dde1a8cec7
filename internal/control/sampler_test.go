// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A first occurrence is reported at once, a flood as one line per interval, its
// end at the end of the interval, and kinds do not hide each other.
func TestSampler(t *testing.T) {
	s := newSampler[string](2, 10*time.Second)
	add := func(now time.Duration, kind int, x string, suppressed uint64, report bool) {
		t.Helper()
		if n, ok := s.add(now, kind, x); n != suppressed || ok != report {
			t.Errorf("%s at %v: %d suppressed, reported %v; want %d, %v", x, now, n, ok, suppressed, report)
		}
	}
	due := func(now time.Duration, want string, suppressed uint64) {
		t.Helper()
		said := ""
		s.due(now, func(x string, n uint64) {
			if said += x; n != suppressed {
				t.Errorf("%s at %v: %d suppressed, want %d", x, now, n, suppressed)
			}
		})
		if said != want {
			t.Errorf("at %v %q is reported, want %q", now, said, want)
		}
	}
	if _, ok := s.next(); ok {
		t.Error("a new sampler has something to report")
	}
	add(0, 0, "a", 0, true)
	if _, ok := s.next(); ok {
		t.Error("what has been reported waits")
	}
	add(1*time.Second, 0, "b", 0, false)
	add(2*time.Second, 1, "x", 0, true)
	add(3*time.Second, 0, "c", 0, false)
	if at, ok := s.next(); !ok || at != 10*time.Second {
		t.Errorf("next %v %v, want 10s", at, ok)
	}
	due(9*time.Second, "", 0)
	due(10*time.Second, "c", 1)
	due(30*time.Second, "", 0)
	add(19*time.Second, 0, "d", 0, false) // the line at 10 s began an interval
	add(20*time.Second, 0, "e", 1, true)  // nobody asked for what was due
}

// Whatever happens, every occurrence is reported or counted in a report, once,
// and no two reports of a kind are closer than the interval.
func TestSamplerCountsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const interval = 100
		s := newSampler[int](3, interval)
		var now time.Duration
		var added, told [3]uint64
		last := [3]time.Duration{-interval, -interval, -interval}
		report := func(kind int, suppressed uint64) {
			if now-last[kind] < interval {
				t.Fatalf("kind %d is reported at %v and %v", kind, last[kind], now)
			}
			last[kind] = now
			told[kind] += 1 + suppressed
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now += time.Duration(rapid.IntRange(0, 60).Draw(t, "pause"))
			if rapid.Bool().Draw(t, "due") {
				s.due(now, report)
				continue
			}
			kind := rapid.IntRange(0, 2).Draw(t, "kind")
			added[kind]++
			if n, ok := s.add(now, kind, kind); ok {
				report(kind, n)
			}
		}
		for at, ok := s.next(); ok; at, ok = s.next() {
			now = max(now, at)
			s.due(now, report)
		}
		if told != added {
			t.Fatalf("%v told of %v", told, added)
		}
	})
}
