// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/mcast"
)

// death is a group in which a receiver dies. DeadAfter is more than the sender's timeout, and less
// than all of its retries take.
type death struct {
	policy    mcast.Policy
	quorum    int
	timeout   uint8 // the sender's
	deadAfter time.Duration
	size      int // bytes of the first message; each of the others has a byte more
}

// deadTimeout is a sender's: 268 ms.
const deadTimeout = 16

// soon is of a sender with that timeout.
func soon(policy mcast.Policy, quorum int) death {
	return death{policy: policy, quorum: quorum, timeout: deadTimeout, deadAfter: 800 * time.Millisecond, size: 40000}
}

// late is of a sender with a timeout of 1.07 s. rxe has 129 packets in flight, which end within a
// message: the last ones ask for no acknowledgement.
var late = death{policy: mcast.Evict, timeout: 18, deadAfter: 2 * time.Second, size: 20000}

// ending is the end of a transfer at the source.
type ending struct {
	complete int             // messages, in order, that succeeded
	killed   int             // messages of these when the receiver was killed
	status   endpoint.Status // the status of the next one; Success if there is none
	stall    time.Duration   // longest time without a completion from then on
}

// deadReceiver destroys the queue pair of one of three receivers when a quarter of the
// messages is complete. rxe sends nothing for a queue pair that does not exist: the
// receiver is silent, while its host goes on.
func deadReceiver(d death) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) error {
		spec := groupSpec{number: 1, hosts: b.hosts[:4], mtu: 1024, timeout: d.timeout}
		spec.master = func(c *endpoint.MasterConfig) {
			c.Policy, c.Quorum, c.DeadAfter, c.SenderTimeout, c.SenderRetries = d.policy, d.quorum, d.deadAfter, d.timeout, 7
		}
		return withGroup(ctx, &spec, func(g *group) error {
			var msgs []message
			for i := range 48 {
				msgs = append(msgs, message{dataOps[i%len(dataOps)], d.size + i})
			}
			bt, err := g.newBatch(msgs...)
			if err != nil {
				return err
			}
			for _, r := range g.receivers() {
				if err := bt.receive(r); err != nil {
					return err
				}
			}
			if err := bt.post(); err != nil {
				return err
			}
			all := g.members
			defer func() { g.members = all }() // the dead one is closed with the group
			dead := all[len(all)-1]
			end, err := bt.kill(ctx, d.policy)
			if err != nil {
				return err
			}
			if d.policy == mcast.Strict {
				b.note("killed after %d of %d messages, error on message %d %v after the last completion",
					end.killed, len(msgs), end.complete, end.stall.Round(time.Millisecond))
				return bt.failed(ctx, end, dead)
			}
			b.note("killed after %d of %d messages, longest stall %v", end.killed, len(msgs), end.stall.Round(time.Millisecond))
			if d.policy == mcast.Evict && end.stall < d.deadAfter/4 { // a quorum goes on without the receiver
				return fmt.Errorf("the source never waited longer than %v: nobody was missed", end.stall)
			}
			return bt.survived(ctx, end, dead)
		})
	}
}

// kill takes the source's completions, one for each message and in order, up to
// the last or the first that failed. On the way it destroys the last member's queue pair and
// takes it from the group's list.
func (b *batch) kill(ctx context.Context, policy mcast.Policy) (end ending, err error) {
	src, dies := b.g.source(), b.g.members[len(b.g.members)-1]
	var wcs [1]endpoint.Completion
	last := time.Now()
	for end.complete < len(b.messages) {
		if _, err := src.qp.Poll(ctx, wcs[:]); err != nil {
			return end, fmt.Errorf("the source, with %d of %d messages complete: %w", end.complete, len(b.messages), err)
		}
		if end.killed > 0 {
			end.stall = max(end.stall, time.Since(last))
		}
		last = time.Now()
		if c := wcs[0]; c.ID != uint64(end.complete) {
			return end, fmt.Errorf("the source: completion %+v, want one of message %d", c, end.complete)
		}
		if end.status = wcs[0].Status; end.status != endpoint.Success {
			return end, nil
		}
		if policy != mcast.Quorum { // else it may be another two that have it
			if err := b.arrived(end.complete); err != nil {
				return end, err
			}
		}
		end.complete++
		if end.complete == len(b.messages)/4 {
			if err := dies.qp.Close(); err != nil {
				return end, err
			}
			dies.qp = nil
			end.killed, last = end.complete, time.Now()
			b.g.members = b.g.members[:len(b.g.members)-1]
		}
	}
	return end, nil
}

// survived checks that the source and all but the dead are as if it had never
// been, and that the dead one was evicted in the midst of it.
func (b *batch) survived(ctx context.Context, end ending, dead *member) error {
	if end.complete != len(b.messages) {
		return fmt.Errorf("message %d ends with %v", end.complete, end.status)
	}
	if err := heard(ctx, b.g, endpoint.Evicted, dead); err != nil {
		return err
	}
	return b.compare(ctx)
}

// failed checks that the source got the error of a receiver that fails by itself, on
// the first message that not all receivers have, and that the live ones have all
// earlier messages.
func (b *batch) failed(ctx context.Context, end ending, dead *member) error {
	if end.status != endpoint.RemoteOpErr || end.complete >= len(b.messages) {
		return fmt.Errorf("%d messages succeed, and then %v: want %v", end.complete, end.status, endpoint.RemoteOpErr)
	}
	var wcs [1]endpoint.Completion
	for i := end.complete + 1; i < len(b.messages); i++ {
		if _, err := b.g.source().qp.Poll(ctx, wcs[:]); err != nil {
			return fmt.Errorf("completion of message %d: %w", i, err)
		}
		if wcs[0].ID != uint64(i) || wcs[0].Status != endpoint.WRFlushErr {
			return fmt.Errorf("after the error: completion %+v, want message %d flushed", wcs[0], i)
		}
	}
	if err := silence(ctx, b.g.source()); err != nil {
		return err
	}
	if i := b.lacks(dead); i < end.complete || i > end.complete+1 {
		// One more: the receiver may have died between a message and its ACK.
		return fmt.Errorf("the error is on message %d; the dead receiver has all before %d", end.complete, i)
	}
	if err := heard(ctx, b.g, endpoint.Failed, dead); err != nil {
		return err
	}
	for _, r := range b.g.receivers() {
		if i := b.lacks(r); i < end.complete {
			return fmt.Errorf("host %d lacks message %d, and %d were complete", r.index, i, end.complete)
		}
	}
	return nil
}

// lacks returns the first message that is not in r's memory, or how many there are.
func (b *batch) lacks(r *member) int {
	for i, m := range b.messages {
		from, to := b.at[i], b.at[i]+m.size
		if difference(b.g.source().mr.Bytes()[from:to], r.mr.Bytes()[from:to]) >= 0 {
			return i
		}
	}
	return len(b.messages)
}

// heard waits until the master gets the event of a member's death.
func heard(ctx context.Context, g *group, kind endpoint.EventKind, who *member) error {
	for {
		select {
		case e := <-g.members[0].group.Events():
			if e.Kind != kind {
				continue
			}
			if e.Member != who.addr(g.spec.v6) {
				return fmt.Errorf("the master heard %+v, want it of host %d", e, who.index)
			}
			if kind == endpoint.Failed && e.Code != mcast.Silent {
				return fmt.Errorf("the master heard %+v, want the cause %q", e, envelope.Cause(mcast.Silent))
			}
			return nil
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("the master does not hear that a member is gone: %v", kind), context.Cause(ctx))
		}
	}
}
