// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/test/xsktest"
)

// ringOn is a TX ring on a queue without a kernel.
type ringOn struct {
	txRing
	q     *xsktest.Queue
	pool  *xsk.Pool
	addrs []uint64
}

func newRingOn(t testing.TB, frames, ring int) *ringOn {
	t.Helper()
	u, err := xsk.NewUmem(frames, 2048)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.Close() })
	q := xsktest.New(u, xsktest.Config{Ring: ring, MultiBuffer: true})
	return &ringOn{newTXRing(q, ring), q, xsk.NewPool(u), make([]uint64, 4)}
}

// packet takes the frames of a packet with buffers of n bytes.
func (r *ringOn) packet(buffers, n int) (ds []xsk.Desc) {
	for range buffers {
		a, _ := r.pool.TakeOne()
		ds = append(ds, xsk.Desc{Addr: a, Len: uint32(n), Options: xsk.PktContd})
	}
	ds[buffers-1].Options = 0
	return ds
}

// The account agrees with the frames that were put and have not come back, and no frame is
// lost, for any number of frames that the kernel takes and completes at a time.
func TestTXRingAccount(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := newRingOn(t, 64, 16)
		r.q.HoldCompletions = true
		var p progress
		var inRing [][]xsk.Desc // descriptors by packet
		packets := uint64(0)
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			switch rapid.IntRange(0, 3).Draw(rt, "step") {
			case 0:
				buffers := rapid.IntRange(1, 3).Draw(rt, "buffers")
				if r.pool.Len() < buffers {
					break
				}
				ds := r.packet(buffers, rapid.IntRange(60, 2000).Draw(rt, "bytes"))
				if left := r.put(ds); len(left) > 0 {
					if len(left) != buffers || r.q.TxRoom() >= buffers {
						rt.Fatalf("%d of %d buffers are left with room for %d", len(left), buffers, r.q.TxRoom())
					}
					for _, d := range left {
						r.pool.GiveOne(d.Addr)
					}
					break
				}
				packets++
				for _, d := range ds {
					inRing = append(inRing, []xsk.Desc{d})
				}
			case 1:
				r.q.Budget = rapid.IntRange(0, 8).Draw(rt, "budget")
				if err := r.kick(time.Hour, &p); err != nil {
					rt.Fatal(err)
				}
			case 2:
				r.q.Finish(rapid.IntRange(0, 8).Draw(rt, "finished"))
			case 3:
				before := r.pool.Len()
				any := r.complete(r.pool, r.addrs)
				n := r.pool.Len() - before
				if any != (n > 0) {
					rt.Fatalf("%d frames completed, said %v", n, any)
				}
				inRing = inRing[n:]
			}
			bytes := 0
			for _, d := range inRing {
				bytes += descLinkBytes(d[0])
			}
			if r.frames() != len(inRing) || r.bytes != bytes || r.packets != packets || r.pool.Len()+r.frames() != 64 {
				rt.Fatalf("%d frames with %d bytes of %d packets, want %d with %d of %d; %d are free", r.frames(), r.bytes, r.packets, len(inRing), bytes, packets, r.pool.Len())
			}
		}
	})
}

// A kernel that takes nothing is kicked less and less often; one that takes something is
// kicked again at once.
func TestTXRingKicks(t *testing.T) {
	r := newRingOn(t, 64, 16)
	r.q.Budget = 0
	for range 4 {
		r.put(r.packet(1, 100))
	}
	kicks := func() uint64 {
		s, err := r.q.Stats()
		if err != nil {
			t.Fatal(err)
		}
		return s.Kicks
	}
	p := progress{last: time.Second}
	at := time.Second
	for i, gap := range []time.Duration{minTXRetry, minTXRetry, minTXRetry} {
		before := kicks()
		if err := r.kick(at, &p); err != nil || kicks() != before+1 || r.kickAt != at+gap {
			t.Fatalf("kick %d: %v, %d more kicks, the next %v later; want one and %v", i, err, kicks()-before, r.kickAt-at, gap)
		}
		if r.kick(r.kickAt-1, &p); kicks() != before+1 {
			t.Errorf("kick %d: kicked again before its time", i)
		}
		at = r.kickAt
	}
	for _, c := range []struct{ since, gap time.Duration }{{8 * time.Millisecond, time.Millisecond}, {time.Second, maxTXRetry}} {
		if r.kick(p.last+c.since, &p); r.kickAt != p.last+c.since+c.gap {
			t.Errorf("%v without progress: kicked again after %v, want %v", c.since, r.kickAt-p.last-c.since, c.gap)
		}
	}
	r.q.Budget = 1
	at = r.kickAt
	if err := r.kick(at, &p); err != nil || p.last != at || r.kickAt != at+minTXRetry {
		t.Errorf("%v, progress at %v, the next kick at %v; want %v and %v", err, p.last, r.kickAt, at, at+minTXRetry)
	}
	// Frames that the kernel takes without a kick, as by a poll, are progress too.
	if err := xsktestPoll(r.q); err != nil {
		t.Fatal(err)
	}
	before := kicks()
	if err := r.kick(at+1, &p); err != nil || kicks() != before+1 {
		t.Errorf("%v, %d kicks after the kernel went on, want 1 before the time", err, kicks()-before)
	}
	r.q.Budget = -1
	if err := r.kick(time.Minute, &p); err != nil || r.kickAt != 0 {
		t.Errorf("%v, to be kicked at %v with nothing left", err, r.kickAt)
	}
	before = kicks()
	if err := r.kick(time.Hour, &p); err != nil || kicks() != before || p.last != time.Minute {
		t.Errorf("%v, %d kicks of an empty ring, progress at %v", err, kicks()-before, p.last)
	}
	r.put(r.packet(1, 100))
	r.q.SetDown(true)
	if err := r.kick(2*time.Hour, &p); !errors.Is(err, xsk.ErrDown) || r.kickAt == 0 {
		t.Errorf("%v, to be kicked at %v; want ErrDown and another time", err, r.kickAt)
	}
}

// xsktestPoll has the kernel take from q's ring as a poll does.
func xsktestPoll(q *xsktest.Queue) error {
	_, err := xsktest.NewPoller(q).Wait(0)
	return err
}
