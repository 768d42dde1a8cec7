// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestQueueOrder compares the queue with a sorted list, with events near and far, in crowds and
// alone, with events that are made while others of their time are served, and with windows.
func TestQueueOrder(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 1))
		q := newQueue(0)
		var want []event
		spread := []int64{3, 1000, 1 << 20, 1 << 32}[seed%4]
		add := func(from Time) {
			e := event{at: from + Time(r.Int64N(spread)), in: uint32(r.IntN(50)), key: r.Uint64()}
			if r.IntN(10) == 0 {
				e.at += Time(r.Int64N(1 << 40))
			}
			q.push(&e)
			i, _ := slices.BinarySearchFunc(want, e, compareEvents)
			want = slices.Insert(want, i, e)
		}
		for range 1000 {
			add(0)
		}
		left := 8_000
		var e event
		for until := Time(0); len(want) > 0; until += Time(r.Int64N(8 * spread)) {
			until = max(until, want[0].at) // often the very time of an event
			for q.pop(until, &e) {
				if e != want[0] || e.at >= until {
					t.Fatalf("seed %d: pop up to %d returns %v; want %v", seed, until, e, want[0])
				}
				want = want[1:]
				for range r.IntN(4) {
					if left > 0 {
						left--
						add(e.at)
					}
				}
			}
			at, ok := q.peek()
			if ok != (len(want) > 0) || ok && (at != want[0].at || at < until) {
				t.Fatalf("seed %d: peek returns %d, %v after pop up to %d; want %v", seed, at, ok, until, want[:min(1, len(want))])
			}
			if ok {
				until = max(until, at-1)
			}
		}
		if q.n != 0 || left > 0 {
			t.Fatalf("seed %d: %d events are left, %d were not made", seed, q.n, left)
		}
	}
}

func compareEvents(a, b event) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.in, b.in), cmp.Compare(a.key, b.key))
}

// BenchmarkQueue holds many events: each that is popped makes another one, one or two
// microseconds later.
func BenchmarkQueue(b *testing.B) {
	for _, n := range []int{100, 10_000, 1_000_000} {
		b.Run(map[int]string{100: "100", 10_000: "10k", 1_000_000: "1M"}[n], func(b *testing.B) {
			q := newQueue(0)
			x := uint64(1)
			push := func(from Time) {
				x = mix(x)
				q.push(&event{at: from + 1_000_000 + Time(x%1_000_000), in: uint32(x >> 40)})
			}
			for range n {
				push(0)
			}
			var e event
			for b.Loop() {
				q.pop(1<<62, &e)
				push(e.at)
			}
		})
	}
}

// TestQueueBegins: what is pushed first goes into buckets, not to the events that are being served,
// which are sorted in one by one.
func TestQueueBegins(t *testing.T) {
	for _, from := range []Time{0, -setup} {
		q := newQueue(from)
		q.push(&event{at: from + 1})
		q.push(&event{at: from})
		if len(q.today) != 0 {
			t.Errorf("from %d ps: %d events are being served", from, len(q.today))
		}
		var e event
		if !q.pop(from+1, &e) || e.at != from {
			t.Errorf("from %d ps: the first event is at %d", from, e.at)
		}
	}
}
