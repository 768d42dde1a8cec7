// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

func TestR77_TurnsEnd(t *testing.T)     { runTranscript(t) }
func TestR78_TurnsAreKept(t *testing.T) { runTranscript(t) }
func TestR79_TurnsNotCut(t *testing.T)  { runTranscript(t) }

// share lets sources that never pause share a group for time d, with the given number of
// sources. It returns the number of acknowledged packets of each.
func share(t *testing.T, sources int, turns, d time.Duration) (done []int) {
	n := &network{tb: t, passed: map[rocev2.PSN]severity{}, silenced: -1, rng: random(7), timer: 67 * time.Millisecond, rnrTimers: true, turnTime: turns}
	n.build(4, 0, 0)
	n.full = 0
	for i, h := range n.hosts {
		h.rnrLeft, h.maxUnacked, h.strict = 0, 16, i%2 == 0
		h.pause = func() time.Duration { return 100 * time.Microsecond } // the time that a receiver takes for a packet
		if i < sources {
			for range 2_000 {
				h.ops = append(h.ops, message(1+n.rng(9))...)
			}
			n.after(time.Duration(i)*time.Microsecond, h.start)
		}
	}
	for n.step(d - 1) {
	}
	for _, h := range n.hosts[:sources] {
		if h.una == len(h.ops) {
			t.Fatalf("host %d has sent all, %d packets", h.id, h.una)
		}
		done = append(done, h.una)
	}
	return done
}

// TestR77_NobodyStarves: sources that never pause get equal shares of a group, and
// together they send nearly as much as a single one. With turns that do not end, all but
// one starve.
func TestR77_NobodyStarves(t *testing.T) {
	const d = 300 * time.Millisecond
	alone := share(t, 1, 0, d)[0]
	for _, sources := range []int{2, 3} {
		done, sum := share(t, sources, 0, d), 0
		for _, n := range done {
			sum += n
		}
		t.Logf("%d sources: %v packets, %.2f of what one sends alone", sources, done, float64(sum)/float64(alone))
		for i, n := range done {
			if fair := sum / sources; n < fair*2/3 || n > fair*3/2 {
				t.Errorf("source %d of %d: %d of %d packets", i, sources, n, sum)
			}
		}
		if sum < alone*85/100 {
			t.Errorf("%d sources send %d packets, one alone %d", sources, sum, alone)
		}
	}
	if done := share(t, 2, -1, d); done[1] != 0 || done[0] < alone*99/100 {
		t.Errorf("without turns: %v, one alone %d", done, alone)
	}
}
