// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package spsc

import (
	"fmt"
	"runtime"
	"testing"

	"pgregory.net/rapid"
)

// Used by one goroutine, a ring is a bounded first-in-first-out queue whose
// entries show when they are published, and whose places are free when they are
// released.
func TestRingAgainstAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := New[int](1 << rapid.IntRange(0, 5).Draw(t, "size"))
		// Free-running indices wrap.
		start := rapid.SampledFrom([]uint32{0, 1<<32 - 3, 1<<32 - 20}).Draw(t, "start")
		r.tailLocal, r.headSeen, r.tailSeen = start, start, start
		r.tail.Store(start)
		r.head.Store(start)
		var put, published []int
		next := 0
		for range rapid.IntRange(1, 200).Draw(t, "ops") {
			switch rapid.IntRange(0, 3).Draw(t, "op") {
			case 0:
				ok := len(put)+len(published) < r.Size()
				if rapid.Bool().Draw(t, "in place") {
					place := r.Next()
					if (place != nil) != ok {
						t.Fatalf("Next is %v with %d and %d of %d", place, len(put), len(published), r.Size())
					}
					if ok {
						*place = next
						r.Commit()
					}
				} else if got := r.Put(next); got != ok {
					t.Fatalf("Put is %v with %d and %d of %d", got, len(put), len(published), r.Size())
				}
				if ok {
					put = append(put, next)
					next++
				}
			case 1:
				if n := r.Unpublished(); n != len(put) {
					t.Fatalf("%d unpublished, want %d", n, len(put))
				}
				if got := r.Publish(); got != (len(put) > 0) {
					t.Fatalf("Publish is %v with %d", got, len(put))
				}
				published, put = append(published, put...), nil
			case 2:
				n := r.Len(r.Size())
				if n != len(published) || r.Published() != n {
					t.Fatalf("%d to take, %d waiting; want %d", n, r.Published(), len(published))
				}
				for i := range n {
					if r.At(i) != published[i] || *r.Ref(i) != published[i] {
						t.Fatalf("entry %d is %d, want %d", i, r.At(i), published[i])
					}
				}
				some := rapid.IntRange(0, n).Draw(t, "take")
				r.Release(some)
				published = published[some:]
			case 3:
				if n := r.Room(r.Size()); n != r.Size()-len(put)-len(published) {
					t.Fatalf("room for %d with %d and %d of %d", n, len(put), len(published), r.Size())
				}
			}
		}
	})
}

// What one side wrote into the thing that an entry names is seen by the other:
// under -race, this is the hand-over of a frame.
func TestRingHandsOver(t *testing.T) {
	const items, boxes = 200_000, 64
	there, back := New[*[1]int](boxes), New[*[1]int](boxes)
	for range boxes {
		back.Put(new([1]int))
	}
	back.Publish()
	done := make(chan string)
	go func() {
		for want := 0; want < items; {
			n := there.Len(1)
			for i := range n {
				b := there.At(i)
				if b[0] != want {
					done <- fmt.Sprintf("item %d is %d", want, b[0])
					return
				}
				want++
				b[0] = -1
				if !back.Put(b) {
					done <- "no place for a box"
					return
				}
			}
			there.Release(n)
			back.Publish()
			if n == 0 {
				runtime.Gosched()
			}
		}
		done <- ""
	}()
	for sent := 0; sent < items; {
		n := min(back.Len(1), items-sent)
		for i := range n {
			b := back.At(i)
			b[0] = sent
			sent++
			if !there.Put(b) {
				t.Fatal("no place for a box")
			}
		}
		back.Release(n)
		there.Publish()
		if n == 0 {
			runtime.Gosched()
		}
	}
	if msg := <-done; msg != "" {
		t.Fatal(msg)
	}
}

func TestRingAllocatesNothing(t *testing.T) {
	r := New[[2]uint64](64)
	if n := testing.AllocsPerRun(100, func() {
		for i := range 64 {
			r.Put([2]uint64{uint64(i)})
		}
		r.Publish()
		n := r.Len(64)
		for i := range n {
			_ = r.At(i)
		}
		r.Release(n)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Sizes that are no powers of two are a mistake of the program, as is to release
// what was not there.
func TestRingPanics(t *testing.T) {
	for name, f := range map[string]func(){
		"size 0":  func() { New[int](0) },
		"size 3":  func() { New[int](3) },
		"release": func() { r := New[int](4); r.Put(1); r.Release(1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

// BenchmarkRing is what one entry of 16 bytes, a descriptor's size, costs on its
// way between two goroutines, published in batches.
func BenchmarkRing(b *testing.B) {
	for _, batch := range []int{1, 8, 32, 64} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			r := New[[2]uint64](1024)
			done := make(chan uint64)
			b.ReportAllocs()
			b.ResetTimer()
			go func() {
				var sum uint64
				for left := b.N; left > 0; {
					n := r.Len(1)
					for i := range n {
						sum += r.At(i)[0]
					}
					r.Release(n)
					left -= n
					if n == 0 {
						runtime.Gosched()
					}
				}
				done <- sum
			}()
			for i := 0; i < b.N; {
				if r.Room(batch) < batch {
					runtime.Gosched()
					continue
				}
				for range min(batch, b.N-i) {
					r.Put([2]uint64{1})
					i++
				}
				r.Publish()
			}
			if sum := <-done; sum != uint64(b.N) {
				b.Fatalf("%d entries came, %d went", sum, b.N)
			}
		})
	}
}
