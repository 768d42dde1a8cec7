// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/dataplane/trace"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
)

// BenchmarkLoop is what the whole loop of a worker spends on a packet, over ports without
// a kernel: data for three receivers, and their ACKs.
func BenchmarkLoop(b *testing.B) { benchmarkLoop(b, nil) }

// BenchmarkLoopTraced is BenchmarkLoop while a trace runs that records another group, or the
// headers of everything. The records are read between the batches, in no time that counts.
func BenchmarkLoopTraced(b *testing.B) {
	b.Run("another group", func(b *testing.B) {
		benchmarkLoop(b, &trace.Filter{Groups: []netip.Addr{netip.MustParseAddr("192.0.2.1")}})
	})
	b.Run("all headers", func(b *testing.B) { benchmarkLoop(b, &trace.Filter{}) })
}

func benchmarkLoop(b *testing.B, f *trace.Filter) {
	const batch, receivers = 64, 3
	x := newBenchOn(b, lab.StarConfig{Hosts: receivers + 1}, 1024, 4096)
	x.repair(b, 0)
	w := x.w
	for _, port := range x.fake.queues {
		port[0].Discard = true
	}
	if f != nil {
		w.tracing = newTracing(trace.NewRecorder(f))
	}
	arrive := func(i int, k rocev2.Packet, payload []byte) {
		if !x.fake.queues[i][0].Arrive(x.build(i, &k, payload)) {
			b.Fatal("a frame is lost")
		}
	}
	step := func(want int) time.Duration {
		start := time.Now()
		n := w.runBatch()
		d := time.Since(start)
		if n != want {
			b.Fatalf("%d packets in a batch, want %d", n, want)
		}
		if f != nil {
			for w.tracing.Read(1024, func(*trace.Record) {}) > 0 {
			}
		}
		return d
	}
	var data, acks time.Duration
	payload := make([]byte, 1024)
	psn := rocev2.PSN(0)
	rounds := 0
	b.ReportAllocs()
	for b.Loop() {
		for i := range batch {
			arrive(0, rocev2.Packet{Op: rocev2.SendOnly, PSN: psn.Add(int32(i)), AckReq: true}, payload)
		}
		data += step(batch)
		for r := 1; r <= receivers; r++ {
			for i := range batch {
				arrive(r, rocev2.Packet{Op: rocev2.Acknowledge, PSN: psn.Add(int32(1000*r + i)), Syndrome: rocev2.SyndromeACK}, nil)
			}
			acks += step(batch)
		}
		psn = psn.Add(batch)
		rounds++
	}
	if n := uint64(rounds * batch); w.count.copies != receivers*n || w.count.feedbackIn != receivers*n {
		b.Fatalf("%d copies, %d ACKs; drops %v", w.count.copies, w.count.feedbackIn, w.count.drops())
	}
	if f != nil {
		if lost, _ := w.tracing.Unrecorded(); lost > 0 {
			b.Fatalf("%d packets were not recorded", lost)
		}
	}
	b.ReportMetric(float64(data.Nanoseconds())/float64(rounds*batch), "ns/data-packet")
	b.ReportMetric(float64(acks.Nanoseconds())/float64(rounds*batch*receivers), "ns/ACK")
}
