// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/rocev2"
)

// silenceAtSource is the time for which the source must stay without a completion.
const silenceAtSource = 300 * time.Millisecond

// lastReceiver cuts a receiver off, and lets it have the message only when all
// others have acknowledged it.
func lastReceiver(ctx context.Context, b *bench) error {
	spec := groupSpec{number: 1, hosts: b.hosts[:4], mtu: 1024}
	return withGroup(ctx, &spec, func(g *group) error {
		last := g.members[3]
		if err := last.lose("0%", "100%"); err != nil {
			return err
		}
		healed := false
		defer func() {
			if !healed {
				_ = last.heal() // there is an error already
			}
		}()
		bt, err := g.newBatch(message{endpoint.Write, 5000})
		if err != nil {
			return err
		}
		if err := watch(func(c *capture) error {
			if err := bt.post(); err != nil {
				return err
			}
			return until(ctx, "the other receivers have acknowledged", func() (bool, error) {
				return c.acked(g.members[1].host) && c.acked(g.members[2].host), nil
			})
		}, g.members[1].host, g.members[2].host); err != nil {
			return err
		}
		if err := g.nothingYet(ctx); err != nil {
			return err
		}
		healed = true
		if err := last.heal(); err != nil {
			return err
		}
		return bt.finish(ctx)
	})
}

// acked reports whether h has sent an ACK.
func (c *capture) acked(h *host) bool {
	for _, f := range c.feedbackAt(h) {
		if f.sent && f.syndrome.Kind() == rocev2.KindACK {
			return true
		}
	}
	return false
}

// nothingYet checks that the source has no completion, and gets none soon.
func (g *group) nothingYet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, silenceAtSource)
	defer cancel()
	var wcs [1]endpoint.Completion
	n, err := g.source().qp.Poll(ctx, wcs[:])
	switch {
	case n > 0 && wcs[0].Status == endpoint.Success:
		return fmt.Errorf("message %d %w", wcs[0].ID, errEarly)
	case n > 0:
		return fmt.Errorf("the source: %w", wcs[0].Err())
	case !errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return nil
}

// negativeControl shows that lastReceiver can fail: a switch that forwards the
// first ACK instead of the minimum must not get through it.
func negativeControl(ctx context.Context, b *bench) error {
	if b.broken == "" {
		return errors.New("there is no such switch: give its program with --broken")
	}
	return b.withDaemon(ctx, b.broken, func() error {
		switch err := lastReceiver(ctx, b); {
		case err == nil:
			return errors.New("a switch that forwards the first ACK passes: the case proves nothing")
		case !errors.Is(err, errEarly):
			return fmt.Errorf("a switch that forwards the first ACK fails, but for another reason: %w", err)
		}
		return nil
	})
}

// withDaemon runs do with another switch program.
func (b *bench) withDaemon(ctx context.Context, program string, do func() error) error {
	if err := b.daemon.stop(); err != nil {
		return err
	}
	d, err := startDaemon(ctx, b.machine, program, b.out)
	if err == nil {
		b.daemon = d
		err = errors.Join(do(), d.stop())
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), daemonWait)
	defer cancel()
	d, e := startDaemon(ctx, b.machine, b.gleamd, b.out)
	if e == nil {
		b.daemon = d
	}
	return errors.Join(err, e)
}
