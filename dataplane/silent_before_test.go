// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"testing"

	"github.com/gleam-rdma/gleam/lab"
)

// TestSettle: what has come before a call is served by it, all of a full ring.
func TestSettle(t *testing.T) {
	cfg := fakeConfig(t, 2, "umem: {frames: 4096}\n", "")
	s := newFakeStar(t, lab.StarConfig{Hosts: 2}, cfg)
	w := s.all[0]
	n := 0
	for s.queues[1][0].Arrive(make([]byte, 60)) {
		n++
	}
	if n < cfg.Rings.RX {
		t.Fatalf("%d frames fill the ring", n)
	}
	w.settle(cfg.Rings.RX)
	if got := w.ports[1].rxFrames; got != uint64(n) {
		t.Errorf("%d of %d frames were served", got, n)
	}
}

// TestSilentBefore: it is at most the time since the ports were opened.
func TestSilentBefore(t *testing.T) {
	cfg := fakeConfig(t, 2, "umem: {frames: 4096}\nworker: {cpu: [-1, -1]}\n", "")
	s := newFakeStar(t, lab.StarConfig{Hosts: 2}, cfg)
	p := &Plane{cfg: cfg, workers: s.workers, start: s.all[0].start}
	for range 3 {
		s.queues[1][0].Arrive(make([]byte, 60))
	}
	if _, err := s.run(func() {
		before := p.Now()
		if q := p.SilentFor(); q < before || q > p.Now() {
			t.Errorf("silent for %v, the clock says %v", q, p.Now())
		}
	}); err != nil {
		t.Fatal(err)
	}
	var served uint64
	for _, w := range s.all {
		served += w.ports[1].rxFrames
	}
	if served != 3 {
		t.Errorf("%d of 3 frames were served", served)
	}
	if q := p.SilentFor(); q != 0 {
		t.Errorf("silent for %v, and the workers have ended", q)
	}
}
