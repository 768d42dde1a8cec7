// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/rocev2"
)

// notReady has one receiver post its receives late. The source waits, and then
// all is complete once.
func notReady(ctx context.Context, b *bench) error {
	return b.late(ctx, []message{{endpoint.WriteImm, 3000}}, func(c *capture, g *group) error {
		return until(ctx, "the source is told that a receiver is not ready", func() (bool, error) {
			return c.count(g.source().host, false, rocev2.KindRNR) > 0, nil
		})
	})
}

// notReadyThenNAK sends several messages to a receiver that is not ready. rxe refuses
// the first packet with an RNR NAK and the next, being out of order, with a sequence
// NAK of the same PSN, and does so each time the source comes back. The switch passes
// on the RNR NAK alone to the source, since it names the cause.
//
// A sequence NAK that the switch gets only after the source's next attempt looks like a
// new one, and may pass. That does no harm, but has to be rare.
func notReadyThenNAK(ctx context.Context, b *bench) error {
	const rounds = 20
	msgs := []message{{endpoint.Send, 900}, {endpoint.Send, 4000}, {endpoint.WriteImm, 10}, {endpoint.Send, 1}}
	return b.late(ctx, msgs, func(c *capture, g *group) error {
		last, src := g.members[len(g.members)-1].host, g.source().host
		if err := until(ctx, "the receiver has sent both NAKs often, and the source was told", func() (bool, error) {
			return c.count(last, true, rocev2.KindRNR) >= rounds && c.count(last, true, rocev2.KindSequence) >= rounds &&
				c.count(src, false, rocev2.KindRNR) >= rounds, nil
		}); err != nil {
			return err
		}
		sent, passed := c.count(last, true, rocev2.KindSequence), c.count(src, false, rocev2.KindSequence)
		if passed*5 > sent {
			return fmt.Errorf("the source got %d sequence NAKs for a receiver that was not ready, of %d", passed, sent)
		}
		return nil
	})
}

// count counts h's feedback of a kind.
func (c *capture) count(h *host, sent bool, kind rocev2.AckKind) (n int) {
	for _, f := range c.feedbackAt(h) {
		if f.sent == sent && f.syndrome.Kind() == kind {
			n++
		}
	}
	return n
}

// late transfers msgs to three receivers, of which the last posts its receives
// only when met has returned.
func (b *bench) late(ctx context.Context, msgs []message, met func(*capture, *group) error) error {
	spec := groupSpec{number: 1, hosts: b.hosts[:4], mtu: 1024}
	return withGroup(ctx, &spec, func(g *group) error {
		last := g.members[3]
		bt, err := g.newBatch(msgs...)
		if err != nil {
			return err
		}
		for _, r := range g.receivers()[:2] {
			if err := bt.receive(r); err != nil {
				return err
			}
		}
		if err := watch(func(c *capture) error {
			if err := bt.post(); err != nil {
				return err
			}
			return met(c, g)
		}, g.source().host, last.host); err != nil {
			return err
		}
		if err := g.nothingYet(ctx); err != nil {
			return err
		}
		if err := bt.receive(last); err != nil {
			return err
		}
		return bt.finish(ctx)
	})
}

// wrongKeyAtSource has the application err: the switch knows the group's R_Key
// and refuses the message.
func wrongKeyAtSource(ctx context.Context, b *bench) error {
	spec := groupSpec{number: 1, hosts: b.hosts[:4], mtu: 1024}
	return withGroup(ctx, &spec, func(g *group) error {
		bt, err := g.newBatch(message{endpoint.Write, 3000}, message{endpoint.Write, 3000}, message{endpoint.Write, 3000})
		if err != nil {
			return err
		}
		if err := bt.postWith(func(i int, wr *endpoint.SendWR) {
			if i == 1 {
				wr.RKey ^= 0x100
			}
		}); err != nil {
			return err
		}
		return bt.refused(ctx, g.receivers()...)
	})
}

// wrongKeyAtReceiver registers an R_Key for one receiver that it has not: the
// receiver's RNIC refuses the message.
func wrongKeyAtReceiver(ctx context.Context, b *bench) (err error) {
	spec := groupSpec{number: 1, hosts: b.hosts[:4], mtu: 1024}
	g := &group{spec: &spec, ip: groupAddr(1, false), rkey: 0x1234567}
	defer func() { err = errors.Join(err, g.close()) }()
	reg := api.Register{Group: g.ip, QPN: api.QPN(endpoint.DefaultVirtualQPN), PMTU: spec.mtu,
		Window: &api.Window{VA: windowBase, Len: memory, RKey: g.rkey}}
	for i, h := range spec.hosts {
		mb, err := spec.equip(i, h)
		if err != nil {
			return err
		}
		g.members = append(g.members, mb)
		info := mb.qp.Info()
		to := endpoint.Remote{IP: g.ip, QPN: endpoint.DefaultVirtualQPN, PathMTU: spec.mtu, RQPSN: info.RQPSN}
		if err := mb.qp.Connect(ctx, to); err != nil {
			return err
		}
		w := &api.Window{VA: mb.mr.Addr(), Len: memory, RKey: mb.mr.RKey()}
		if i == 2 {
			w.RKey ^= 0x100
		}
		reg.Members = append(reg.Members, api.RegisterMember{
			IP: info.IP, QPN: api.QPN(info.QPN), SQPSN: api.PSN(info.SQPSN), RQPSN: api.PSN(info.RQPSN), Window: w})
	}
	if err := b.daemon.client.Register(ctx, &reg); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.daemon.client.Delete(context.WithoutCancel(ctx), g.ip)) }()
	bt, err := g.newBatch(message{endpoint.Send, 3000}, message{endpoint.Write, 3000}, message{endpoint.Write, 3000})
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
	return bt.refused(ctx, g.members[2]) // the others have all that was on its way
}

// refused checks that message 0 of three succeeds, 1 fails with a remote access
// error and 2 is flushed, and that spared receivers have nothing of 1 and 2.
func (b *batch) refused(ctx context.Context, spared ...*member) error {
	if err := b.sent(ctx, 1); err != nil {
		return err
	}
	src := b.g.source()
	for i, want := range []endpoint.Status{1: endpoint.RemoteAccessErr, 2: endpoint.WRFlushErr} {
		if i == 0 {
			continue
		}
		var wcs [1]endpoint.Completion
		if _, err := src.qp.Poll(ctx, wcs[:]); err != nil {
			return fmt.Errorf("completion of message %d: %w", i, err)
		}
		if wcs[0].ID != uint64(i) || wcs[0].Status != want {
			return fmt.Errorf("message %d ends with %v, want %v; the completion is %+v", i, wcs[0].Status, want, wcs[0])
		}
	}
	if err := silence(ctx, src); err != nil {
		return err
	}
	for _, r := range spared {
		for _, x := range r.mr.Bytes()[b.at[1]:b.used] {
			if x != 0 {
				return fmt.Errorf("host %d has bytes of what was refused", r.index)
			}
		}
	}
	return nil
}
