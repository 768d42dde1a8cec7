// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// earlyDuplicate sends a receiver a duplicate before it has accepted anything.
// rxe answers with an ACK of PSN 0xffffff, whatever its first PSN is
// (rxe_resp.c: ack_psn-1, and ack_psn is 0 at first), which must not reach the
// source.
func earlyDuplicate(ctx context.Context, b *bench) error {
	expect := rocev2.PSN(0x1000)
	spec := groupSpec{number: 1, hosts: b.hosts[:3], mtu: 1024, expect: &expect}
	return withGroup(ctx, &spec, func(g *group) error {
		src, r := g.source(), g.members[1]
		before, err := b.dropped(ctx)
		if err != nil {
			return err
		}
		err = watch(func(c *capture) error {
			if err := b.toHost(g, r, rocev2.Packet{Op: rocev2.SendOnly, PSN: expect.Prev(), AckReq: true}, make([]byte, 64)); err != nil {
				return err
			}
			if err := until(ctx, "the receiver has answered the duplicate", func() (bool, error) { return c.acked(r.host), nil }); err != nil {
				return err
			}
			for _, f := range c.feedbackAt(r.host) {
				if f.sent && f.psn != rocev2.PSNMask {
					return fmt.Errorf("rxe acks the duplicate with PSN 0x%06x: this kernel does not have the quirk", uint32(f.psn))
				}
			}
			if err := until(ctx, "the switch has dropped that", func() (bool, error) {
				now, err := b.dropped(ctx)
				return now > before, err
			}); err != nil {
				return err
			}
			if fs := c.feedbackAt(src.host); len(fs) > 0 {
				return fmt.Errorf("the source got %+v", fs)
			}
			return nil
		}, src.host, r.host)
		if err != nil {
			return err
		}
		return g.transfer(ctx, mixed(1, 5000)...)
	})
}

// dropped returns how many packets the switch's groups have dropped.
func (b *bench) dropped(ctx context.Context) (n uint64, err error) {
	s, err := b.daemon.client.Stats(ctx)
	if err != nil {
		return 0, err
	}
	for _, counts := range []map[string]uint64{s.Normal, s.Drops} {
		for _, v := range counts {
			n += v
		}
	}
	return n, nil
}

// blocked runs do while one message is outstanding that the last of two
// receivers, a, cannot get.
func (b *bench) blocked(ctx context.Context, do func(*group, *batch, *capture) error) error {
	spec := groupSpec{number: 1, hosts: b.hosts[:3], mtu: 1024}
	return withGroup(ctx, &spec, func(g *group) (err error) {
		last := g.members[2]
		if err := last.lose("0%", "100%"); err != nil {
			return err
		}
		healed := false
		heal := func() error {
			if healed {
				return nil
			}
			healed = true
			return last.heal()
		}
		defer func() { err = errors.Join(err, heal()) }()
		bt, err := g.newBatch(message{endpoint.Write, 5000})
		if err != nil {
			return err
		}
		err = watch(func(c *capture) error {
			if err := bt.post(); err != nil {
				return err
			}
			if err := until(ctx, "the other receiver has acknowledged", func() (bool, error) {
				return c.acked(g.members[1].host), nil
			}); err != nil {
				return err
			}
			return do(g, bt, c)
		}, g.source().host, g.members[1].host)
		if err != nil || bt.messages == nil {
			return err
		}
		if err := heal(); err != nil {
			return err
		}
		return bt.finish(ctx)
	})
}

// ackAhead has a receiver acknowledge more than was ever sent. rxe's requester would
// believe it; the switch drops it, and the group, which is strict, fails: that receiver
// has another numbering (R54).
func ackAhead(ctx context.Context, b *bench) error {
	return b.blocked(ctx, func(g *group, bt *batch, c *capture) error {
		last, src := g.members[2], g.source()
		reason := mcast.FeedbackAhead.String()
		before, err := b.daemon.drops(ctx, reason)
		if err != nil {
			return err
		}
		ahead := (last.qp.Info().RQPSN + 100) & rocev2.PSNMask
		if err := b.toGroup(g, last, rocev2.Packet{Op: rocev2.Acknowledge, PSN: ahead, Syndrome: 0x1f}); err != nil {
			return err
		}
		if err := until(ctx, "the switch has dropped the ACK as "+reason, func() (bool, error) {
			now, err := b.daemon.drops(ctx, reason)
			return now > before, err
		}); err != nil {
			return err
		}
		var wcs [1]endpoint.Completion
		if _, err := src.qp.Poll(ctx, wcs[:]); err != nil {
			return fmt.Errorf("no completion after the group has failed: %w", err)
		}
		if wcs[0].Status != endpoint.RemoteOpErr {
			return fmt.Errorf("completion %+v, and a receiver has nothing: want %v", wcs[0], endpoint.RemoteOpErr)
		}
		bt.messages = nil // no completions are left
		for _, f := range c.feedbackAt(src.host) {
			if !f.sent && f.syndrome.Kind() == rocev2.KindACK {
				return fmt.Errorf("the source got an ACK of PSN 0x%06x", uint32(f.psn))
			}
		}
		return nil
	})
}

// ackAheadAlone sends the same ACK to the source directly, behind the switch's back:
// rxe completes the message although a receiver has nothing. So the switch has to
// check. Should this fail, rxe has been repaired.
func ackAheadAlone(ctx context.Context, b *bench) error {
	return b.blocked(ctx, func(g *group, bt *batch, _ *capture) error {
		src := g.source()
		if err := g.nothingYet(ctx); err != nil {
			return err
		}
		ahead := (src.qp.Info().SQPSN + 100) & rocev2.PSNMask
		if err := b.toHost(g, src, rocev2.Packet{Op: rocev2.Acknowledge, PSN: ahead, Syndrome: 0x1f}, nil); err != nil {
			return err
		}
		if err := bt.sent(ctx, 1); !errors.Is(err, errEarly) {
			return fmt.Errorf("rxe no longer completes a message by an ACK of a PSN that it has not sent: %v", err)
		}
		bt.messages = nil // the queue pair's further behaviour is not checked
		return nil
	})
}
