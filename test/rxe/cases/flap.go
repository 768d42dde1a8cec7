// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
)

const (
	flapTime = 300 * time.Millisecond
	// flapStall is the longest time without a completion beside the time without a carrier:
	// three timeouts of the sender, as emulation on a busy machine loses packets too, and half a second.
	flapStall = 3*268*time.Millisecond + 500*time.Millisecond
	// flapDeadAfter outlasts it.
	flapDeadAfter = 1800 * time.Millisecond
)

// linkFlap takes the carrier from the source's link, and then from a receiver's, in
// the middle of a transfer.
func linkFlap(ctx context.Context, b *bench) error {
	spec := groupSpec{number: 1, hosts: b.hosts[:4], mtu: 1024, timeout: deadTimeout}
	spec.master = func(c *endpoint.MasterConfig) {
		c.DeadAfter, c.SenderTimeout, c.SenderRetries = flapDeadAfter, deadTimeout, 7
	}
	return withGroup(ctx, &spec, func(g *group) error {
		for _, at := range []struct {
			name string
			*member
		}{{"a receiver", g.members[3]}, {"the source", g.members[0]}} {
			stall, down, err := g.flap(ctx, b, at.host)
			if err != nil {
				return fmt.Errorf("the link of %s: %w", at.name, err)
			}
			b.note("no carrier for %v at %s: longest stall %v", down.Round(time.Millisecond), at.name, stall.Round(time.Millisecond))
			if stall < flapTime/2 {
				return fmt.Errorf("the link of %s: the source never waited longer than %v: nobody missed the link", at.name, stall)
			}
			if stall > down+flapStall {
				return fmt.Errorf("the link of %s: the source waited for %v, want at most %v", at.name, stall, down+flapStall)
			}
		}
		return nil
	})
}

// flap transfers a batch and takes the carrier from h's link when a quarter of the
// messages is complete. It returns the longest time without a completion since, and the time
// without a carrier.
func (g *group) flap(ctx context.Context, b *bench, h *host) (stall, down time.Duration, err error) {
	var msgs []message
	for i := range 48 {
		msgs = append(msgs, message{dataOps[i%len(dataOps)], 40000 + i})
	}
	bt, err := g.newBatch(msgs...)
	if err != nil {
		return 0, 0, err
	}
	for _, r := range g.receivers() {
		if err := bt.receive(r); err != nil {
			return 0, 0, err
		}
	}
	if err := bt.post(); err != nil {
		return 0, 0, err
	}
	var wcs [1]endpoint.Completion
	var last time.Time
	up := make(chan error, 1)
	for done := range msgs {
		if done == len(msgs)/4 {
			begin := time.Now()
			if err := b.machine.sw.SetDown(h.port); err != nil {
				return 0, 0, err
			}
			last = time.Now()
			time.AfterFunc(flapTime, func() {
				err := b.machine.sw.SetUp(h.port)
				down = time.Since(begin)
				up <- err
			})
		}
		if _, err := g.source().qp.Poll(ctx, wcs[:]); err != nil {
			return 0, 0, fmt.Errorf("the source, with %d of %d messages complete: %w", done, len(msgs), err)
		}
		if c := wcs[0]; c.ID != uint64(done) || c.Status != endpoint.Success {
			return 0, 0, fmt.Errorf("the source: completion %+v, want success of message %d", c, done)
		}
		if err := bt.arrived(done); err != nil {
			return 0, 0, err
		}
		if !last.IsZero() {
			stall = max(stall, time.Since(last))
			last = time.Now()
		}
	}
	if err := <-up; err != nil {
		return 0, 0, err
	}
	return stall, down, bt.compare(ctx)
}
