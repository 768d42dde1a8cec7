// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import "time"

// sampler thins out reports that a stranger can cause at will. The first
// occurrence of a kind is reported at once. Those within an interval after a
// report are counted, and the last of them is reported at its end, with their
// number. It has no clock, and its memory is bounded by the kinds.
type sampler[T any] struct {
	interval time.Duration
	kinds    []sample[T]
}

// sample is what a sampler knows of one kind.
type sample[T any] struct {
	reported bool          // at least once
	until    time.Duration // nothing of this kind is reported before
	held     uint64        // occurrences since the last report
	last     T             // the latest of them
}

func newSampler[T any](kinds int, interval time.Duration) *sampler[T] {
	return &sampler[T]{interval: interval, kinds: make([]sample[T], kinds)}
}

// add takes one occurrence. If it is to be reported, suppressed tells how many
// before it were not.
func (s *sampler[T]) add(now time.Duration, kind int, x T) (suppressed uint64, report bool) {
	k := &s.kinds[kind]
	if k.reported && now < k.until {
		k.held++
		k.last = x
		return 0, false
	}
	suppressed = k.held
	*k = sample[T]{reported: true, until: now + s.interval}
	return suppressed, true
}

// due calls report for every kind whose interval has ended with occurrences that
// were not reported: with the latest, and the number of the others.
func (s *sampler[T]) due(now time.Duration, report func(x T, suppressed uint64)) {
	for i := range s.kinds {
		k := &s.kinds[i]
		if k.held == 0 || now < k.until {
			continue
		}
		x, suppressed := k.last, k.held-1
		*k = sample[T]{reported: true, until: now + s.interval}
		report(x, suppressed)
	}
}

// next returns when due has something to report.
func (s *sampler[T]) next() (at time.Duration, ok bool) {
	for i := range s.kinds {
		if k := &s.kinds[i]; k.held > 0 && (!ok || k.until < at) {
			at, ok = k.until, true
		}
	}
	return at, ok
}
