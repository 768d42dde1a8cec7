// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsktest

import (
	"testing"

	"github.com/gleam-rdma/gleam/dataplane/xsk"
)

func newUmem(t *testing.T, frames, size int) *xsk.Umem {
	t.Helper()
	u, err := xsk.NewUmem(frames, size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.Close() })
	return u
}

func TestConform(t *testing.T) {
	Conform(t, func(t *testing.T, o Options) *Port {
		u := newUmem(t, o.Frames, o.FrameSize)
		q := New(u, Config{Ring: o.Ring, MultiBuffer: o.MultiBuffer})
		var sent [][]byte
		return &Port{
			Umem: u, Pool: xsk.NewPool(u), Queue: q, Poller: NewPoller(q),
			Arrive: func(frame []byte) { q.Arrive(frame) },
			Left: func() (frame []byte) {
				if sent = append(sent, q.Sent()...); len(sent) == 0 {
					return nil
				}
				frame, sent = sent[0], sent[1:]
				return frame
			},
			SetUp:  func(up bool) { q.SetDown(!up) },
			Vanish: q.Vanish,
		}
	})
}

// A queue takes from the TX ring, and completes, no more than the test says.
func TestScript(t *testing.T) {
	u := newUmem(t, 16, 2048)
	pool, q := xsk.NewPool(u), New(u, Config{Ring: 8})
	var ds []xsk.Desc
	for range 5 {
		a, _ := pool.TakeOne()
		ds = append(ds, xsk.Desc{Addr: a, Len: 60})
	}
	q.Budget, q.HoldCompletions = 2, true
	if n := q.Send(ds); n != 5 {
		t.Fatalf("Send took %d of 5", n)
	}
	addrs := make([]uint64, 8)
	for i, want := range []struct{ taken, pending, done int }{{2, 3, 0}, {4, 1, 0}, {5, 0, 0}} {
		if err := q.Kick(); err != nil {
			t.Fatal(err)
		}
		if taken, pending := q.Consumed(); int(taken) != want.taken || pending != want.pending || q.Complete(addrs) != want.done {
			t.Errorf("after %d kicks: %d taken, %d pending, want %+v", i+1, taken, pending, want)
		}
	}
	if n := q.Finish(3); n != 3 || q.Complete(addrs) != 3 || q.TxRoom() != 6 {
		t.Errorf("%d finished, room for %d; want 3 and 6", n, q.TxRoom())
	}
	if n := q.Finish(-1); n != 2 || len(q.Sent()) != 5 {
		t.Errorf("%d finished, want the other 2 of 5 packets", n)
	}
	q.Complete(addrs)
	q.Stop(2)
	for range 4 {
		a, _ := pool.TakeOne()
		q.Send([]xsk.Desc{{Addr: a, Len: 60}})
	}
	for range 2 {
		if err := q.Kick(); err != nil {
			t.Fatal(err)
		}
		if _, pending := q.Consumed(); pending != 2 || q.Complete(addrs) != 0 {
			t.Errorf("%d of 4 are pending in a queue that stops after 2", pending)
		}
	}
	q.GoOn()
	if err := q.Kick(); err != nil {
		t.Fatal(err)
	}
	if n := q.Complete(addrs); n != 4 {
		t.Errorf("%d of 4 completed by a queue that goes on", n)
	}
	q.Budget = 0
	a, _ := pool.TakeOne()
	q.Send([]xsk.Desc{{Addr: a, Len: 60}})
	if err := q.Kick(); err != nil {
		t.Error(err)
	}
	if s, err := q.Stats(); err != nil || s.Kicks != 7 || s.KickStalls != 2 || s.TxIncomplete != 1 {
		t.Errorf("%+v, %v; want 7 kicks, two of them in vain", s, err)
	}
}
