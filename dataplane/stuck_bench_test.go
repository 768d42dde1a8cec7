// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// BenchmarkBesideStuckPort is the CPU time that a packet to one receiver costs in
// batches of 32, sent, acknowledged and flushed: alone, beside a receiver in the same
// group whose port transmits, and beside one whose port does not transmit at all.
func BenchmarkBesideStuckPort(b *testing.B) {
	for _, repair := range []bool{false, true} {
		for _, other := range []string{"alone", "transmits", "stuck"} {
			name := other
			if repair {
				name += "/repair"
			}
			b.Run(name, func(b *testing.B) { benchmarkBesideStuckPort(b, other, repair) })
		}
	}
}

func benchmarkBesideStuckPort(b *testing.B, other string, repair bool) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	x, stop, _ := stuckBench(b, 3, 1)
	w := x.w
	x.spec.Policy = mcast.Evict
	x.repair(b, 1<<20)
	if !repair {
		x.repair(b, 0)
	}
	switch other {
	case "alone":
		w.removeMember(0, 2)
	case "stuck":
		stop()
		for range 2000 {
			stageOne(w, 2)
			w.flush()
		}
	}
	payload := make([]byte, 1024)
	psn := rocev2.PSN(0)
	const batch = 32
	before := cpuTime()
	for b.Loop() {
		w.now = w.readClock()
		w.fireDeadlines()
		for range batch {
			w.servePacket(0, x.take(0, &rocev2.Packet{Op: rocev2.SendOnly, PSN: psn, AckReq: psn%16 == 15}, payload))
			psn = psn.Next()
		}
		x.say(1, psn.Prev(), rocev2.SyndromeACK)
		if other == "transmits" {
			x.say(2, psn.Prev(), rocev2.SyndromeACK)
		}
		w.flush()
	}
	b.ReportMetric(float64(cpuTime()-before)/float64(b.N*batch), "cpu-ns/packet")
	if n := w.ports[1].ring.packets; n < uint64(psn) {
		b.Fatalf("%d of %d copies left for the receiver whose port transmits; drops %v", n, psn, w.count.drops())
	}
}

// cpuTime returns the CPU time of this thread in nanoseconds.
func cpuTime() int64 {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_THREAD, &u) // fails for a bad argument only
	return u.Utime.Nano() + u.Stime.Nano()
}
