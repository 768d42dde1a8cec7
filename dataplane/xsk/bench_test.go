// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"fmt"
	"testing"
)

// BenchmarkRing is one entry's way through a ring in plain memory, both sides on
// one CPU, in batches: what the indices and barriers cost, not the cache lines
// that move to the kernel's CPU.
func BenchmarkRing(b *testing.B) {
	for _, batch := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			ours, kernels := ends[Desc](DefaultRingSize, 0)
			var sum uint64
			b.ReportAllocs()
			b.ResetTimer()
			for done := 0; done < b.N; done += batch {
				if ours.room(batch) < batch {
					b.Fatal("no room")
				}
				for i := range batch {
					ours.put(i, Desc{Addr: uint64(i), Len: 1082})
				}
				ours.publish(batch)
				if kernels.available(batch) < batch {
					b.Fatal("nothing there")
				}
				for i := range batch {
					sum += kernels.get(i).Addr
				}
				kernels.release(batch)
			}
			if batch > 1 && sum == 0 {
				b.Fatal("the entries were not those put in")
			}
		})
	}
}

// BenchmarkSocketCycle is a frame's whole way through a socket without the
// kernel's part of it: Fill, Receive, Send and Complete, with the ownership notes
// that each keeps. The socket is called as workers call it.
func BenchmarkSocketCycle(b *testing.B) {
	const batch = 64
	u, err := NewUmem(1024, 4096)
	if err != nil {
		b.Fatal(err)
	}
	s := &Socket{umem: u, id: firstSocketID, fd: -1}
	ours, rx := ends[Desc](DefaultRingSize, 0)
	s.rx = *ours
	ours, tx := ends[Desc](DefaultRingSize, 0)
	s.tx = *ours
	addresses, fill := ends[uint64](DefaultRingSize, 0)
	s.fill = *addresses
	addresses, comp := ends[uint64](DefaultRingSize, 0)
	s.completion = *addresses
	q := asQueue(s)
	pool := NewPool(u)
	addrs := make([]uint64, batch)
	descs := make([]Desc, batch)
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; done += batch {
		pool.Give(addrs[q.Fill(addrs[:pool.Take(addrs)]):])
		for i := range fill.available(batch) { // the kernel receives
			rx.put(i, Desc{Addr: fill.get(i) + headroom, Len: 1082})
		}
		fill.release(batch)
		rx.publish(batch)
		if q.Receive(descs) != batch || q.Send(descs) != batch {
			b.Fatal("a frame was not taken")
		}
		for i := range tx.available(batch) { // the kernel sends
			comp.put(i, tx.get(i).Addr)
		}
		tx.release(batch)
		comp.publish(batch)
		if q.Complete(addrs) != batch {
			b.Fatal("a frame did not complete")
		}
		pool.Give(addrs)
	}
}

// asQueue hides the type from the compiler, which would call the methods directly.
//
//go:noinline
func asQueue(s *Socket) Queue { return s }
