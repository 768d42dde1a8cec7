// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/mcast"
)

// recvLane is a receiver's side of a lane: it receives messages, forwards them, checks
// them and answers.
type recvLane struct {
	params *Params
	number int
	mr     endpoint.MR
	in     *recvInbox
	out    []*sendPipe  // pipes to the receivers that it forwards to
	answer *sendPipe    // nil without answers
	window mcast.Window // the window of the group, if the lane is in one
	store  []byte       // the memory of a replica that its writes are copied to, before it answers; else nil

	onStore func(store []byte) // tests only
}

// arrivals is a receiver's measurement of a run, over all lanes.
type arrivals struct {
	mu       sync.Mutex
	meter    *meter
	began    bool
	messages int
	known    bool // every message had a completion, so there is a peak
	onFirst  func()
}

// add counts n messages that have just arrived.
func (a *arrivals) add(n int) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.messages += n
	if !a.began {
		// They arrived at the beginning of the measured time, not within it.
		a.meter.begin(now)
		a.began = true
		if a.onFirst != nil {
			a.onFirst()
		}
		return
	}
	a.meter.add(now, n)
}

func (a *arrivals) result() *result {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.meter.rate()
	res := &result{Messages: a.messages, Counted: r.count, Seconds: r.seconds}
	if a.known {
		res.Peak = r.peak
	}
	return res
}

// start takes the completions of the lane's sends, until ctx ends.
func (l *recvLane) start(ctx context.Context, wg *sync.WaitGroup, fail func(error)) {
	pipes := l.out
	if l.answer != nil {
		pipes = append(pipes[:len(pipes):len(pipes)], l.answer)
	}
	for _, p := range pipes {
		wg.Go(func() {
			if err := p.collect(ctx, nil); ctx.Err() == nil {
				fail(err)
			}
		})
	}
}

// arm posts the receives that a run needs before the sender may begin.
func (l *recvLane) arm(r *run) error {
	lay := newLayout(l.params, r.Size)
	if l.params.write() {
		return l.in.arm(l.params.noticesOf(r.Size, r.Iterations)*lay.chunks, recvDepth, nil)
	}
	return l.in.arm(r.Iterations*lay.chunks, recvDepth, func(k int) endpoint.Segment { return lay.segment(l.mr, k) })
}

// run receives the messages of a run.
func (l *recvLane) run(ctx context.Context, r *run, a *arrivals) error {
	lay := newLayout(l.params, r.Size)
	for k, answered, last := 0, 0, false; !last; {
		wc, err := l.in.take(ctx)
		if err != nil {
			return err
		}
		before := k / lay.chunks
		for i := range wc {
			next, err := l.arrived(&lay, k, &wc[i])
			if err != nil {
				return err
			}
			last = wc[i].HasImm && wc[i].Imm&lastFlag != 0
			for ; k < next; k++ {
				if err := l.nextChunk(ctx, &lay, k, last && k == next-1); err != nil {
					return err
				}
			}
		}
		if n := k/lay.chunks - before; n > 0 {
			a.add(n)
		}
		if err := l.in.post(len(wc)); err != nil {
			return err
		}
		if m := k / lay.chunks; l.answer != nil && m > answered {
			if err := l.answer.post(ctx, &endpoint.SendWR{ID: uint64(m), Op: endpoint.SendImm, Imm: uint32(m & countMask)}); err != nil {
				return fmt.Errorf("answer: %w", err)
			}
			answered = m
		}
	}
	return nil
}

// arrived returns the piece after those that have arrived with completion c, while piece k is due: k+1,
// or more where receivers do not get a completion for every message. RC keeps the order.
func (l *recvLane) arrived(lay *layout, k int, c *endpoint.Completion) (next int, err error) {
	last := k // that has arrived
	if c.HasImm && !l.params.notices() {
		last = int(c.Imm & countMask)
	}
	switch {
	case c.HasImm && c.Imm&countMask != uint32(last&countMask) || last < k:
		return 0, fmt.Errorf("piece %d of the run arrived where %d was due", c.Imm&countMask, k)
	case c.Len != lay.segment(l.mr, last).Len:
		return 0, fmt.Errorf("message %d: %d bytes arrived, want %d", last/lay.chunks, c.Len, lay.segment(l.mr, last).Len)
	}
	return last + 1, nil
}

// nextChunk processes piece k of the run: it forwards the piece, and verifies and stores the message
// if that is complete. last reports whether the piece is the last one.
func (l *recvLane) nextChunk(ctx context.Context, lay *layout, k int, last bool) error {
	seg := lay.segment(l.mr, k)
	if len(l.out) > 0 {
		var wr endpoint.SendWR
		lay.request(&wr, l.params, l.mr, k, l.params.write(), last)
		for _, o := range l.out {
			wr.RemoteAddr, wr.RKey = o.va+uint64(seg.Offset), o.rkey
			if err := o.post(ctx, &wr); err != nil {
				return fmt.Errorf("pass on message %d: %w", k/lay.chunks, err)
			}
		}
	}
	if k%lay.chunks < lay.chunks-1 {
		return nil
	}
	m := k / lay.chunks
	at := m % lay.slots * lay.size
	b := l.mr.Bytes()[at:][:lay.size]
	if l.params.Verify {
		if err := checkFilled(b, pattern(l.params.Seed, l.number, m)); err != nil {
			return fmt.Errorf("verify: lane %d, message %d of %d bytes: %w", l.number, m, lay.size, err)
		}
	}
	if l.store != nil {
		copy(l.store[at:], b)
		if l.onStore != nil {
			l.onStore(l.store)
		}
	}
	return nil
}
