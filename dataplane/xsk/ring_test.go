// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// ends returns two views of one ring in plain memory: ours, and the one that the
// kernel would have. Both indices start at start.
func ends[T uint64 | Desc](size int, start uint32) (ours, kernels *ring[T]) {
	var shared struct{ producer, consumer, flags uint32 }
	shared.producer, shared.consumer = start, start
	r := ring[T]{
		producer: &shared.producer, consumer: &shared.consumer, flags: &shared.flags,
		entries: make([]T, size), mask: uint32(size - 1), prod: start, cons: start,
	}
	k := r
	return &r, &k
}

// Whatever the two sides do, in whatever batches, and also where the indices
// wrap at 2^32: the ring is a queue of bounded length.
func TestRingIsAQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := 1 << rapid.IntRange(0, 5).Draw(t, "log2 size")
		start := rapid.OneOf(rapid.Just(uint32(0)), rapid.Uint32Min(1<<32-100)).Draw(t, "start")
		producer, consumer := ends[uint64](size, start)
		var model []uint64
		next := uint64(1)
		t.Repeat(map[string]func(*rapid.T){
			"produce": func(t *rapid.T) {
				want := rapid.IntRange(1, size).Draw(t, "n")
				room := producer.room(want)
				if room > size-len(model) {
					t.Fatalf("room for %d, but %d of %d places are taken", room, len(model), size)
				}
				if n := size - len(model); want <= n && room < want {
					t.Fatalf("room for %d where there is for %d and %d are wanted", room, n, want)
				}
				n := min(want, room)
				for i := range n {
					producer.put(i, next)
					model = append(model, next)
					next++
				}
				producer.publish(n)
			},
			"consume": func(t *rapid.T) {
				want := rapid.IntRange(1, size).Draw(t, "n")
				n := consumer.available(want)
				if n > len(model) || n < min(want, len(model)) {
					t.Fatalf("%d available of %d wanted, where %d are in the queue", n, want, len(model))
				}
				n = min(n, want)
				for i := range n {
					if got := consumer.get(i); got != model[i] {
						t.Fatalf("entry %d is %d, want %d", i, got, model[i])
					}
				}
				consumer.release(n)
				model = slices.Delete(model, 0, n)
			},
			"unconsumed": func(t *rapid.T) {
				if n := producer.unconsumed(); n != len(model) {
					t.Fatalf("%d unconsumed, want %d", n, len(model))
				}
			},
		})
	})
}

// The two sides run at the same time; the race detector watches whether what is
// read was published before.
func TestRingConcurrently(t *testing.T) {
	const total = 200_000
	producer, consumer := ends[Desc](64, 1<<32-1000)
	go func() {
		for next := uint64(0); next < total; {
			n := min(producer.room(16), 16, int(total-next))
			if n == 0 {
				runtime.Gosched()
				continue
			}
			for i := range n {
				producer.put(i, Desc{Addr: next, Len: uint32(next), Options: ^uint32(next)})
				next++
			}
			producer.publish(n)
		}
	}()
	for next := uint64(0); next < total; {
		n := min(consumer.available(32), 32)
		if n == 0 {
			runtime.Gosched()
			continue
		}
		for i := range n {
			if got, want := consumer.get(i), (Desc{Addr: next, Len: uint32(next), Options: ^uint32(next)}); got != want {
				t.Fatalf("entry %d is %+v", next, got)
			}
			next++
		}
		consumer.release(n)
	}
}

func TestNeedWakeup(t *testing.T) {
	r, _ := ends[uint64](1, 0)
	if r.needWakeup() {
		t.Error("needs a wake-up without the flag")
	}
	atomic.StoreUint32(r.flags, 1)
	if !r.needWakeup() {
		t.Error("the flag is not seen")
	}
}
