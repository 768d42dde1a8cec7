// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import "time"

// sampler thins out reports that a stranger can cause at will. The first occurrences of a
// kind are reported at once, burst of them. Others within an interval after the first one are counted,
// and the last of them is reported at the end of the interval, with their number. It does
// not read a clock, and its memory is bounded by the number of kinds.
type sampler[T any] struct {
	interval time.Duration
	burst    int
	kinds    []sample[T]
	held     int // kinds with suppressed occurrences
}

// sample is a sampler's state of one kind.
type sample[T any] struct {
	reports    int           // reports in the last interval; 0: it was never reported
	quietUntil time.Duration // the end of the last interval
	suppressed uint64        // occurrences since the last report
	latest     T             // the last of them
}

func newSampler[T any](kinds int, interval time.Duration) *sampler[T] {
	return &sampler[T]{interval: interval, burst: 1, kinds: make([]sample[T], kinds)}
}

// add records an occurrence. If it is to be reported, suppressed is the number of
// occurrences before it that were not.
func (s *sampler[T]) add(now time.Duration, kind int, x T) (suppressed uint64, report bool) {
	k := &s.kinds[kind]
	if k.reports > 0 && now < k.quietUntil {
		if k.reports < s.burst {
			k.reports++
			return 0, true
		}
		if k.suppressed == 0 {
			s.held++
		}
		k.suppressed++
		k.latest = x
		return 0, false
	}
	if suppressed = k.suppressed; suppressed > 0 {
		s.held--
	}
	*k = sample[T]{reports: 1, quietUntil: now + s.interval}
	return suppressed, true
}

// due calls report for every kind whose interval has ended with occurrences that were not
// reported: with the latest of them, and the number of the others.
func (s *sampler[T]) due(now time.Duration, report func(x T, suppressed uint64)) {
	if s.held == 0 {
		return
	}
	for i := range s.kinds {
		k := &s.kinds[i]
		if k.suppressed == 0 || now < k.quietUntil {
			continue
		}
		s.held--
		x, suppressed := k.latest, k.suppressed-1
		*k = sample[T]{reports: 1, quietUntil: now + s.interval}
		report(x, suppressed)
	}
}

// next returns when due next calls report; ok is false if there is nothing to report.
func (s *sampler[T]) next() (at time.Duration, ok bool) {
	if s.held == 0 {
		return 0, false
	}
	for i := range s.kinds {
		if k := &s.kinds[i]; k.suppressed > 0 && (!ok || k.quietUntil < at) {
			at, ok = k.quietUntil, true
		}
	}
	return at, ok
}
