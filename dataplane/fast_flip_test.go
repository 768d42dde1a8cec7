// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/lab"
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
	if k := r.IntN(len(f.gates)); f.gates[k].open {
		w.reopenGate(f, k)
	}
}

// during has the worker do something again and again, at least that time apart, while the first
// member writes its window some times.
func (x *fastLab) during(pause time.Duration, times int, do func(*worker)) {
	x.Helper()
	while(func(stop <-chan struct{}) {
		w := x.plane.workers.all[0]
		for tick := time.NewTicker(pause); ; {
			select {
			case <-stop:
				return
			case <-tick.C:
				w.do(func() { do(w) })
			}
		}
	}, func() { x.send(0, times, 10000, x.all(0)...) })
}

// losses returns how many frames have found no room in a veth, which drops them.
func (x *fastLab) losses() (n uint64) {
	x.Helper()
	count := func(ns *lab.Namespace, name string) {
		link, err := ns.Handle().LinkByName(name)
		if err != nil {
			x.Fatal(err)
		}
		s := link.Attrs().Statistics
		n += s.TxDropped + s.RxDropped
	}
	for i, h := range x.star.Hosts {
		count(x.star.Switch, x.star.Ports[i])
		count(h.NS, h.Interface)
		n += x.plane.workers.all[0].fast.shared.targets.transmitted(i).Lost
	}
	return n
}

// The paths are exchanged every few hundred microseconds under load, and legs fall behind and
// come back. Nothing is lost, nobody sees a packet out of order, and the source is asked for
// nothing again.
func TestFastFlips(t *testing.T) {
	x := newFastLab(t, fastLabConfig{hosts: 4, change: func(x *fastLab) {
		x.plane.workers.all[0].fast.shared.backoff = 100 * time.Microsecond
	}})
	x.send(0, 2, 10000, x.all(0)...)
	machine, before, losses, naks := labtest.Watch(), x.state(), x.losses(), x.hosts[0].qp.Stats().NAKs
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	x.during(300*time.Microsecond, 60, func(w *worker) { w.flip(r) })
	s := x.state()
	a, b := s.Status.Counters, before.Status.Counters
	t.Logf("%d grants, %d of %d packets by the programs; %d copies out of the store, %d probes", s.Fast.Grants-before.Fast.Grants,
		s.Fast.Packets-before.Fast.Packets, a.DataIn-b.DataIn, a.Resent-b.Resent, a.Probes-b.Probes)
	losses = x.losses() - losses
	if served, source := a.NAKsServed-b.NAKsServed, x.hosts[0].qp.Stats().NAKs-naks; served+source > losses {
		// Two ways to a port change places after a time (fastDrain), which a machine that is full exceeds.
		machine.Timing(t, "%d NAKs were served, and the source got %d; %d copies were lost", served, source, losses)
	}
	if s.Fast.Grants-before.Fast.Grants < 20 || a.Resent == b.Resent {
		machine.Timing(t, "the paths were not exchanged: %+v", s.Fast)
	}
}

// A group is taken back while the gate of a leg has let packets not pass that the others have
// got. The leg gets them from the ring before anything new, and need not ask for them.
func TestFastTakenBackWithALegBehind(t *testing.T) {
	x := newFastLab(t, fastLabConfig{hosts: 3})
	x.send(0, 2, 10000, x.all(0)...)
	machine, before, losses, behind := labtest.Watch(), x.state().Status.Counters, x.losses(), 0
	x.during(3*time.Millisecond, 15, func(w *worker) {
		f := w.fast.of(0)
		if f.step != fastGranted {
			return
		}
		k := behind % len(f.gates)
		gate := f.ring.Shut(k)
		for end := time.Now().Add(5 * time.Millisecond); f.ring.State().Hi == gate.Next && time.Now().Before(end); {
			runtime.Gosched()
		}
		if f.gates[k].open && f.ring.State().Hi != gate.Next {
			behind++
		}
		w.takeBack(f, whyChange)
	})
	after := x.state().Status.Counters
	naks, losses := after.NAKsServed-before.NAKsServed, x.losses()-losses
	t.Logf("taken back %d times with a leg behind; %d copies out of the store", behind, after.Resent-before.Resent)
	if naks > losses {
		machine.Timing(t, "receivers sent %d NAKs; %d copies were lost", naks, losses)
	}
	if behind == 0 {
		machine.Timing(t, "the group was never taken back with a leg behind")
	}
}
