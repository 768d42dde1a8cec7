// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"fmt"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/gleam-rdma/gleam/dataplane/spsc"
)

// Every frame is in exactly one place: the depot, one of its pools, or with whoever
// took it; what is reserved can be taken, and a pool does not hoard.
func TestDepotKeepsEveryFrame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frames := rapid.IntRange(16, 3000).Draw(t, "frames")
		u, err := NewUmem(frames, 2048)
		if err != nil {
			t.Fatal(err)
		}
		defer u.Close()
		d := NewDepot(u, rapid.IntRange(1, 4).Draw(t, "pools"))
		var pools []*Pool
		for range d.pools {
			pools = append(pools, d.Pool())
		}
		taken := make(map[uint64]bool)
		var order []uint64
		take := func(a uint64) {
			if taken[a] {
				t.Fatalf("frame %#x was taken twice", a)
			}
			taken[a] = true
			order = append(order, a)
		}
		for range rapid.IntRange(1, 60).Draw(t, "ops") {
			p := rapid.SampledFrom(pools).Draw(t, "pool")
			switch rapid.IntRange(0, 3).Draw(t, "op") {
			case 0:
				addrs := make([]uint64, rapid.IntRange(1, 300).Draw(t, "n"))
				free := d.Len() + p.Len()
				n := p.Take(addrs)
				if n != min(len(addrs), free) {
					t.Fatalf("took %d of %d, %d were free", n, len(addrs), free)
				}
				for _, a := range addrs[:n] {
					take(a)
				}
			case 1:
				n := rapid.IntRange(0, 700).Draw(t, "n")
				free := d.Len() + p.Len()
				got := p.Reserve(n)
				if got != p.Len() || got < min(n, free) {
					t.Fatalf("reserved %d of %d, %d were free", got, n, free)
				}
				for range min(len(order), rapid.IntRange(0, 80).Draw(t, "given")) { // to give does not undo it
					a := order[len(order)-1]
					order = order[:len(order)-1]
					delete(taken, a)
					p.GiveOne(a)
				}
				if p.Len() < min(n, free) {
					t.Fatalf("%d are left of %d reserved ones", p.Len(), n)
				}
				for i := range min(n, free) {
					a, ok := p.TakeOne()
					if !ok {
						t.Fatalf("frame %d of %d reserved ones cannot be taken", i, n)
					}
					take(a)
				}
			default:
				n := rapid.IntRange(0, len(order)).Draw(t, "n")
				p.Give(order[:n])
				for _, a := range order[:n] {
					delete(taken, a)
				}
				order = order[n:]
			}
			sum := d.Len() + len(order)
			for _, p := range pools {
				if p.Len() > p.max {
					t.Fatalf("a pool hoards %d frames, %d at most", p.Len(), p.max)
				}
				sum += p.Len()
			}
			if sum != frames {
				t.Fatalf("%d frames, there are %d", sum, frames)
			}
		}
	})
}

// Frames that wander from worker to worker, and come back by the depot, have one
// owner at a time: under -race, neither their bytes nor the notes are touched by
// two.
func TestDepotAmongWorkers(t *testing.T) {
	const workers, rounds = 4, 3000
	u, err := NewUmem(512, 2048)
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	d := NewDepot(u, workers)
	pools := make([]*Pool, workers)
	rings := make([]*spsc.Ring[uint64], workers) // from worker i to the next one
	for i := range workers {
		pools[i], rings[i] = d.Pool(), spsc.New[uint64](64)
	}
	errs := make(chan error, workers)
	var sent sync.WaitGroup
	sent.Add(workers)
	all := make(chan struct{})
	go func() { sent.Wait(); close(all) }()
	for i := range workers {
		go func() {
			errs <- func() error {
				p, out, in := pools[i], rings[i], rings[(i+workers-1)%workers]
				drain := func() error {
					n := in.Len(1)
					for k := range n {
						a := in.At(k)
						if b := u.Data(a, 2); b[0] != byte(a>>11) || b[1] != byte((i+workers-1)%workers) {
							return fmt.Errorf("worker %d: frame %#x holds %v", i, a, b)
						}
						p.GiveOne(a)
					}
					in.Release(n)
					return nil
				}
				for range rounds {
					for range 40 {
						a, ok := p.TakeOne()
						if !ok {
							break
						}
						b := u.Data(a, 2)
						b[0], b[1] = byte(a>>11), byte(i)
						if !out.Put(a) {
							p.GiveOne(a)
						}
					}
					out.Publish()
					if err := drain(); err != nil {
						sent.Done()
						return err
					}
				}
				sent.Done()
				<-all
				return drain()
			}()
		}()
	}
	for range workers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	sum := d.Len()
	for _, p := range pools {
		sum += p.Len()
	}
	if sum != u.Frames() {
		t.Errorf("%d frames are free, there are %d", sum, u.Frames())
	}
}

// BenchmarkDepot is one frame taken and given: from a pool of its own, and from one
// that loses every batch to another worker and has to fetch the next.
func BenchmarkDepot(b *testing.B) {
	u, err := NewUmem(4096, 2048)
	if err != nil {
		b.Fatal(err)
	}
	defer u.Close()
	d := NewDepot(u, 2)
	for _, c := range []struct {
		name     string
		from, to *Pool
	}{{"own", d.Pool(), nil}, {"wandering", d.Pool(), d.Pool()}} {
		if c.to == nil {
			c.to = c.from
		}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				a, ok := c.from.TakeOne()
				if !ok {
					b.Fatal("no frame")
				}
				c.to.GiveOne(a)
			}
		})
	}
}
