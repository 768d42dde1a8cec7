// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"math"
	"slices"
	"sync"
	"time"
)

// Latency summarizes samples, in microseconds, as perftest does.
type Latency struct {
	Min     float64 `json:"t_min_usec"`
	Max     float64 `json:"t_max_usec"`
	Typical float64 `json:"t_typical_usec"` // median
	Avg     float64 `json:"t_avg_usec"`
	Stdev   float64 `json:"t_stdev_usec"`
	P99     float64 `json:"percentile_99_usec"`
	P999    float64 `json:"percentile_99_9_usec"`
}

// summarize sorts samples, which must not be empty, and summarizes them.
func summarize(samples []time.Duration) Latency {
	slices.Sort(samples)
	n := len(samples)
	var sum float64
	for _, s := range samples {
		sum += usec(s)
	}
	avg := sum / float64(n)
	var squares float64
	for _, s := range samples {
		squares += (usec(s) - avg) * (usec(s) - avg)
	}
	return Latency{
		Min: usec(samples[0]), Max: usec(samples[n-1]),
		Typical: (usec(samples[n/2]) + usec(samples[(n-1)/2])) / 2,
		Avg:     avg, Stdev: math.Sqrt(squares / float64(n)),
		P99: usec(samples[nearestRank(n, 99, 100)]), P999: usec(samples[nearestRank(n, 999, 1000)]),
	}
}

func usec(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// nearestRank returns the index, in n sorted samples, of the least sample that num/den of
// the samples do not exceed.
func nearestRank(n, num, den int) int { return (n*num+den-1)/den - 1 }

// meter finds the peak of a run: the highest rate over consecutive stretches with at
// least a given number of messages, or of a given time. Any goroutine may use it.
type meter struct {
	mu       sync.Mutex
	flight   int           // messages that may be on their way at a time
	messages int           // messages of a stretch; 0: span bounds it
	span     time.Duration // the time of a stretch, if messages is 0
	count    int           // messages so far
	start    time.Time
	last     time.Time // the time of the latest message
	markedAt int       // count at the beginning of the stretch
	mark     time.Time
	best     float64       // messages per second
	pause    time.Duration // the longest time without a message
}

// span is the length of a stretch of a timed run.
const span = 100 * time.Millisecond

// newMeter returns the meter of a run of total messages, or of a timed run if total is 0, with up to
// flight of them on their way at a time. A stretch is a tenth of the run, or 100 ms.
func newMeter(total, flight int) *meter {
	m := &meter{span: span, flight: flight}
	if total > 0 {
		m.messages = (total + 9) / 10
	}
	return m
}

// begin sets the run's start.
func (m *meter) begin(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.start, m.mark, m.last = now, now, now
}

// add counts n messages that have arrived by now.
func (m *meter) add(now time.Time, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count += n
	if now.After(m.last) {
		m.pause = max(m.pause, now.Sub(m.last))
		m.last = now
	}
	d := now.Sub(m.mark)
	if m.messages > 0 && m.count-m.markedAt >= m.messages || m.messages == 0 && d >= m.span {
		// Completions come in bursts: those of messages that were on their way when the stretch began
		// may have waited for their reader since. The rest was posted and completed within it.
		if n := m.count - m.markedAt - m.flight; d > 0 && n > 0 {
			m.best = max(m.best, float64(n)/d.Seconds())
		}
		m.markedAt, m.mark = m.count, now
	}
}

// progress returns the number of messages so far.
func (m *meter) progress() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count
}

// rate is the outcome of a meter.
type rate struct {
	count   int
	seconds float64
	peak    float64 // messages per second, at least avg
	avg     float64
	pause   float64 // seconds, the longest time without a message
}

func (m *meter) rate() rate {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := rate{count: m.count, seconds: m.last.Sub(m.start).Seconds(), pause: m.pause.Seconds()}
	if r.seconds > 0 {
		r.avg = float64(r.count) / r.seconds
	}
	// The last stretch may be too short to count: a run without a long enough stretch has
	// its average as its peak.
	r.peak = max(m.best, r.avg)
	return r
}
