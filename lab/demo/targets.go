// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/lab/testbed"
)

// TargetMessages is the cost of a target message before each WRITE, against a window
// that is registered once.
type TargetMessages struct {
	OK              bool    `json:"ok"`
	Seconds         float64 `json:"seconds"`
	SenderLinkBytes int64   `json:"sender_link_bytes"`
	Retransmitted   uint64  `json:"sender_retransmitted_packets"`
	ExtraPerWrite   float64 `json:"extra_bytes_per_write"` // bytes on the sender's link, retransmissions included
}

// targetMessenger makes the target messages of a plan: before message i, every
// receiver's address for it.
type targetMessenger struct {
	group   *endpoint.Group
	hosts   []*host // receivers
	plan    *testbed.Messages
	mr      endpoint.MR
	slots   int
	slotLen int
}

// newTargetMessenger registers room for the payloads of all messages in flight.
func (r *run) newTargetMessenger() (*targetMessenger, error) {
	u := &targetMessenger{group: r.hosts[0].group, hosts: r.hosts[1:], plan: &r.plan, slots: depth, slotLen: r.opts.MTU}
	if most := envelope.MaxTargets(r.opts.MTU, !r.opts.IPv6); len(u.hosts) > most {
		return nil, fmt.Errorf("--targets: %d receivers do not fit one target message of %d bytes: at most %d", len(u.hosts), r.opts.MTU, most)
	}
	buf, err := anonymous(int64(u.slots * u.slotLen))
	if err != nil {
		return nil, err
	}
	first := r.hosts[0]
	first.maps = append(first.maps, buf)
	u.mr, err = first.Device.RegisterMemory(buf, outBase*2, endpoint.Access(0))
	return u, err
}

// targetMessage returns the work request that goes before message i.
func (u *targetMessenger) targetMessage(i int) (endpoint.SendWR, error) {
	var targets [256]endpoint.Target
	to := targets[:0]
	for _, h := range u.hosts {
		to = append(to, endpoint.Target{IP: h.IP, VA: h.mr.Addr() + uint64(i)*uint64(u.plan.Message), RKey: h.mr.RKey()})
	}
	at := i % u.slots * u.slotLen
	b, err := u.group.AppendTargets(u.mr.Bytes()[at:at], to)
	if err != nil {
		return endpoint.SendWR{}, err
	}
	return u.group.TargetMessageWR(uint64(i), endpoint.Segment{MR: u.mr, Offset: at, Len: len(b)}), nil
}

// sendTargeted posts, for each message, first where it goes and then the WRITE.
func (u *targetMessenger) sendTargeted(ctx context.Context, out endpoint.MR, done func(bytes int)) error {
	return testbed.Send(ctx, u.group.QP(), 2*u.plan.Count(), depth-1, func(i int) (endpoint.SendWR, error) {
		if i%2 == 0 {
			return u.targetMessage(i / 2)
		}
		wr := u.group.TargetedWR(0, u.plan.Op, u.plan.Segment(out, i/2), 0)
		wr.Imm = uint32(i / 2)
		return wr, nil
	}, func(i int) error {
		if i%2 == 1 {
			done(u.plan.Segment(out, i/2).Len)
		}
		return nil
	})
}

// sendWithTargets sends the payload once more, with a target message before every WRITE
// in place of the window.
func (r *run) sendWithTargets(ctx context.Context, res *Result) error {
	ctx, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	u, err := r.newTargetMessenger()
	if err != nil {
		return err
	}
	boxes, err := r.inboxes(r.hosts[1:])
	if err != nil {
		return err
	}
	sender := r.hosts[0].group.QP()
	before := sender.Stats().Retransmitted
	bar := r.log.begin("group, target message before each WRITE", r.plan.Len)
	m, err := r.measure(ctx, r.hosts[0], boxes, func() error { return u.sendTargeted(ctx, r.hosts[0].out, bar.add) })
	bar.end()
	if err != nil {
		return r.explain(err)
	}
	x := &TargetMessages{OK: true, Seconds: m.seconds, SenderLinkBytes: m.linkBytes, Retransmitted: sender.Stats().Retransmitted - before}
	x.ExtraPerWrite = float64(m.linkBytes-res.SenderLinkBytes) / float64(r.plan.Count())
	for i, h := range r.hosts[1:] {
		x.OK = x.OK && r.receiver(h, boxes[i], m.seconds, r.data.bytes, r.data.sum).OK
	}
	res.TargetMessages = x
	return nil
}
