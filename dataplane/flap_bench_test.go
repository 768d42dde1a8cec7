// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
)

// BenchmarkFlap is a link that goes down and up behind 100,000 groups of 4, of which some have a packet that the member there
// has not acknowledged, and that the source sends again when the link is up. longest-ms is the longest batch, in which no other
// port is served, by the CPU time of the thread; back-ms is the CPU time from when the link is up until all have acknowledged.
func BenchmarkFlap(b *testing.B) {
	for _, c := range []struct{ groups, active int }{{100_000, 0}, {100_000, 1000}, {100_000, 10_000}, {100_000, 100_000}} {
		b.Run(fmt.Sprintf("groups=%d/active=%d", c.groups, c.active), func(b *testing.B) { benchmarkFlap(b, c.groups, c.active) })
	}
}

func benchmarkFlap(b *testing.B, groups, active int) {
	const hosts, down = 4, 200 * time.Millisecond
	cfg := fakeConfig(b, hosts, fmt.Sprintf("umem: {frames: 1048576, frame_size: 2048}\nlimits: {groups: %d}\n", groups+1), "")
	s := newFakeStar(b, lab.StarConfig{Hosts: hosts}, cfg)
	x := newBenchOf(b, s.all[0], s.hosts, 1024)
	x.fake = s
	x.putMore(b, groups)
	w, free := x.w, x.w.pool.Len()
	last := s.queues[hosts-1][0]
	for _, q := range s.queues[:hosts-1] {
		q[0].Discard = true
	}
	payload := make([]byte, 1024)
	arrive := func(i int, k rocev2.Packet, payload []byte) {
		if !s.queues[i][0].Arrive(x.build(i, &k, payload)) {
			b.Fatal("a frame is lost")
		}
	}
	acknowledge := func(i int, psn rocev2.PSN) {
		arrive(i, rocev2.Packet{Op: rocev2.Acknowledge, PSN: psn.Add(int32(1000 * i)), Syndrome: rocev2.SyndromeACK}, nil)
	}
	psn := rocev2.PSN(0)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	send := func(id int, psn rocev2.PSN) {
		x.at(id, func() { arrive(0, rocev2.Packet{Op: rocev2.SendOnly, PSN: psn, AckReq: true}, payload) })
	}
	for b.Loop() {
		var longest, back time.Duration
		step := func() {
			begin := threadTime(b)
			w.runBatch()
			took := threadTime(b) - begin
			longest, back = max(longest, took), back+took
		}
		w.ports[hosts-1].down = true
		for id := 1; id <= active; id++ {
			send(id, psn)
			step()
			x.at(id, func() { acknowledge(1, psn); acknowledge(2, psn) })
			step()
		}
		for begin := time.Now(); time.Since(begin) < down; {
			step()
		}
		w.ports[hosts-1].down, back = false, 0
		begin, got := time.Now(), map[netip.Addr]bool{}
		for again := 1; len(got) < active || w.pool.Len() < free; {
			for k := 0; k < len(w.rx) && again <= active; k++ {
				send(again, psn)
				again++
			}
			step()
			if time.Since(begin) > 20*time.Second {
				b.Fatalf("%d of %d groups have got their packet; drops %v", len(got), active, w.count.drops())
			}
			for _, f := range last.Sent() {
				group, _ := netip.AddrFromSlice(f[rocev2.EthernetLen+12:][:4])
				got[group] = true
				was := x.group
				x.group = group
				acknowledge(hosts-1, psn)
				x.group = was
			}
		}
		b.ReportMetric(float64(longest.Microseconds())/1e3, "longest-ms")
		b.ReportMetric(float64(back.Microseconds())/1e3, "back-ms")
		psn = psn.Next()
	}
}

// threadTime returns the CPU time of the calling thread.
func threadTime(t testing.TB) time.Duration {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at); err != nil {
		t.Fatal(err)
	}
	return time.Duration(at.Nano())
}
