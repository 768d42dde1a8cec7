// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"time"

	"github.com/gleam-rdma/gleam/api"
)

// Bounds of the histograms, in ascending order.
var (
	ackBounds   = bounds125(10*time.Microsecond, 10*time.Second)
	stallBounds = []time.Duration{
		api.StallTime * time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, 50 * time.Second,
		100 * time.Second, 200 * time.Second, 500 * time.Second, 1000 * time.Second,
	}
	registrationBounds = bounds125(100*time.Microsecond, 100*time.Second)
)

// bounds125 returns the bounds from least to most in steps of 1, 2, 5, 10.
func bounds125(least, most time.Duration) (list []time.Duration) {
	for at := least; ; at *= 10 {
		for _, k := range [...]time.Duration{1, 2, 5} {
			if at*k > most {
				return list
			}
			list = append(list, at*k)
		}
	}
}

// Durations is a histogram of durations. It belongs to one goroutine, and allocates nothing
// after it was made.
type Durations struct {
	bounds []time.Duration
	counts []uint64 // one more than bounds
	sum    time.Duration
}

func newDurations(bounds []time.Duration) Durations {
	return Durations{bounds: bounds, counts: make([]uint64, len(bounds)+1)}
}

// NewRegistrationTimes returns an empty histogram of registration times.
func NewRegistrationTimes() Durations { return newDurations(registrationBounds) }

// NewStepTimes returns an empty histogram of the times of a registration's steps.
func NewStepTimes() Durations { return newDurations(ackBounds) }

// Add adds a duration.
func (d *Durations) Add(x time.Duration) {
	i := 0
	for i < len(d.bounds) && x > d.bounds[i] {
		i++
	}
	d.counts[i]++
	d.sum += x
}

// AddTo adds the counts to those of h, which is empty or has the same bounds.
func (d *Durations) AddTo(h *api.Histogram) {
	if h.Counts == nil {
		h.Counts = make([]uint64, len(d.counts))
		for _, b := range d.bounds {
			h.Bounds = append(h.Bounds, b.Seconds())
		}
	}
	for i, n := range d.counts {
		h.Counts[i] += n
	}
	h.Sum += d.sum.Seconds()
}
