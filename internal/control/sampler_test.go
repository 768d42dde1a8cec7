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

// The first few of a kind are reported, where a burst is allowed.
func TestSamplerBurst(t *testing.T) {
	s := newSampler[int](2, 10*time.Second)
	s.burst = 3
	said := 0
	for i := range 10 {
		if n, ok := s.add(time.Second, 0, i); ok {
			said++
		} else if n != 0 || said != 3 {
			t.Errorf("%d: %d suppressed after %d reports", i, n, said)
		}
	}
	if _, ok := s.add(time.Second, 1, 0); !ok {
		t.Error("another kind is hidden")
	}
	s.due(11*time.Second, func(x int, n uint64) {
		if x != 9 || n != 6 {
			t.Errorf("%d with %d others", x, n)
		}
	})
	if _, ok := s.add(12*time.Second, 0, 0); !ok || said != 3 {
		t.Errorf("%d reports of 10, or none in the next interval", said)
	}
}

// Whatever happens, every occurrence is reported or counted in a report, once,
// and of a kind no more than the burst begin within an interval.
func TestSamplerCountsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const interval = 100
		s := newSampler[int](3, interval)
		s.burst = rapid.IntRange(1, 3).Draw(t, "burst")
		var now time.Duration
		var added, told [3]uint64
		var reports [3][]time.Duration
		report := func(kind int, suppressed uint64) {
			last := append(reports[kind], now)
			reports[kind] = last
			// An interval begins with a report, so that the end of one and the begin of the next have a burst each.
			if n := len(last) - 1 - (2*s.burst - 1); n >= 0 && now-last[n] < interval {
				t.Fatalf("kind %d is reported at %v", kind, last[n:])
			}
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
