// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/lab/testbed"
)

// depth is the number of messages that the sender, or of receives that a receiver, has
// posted at a time.
const depth = 64

// receiveQueue is a receiver's side of a plan: receives that are posted before the
// sender starts, and posted again as they are used.
type receiveQueue struct {
	plan         *testbed.Messages
	qp           endpoint.QP
	mr           endpoint.MR
	killed       bool // the host is killed: that its work is flushed is no error
	posted       int
	bytes        int64
	lastProgress time.Time // the sender began
	last         time.Time
}

// inbox returns the queue of a host's queue pair. The host has none of the bytes then.
func (r *run) inbox(h *host, qp endpoint.QP) (*receiveQueue, error) {
	if err := unix.Madvise(h.mem, unix.MADV_DONTNEED); err != nil { // zeroes it
		return nil, err
	}
	return &receiveQueue{plan: &r.plan, qp: qp, mr: h.mr}, nil
}

// inboxes returns the queues of hosts that receive from the group.
func (r *run) inboxes(hosts []*host) (all []*receiveQueue, err error) {
	for _, h := range hosts {
		q, err := r.inbox(h, h.group.QP())
		if err != nil {
			return nil, err
		}
		all = append(all, q)
	}
	return all, nil
}

// send sends the payload to the group from one of its members.
func (r *run) send(ctx context.Context, from *host, done func(bytes int)) error {
	return r.plan.SendToGroup(ctx, from.group, from.out, depth, done)
}

// prime posts the first receives. A plan without receives needs none.
func (b *receiveQueue) prime() error {
	if b.plan.Op == endpoint.Write {
		return nil
	}
	return b.post(min(depth, b.plan.Count()))
}

func (b *receiveQueue) post(n int) error {
	for range n {
		if b.posted == b.plan.Count() {
			return nil
		}
		wr := endpoint.RecvWR{ID: uint64(b.posted)}
		if b.plan.Op == endpoint.Send {
			wr.Local = b.plan.Segment(b.mr, b.posted)
		}
		if _, err := b.qp.PostRecv(wr); err != nil {
			return fmt.Errorf("post receive %d: %w", b.posted, err)
		}
		b.posted++
	}
	return nil
}

// drain takes completions until all messages are there.
func (b *receiveQueue) drain(ctx context.Context) error {
	if b.plan.Op == endpoint.Write {
		return nil
	}
	var wc [depth]endpoint.Completion
	for got := 0; got < b.plan.Count(); {
		k, err := b.qp.Poll(ctx, wc[:])
		if err != nil && b.killed {
			return nil
		}
		if err != nil {
			return fmt.Errorf("wait for message %d: %w", got, err)
		}
		for _, c := range wc[:k] {
			if err := c.Err(); err != nil && b.killed {
				return nil
			} else if err != nil {
				return fmt.Errorf("receive %d: %w", c.ID, err)
			}
			if want := b.plan.Segment(b.mr, got).Len; c.Len != want {
				return fmt.Errorf("receive %d: %d bytes, want %d", c.ID, c.Len, want)
			}
			if c.HasImm && c.Imm != uint32(got) {
				return fmt.Errorf("receive %d: immediate data %d", got, c.Imm)
			}
			b.bytes += int64(c.Len)
			got++
		}
		b.last = time.Now()
		if err := b.post(k); err != nil {
			return err
		}
	}
	return nil
}
