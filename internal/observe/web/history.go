// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"math"
	"strings"
	"sync"
	"time"
)

// tiers are what the history remembers: the last two minutes by second, and a quarter of an hour by
// ten seconds.
var tiers = [...]tier{{step: Interval, points: 120}, {step: idleInterval, points: 90}}

// tier divides the time into steps of one length, of which it keeps the last ones.
type tier struct {
	step   time.Duration
	points int
}

// maxSeries bounds the history's memory: a series takes a kilobyte.
const maxSeries = 4096

// point is the value of a series at a moment.
type point struct {
	series string
	value  float64
	peak   bool // true: the largest value of a step is kept; false: the mean
}

// history has the last values of series. The time of the switch's answers is that of its points.
type history struct {
	mu     sync.Mutex
	series map[string]*series
	last   [len(tiers)]int64 // number of the newest step, since 1970
}

// series has the values of the tiers' steps in rings: step n is at n modulo the tier's points.
type series struct {
	values [len(tiers)][]float32 // NaN: none
	count  [len(tiers)]int       // values in the newest step
	fed    time.Time
}

func newHistory() *history { return &history{series: make(map[string]*series)} }

// span is the time that the history covers.
func span() (longest time.Duration) {
	for _, t := range tiers {
		longest = max(longest, t.step*time.Duration(t.points))
	}
	return longest
}

// add notes points of a moment that is not before that of the last call. Series beyond maxSeries are
// left out.
func (h *history) add(now time.Time, points []point) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range tiers {
		h.advance(i, now.UnixNano()/int64(tiers[i].step))
	}
	for _, p := range points {
		s := h.series[p.series]
		if s == nil {
			if len(h.series) >= maxSeries {
				continue
			}
			s = newSeries()
			h.series[p.series] = s
		}
		s.fed = now
		for i := range tiers {
			s.put(i, h.last[i], p)
		}
	}
	for name, s := range h.series {
		if now.Sub(s.fed) > span() {
			delete(h.series, name)
		}
	}
}

func newSeries() *series {
	s := new(series)
	for i := range tiers {
		s.values[i] = make([]float32, tiers[i].points)
		for k := range s.values[i] {
			s.values[i][k] = float32(math.NaN())
		}
	}
	return s
}

// advance makes step the newest one of tier i. The steps before it that got nothing have no value.
func (h *history) advance(i int, step int64) {
	passed := min(step-h.last[i], int64(tiers[i].points))
	if passed <= 0 {
		return
	}
	for _, s := range h.series {
		for n := step - passed + 1; n <= step; n++ {
			s.values[i][n%int64(tiers[i].points)] = float32(math.NaN())
		}
		s.count[i] = 0
	}
	h.last[i] = step
}

// put adds p to the step of tier i.
func (s *series) put(i int, step int64, p point) {
	at := &s.values[i][step%int64(tiers[i].points)]
	s.count[i]++
	switch v := float32(p.value); {
	case s.count[i] == 1:
		*at = v
	case p.peak:
		*at = max(*at, v)
	default:
		*at += (v - *at) / float32(s.count[i])
	}
}

// past is a tier of some series, as the page gets it.
type past struct {
	Step   float64               `json:"step"` // seconds
	Last   float64               `json:"last"` // the time when the newest step began, in seconds since 1970
	Series map[string][]*float32 `json:"series"`
}

// read returns the series whose names begin with prefix, oldest step first; nil stands for none.
func (h *history) read(prefix string) []past {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]past, len(tiers))
	for i, t := range tiers {
		list[i] = past{Step: t.step.Seconds(), Last: float64(h.last[i]) * t.step.Seconds(), Series: make(map[string][]*float32)}
		for name, s := range h.series {
			if !strings.HasPrefix(name, prefix) {
				continue
			}
			values := make([]*float32, t.points)
			for k := range values {
				if v := s.values[i][(h.last[i]+1+int64(k))%int64(t.points)]; v == v {
					values[k] = new(v)
				}
			}
			list[i].Series[name] = values
		}
	}
	return list
}
