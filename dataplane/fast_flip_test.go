// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/test/labtest"
)

// flip takes the group back from the programs, or makes one of its legs late, as a copy does
// that could not be made: it gets what it lacks from the ring, and its gate is opened.
func (w *worker) flip(r *rand.Rand) {
	f := w.fast.of(0)
	if f.step != fastGranted {
		return
	}
	if r.IntN(2) == 0 {
		w.takeBack(f, whyChange)
		return
	}
	k := r.IntN(len(f.gates))
	if !f.gates[k].open {
		return
	}
	delta := f.gates[k].delta
	w.shutGate(f, k)
	if w.reportGroup(f); f.step != fastGranted {
		return
	}
	next := f.ring.Gate(k).Next
	if next == f.reported || !w.giveBack(f, k, next, delta, w.now+fastDrain) {
		f.openGate(k, f.reported, delta)
	}
}

// The paths are exchanged every few hundred microseconds under load, and legs fall behind and
// come back. Nothing is lost, and the source is asked for nothing again. A receiver may have
// to be repaired from the store: 6 to 14 times in 600 exchanges, with a drain of 200 µs and of
// 2 ms, for a reason that is not known (README, limits).
func TestFastFlips(t *testing.T) {
	x := newFastLab(t, fastLabConfig{hosts: 4, change: func(x *fastLab) {
		x.plane.workers.all[0].fast.shared.backoff = 100 * time.Microsecond
	}})
	x.steady(0, func() { x.send(0, 5, 10000, x.all(0)...) })
	before, machine := x.state(), labtest.Watch()
	const repaired = 20 // exchanges for one repair, at most
	naks := x.hosts[0].qp.Stats().NAKs
	while(func(stop <-chan struct{}) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		r := rand.New(rand.NewPCG(seed, 1))
		w := x.plane.workers.all[0]
		for tick := time.NewTicker(300 * time.Microsecond); ; {
			select {
			case <-stop:
				return
			case <-tick.C:
				w.do(func() { w.flip(r) })
			}
		}
	}, func() { x.send(0, 60, 10000, x.all(0)...) })
	s := x.state()
	a, b := s.Status.Counters, before.Status.Counters
	t.Logf("%d grants, %d of %d packets by the programs; %d copies out of the store, %d probes", s.Fast.Grants-before.Fast.Grants,
		s.Fast.Packets-before.Fast.Packets, a.DataIn-b.DataIn, a.Resent-b.Resent, a.Probes-b.Probes)
	if s.Fast.Grants-before.Fast.Grants < 20 || a.Resent == b.Resent {
		t.Errorf("the paths were not exchanged: %+v", s.Fast)
	}
	if n, m := a.NAKsServed-b.NAKsServed, x.hosts[0].qp.Stats().NAKs-naks; n > (s.Fast.Grants-before.Fast.Grants)/repaired || m > 0 {
		machine.Timing(t, "%d NAKs were served, and the source got %d", n, m)
	}
}
