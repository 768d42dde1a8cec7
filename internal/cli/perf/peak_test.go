// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"testing"
	"time"
)

// TestPeakOfBursts: whatever bursts the completions of a steady link are read in, the peak is not
// above the link's rate.
func TestPeakOfBursts(t *testing.T) {
	const total, flight, each = 2000, 64, 100 * time.Microsecond // a message takes that long
	start := time.Unix(0, 0)
	for _, c := range []struct {
		messages int
		every    time.Duration // the reader runs that often, for two completions and, 10 us later, the rest
	}{{total, each}, {total, time.Millisecond}, {total, 4 * time.Millisecond}, {total, flight * each}, {0, each}, {0, 6 * time.Millisecond}} {
		m := newMeter(c.messages, flight)
		m.begin(start)
		read := 0
		for at := c.every; read < total; at += c.every {
			ready := min(total, int(at/each))
			first := min(2, ready-read)
			m.add(start.Add(at), first)
			m.add(start.Add(at+10*time.Microsecond), ready-read-first)
			read = ready
		}
		const link = float64(time.Second / each)
		if r := m.rate(); r.count != total || r.peak > link || r.peak < r.avg || r.avg < link*0.9 {
			t.Errorf("%d messages, read every %v: peak %.0f, average %.0f a second on a link of %.0f", c.messages, c.every, r.peak, r.avg, link)
		}
	}
}

// TestPeakOfOneRead: what a reader that had stood still finds at once is no peak.
func TestPeakOfOneRead(t *testing.T) {
	m := newMeter(200, 64)
	start := time.Unix(0, 0)
	m.begin(start)
	for i := range 10 {
		at := start.Add(time.Duration(i+1) * 3 * time.Millisecond)
		m.add(at, 1)
		m.add(at.Add(time.Microsecond), 19)
		m.add(at.Add(2*time.Microsecond), 0)
	}
	if r := m.rate(); r.peak > r.avg*1.2 {
		t.Errorf("peak %.0f, average %.0f a second", r.peak, r.avg)
	}
}
