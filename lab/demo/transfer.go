// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
)

// depth is the number of messages that the sender, or of receives that a receiver, has
// posted at a time.
const depth = 64

// transferPlan cuts a payload into messages.
type transferPlan struct {
	op      endpoint.WROp
	total   int64
	message int64
}

func (p *transferPlan) messages() int { return int((p.total + p.message - 1) / p.message) }

// segment returns message i of region mr.
func (p *transferPlan) segment(mr endpoint.MR, i int) endpoint.Segment {
	at := int64(i) * p.message
	return endpoint.Segment{MR: mr, Offset: int(at), Len: int(min(p.message, p.total-at))}
}

// send posts all messages from mr and returns when the last is complete; done is called
// for each completion. va and rkey are the target of WRITEs.
func (p *transferPlan) send(ctx context.Context, qp endpoint.QP, mr endpoint.MR, va uint64, rkey uint32, done func(bytes int)) error {
	n := p.messages()
	posted, completed := 0, 0
	var wc [depth]endpoint.Completion
	for completed < n {
		for posted < n && posted-completed < depth {
			wr := endpoint.SendWR{ID: uint64(posted), Op: p.op, Local: p.segment(mr, posted), Imm: uint32(posted)}
			if p.op != endpoint.Send {
				wr.RemoteAddr, wr.RKey = va+uint64(wr.Local.Offset), rkey
			}
			if _, err := qp.PostSend(wr); err != nil {
				return fmt.Errorf("post message %d: %w", posted, err)
			}
			posted++
		}
		k, err := qp.Poll(ctx, wc[:])
		if err != nil {
			return fmt.Errorf("wait for message %d of %d: %w", completed, n, err)
		}
		for _, c := range wc[:k] {
			if err := c.Err(); err != nil {
				return fmt.Errorf("message %d of %d: %w", c.ID, n, err)
			}
			if c.ID != uint64(completed) {
				return fmt.Errorf("completion of message %d while that of %d was due", c.ID, completed)
			}
			done(p.segment(mr, completed).Len)
			completed++
		}
	}
	return nil
}

// receiveQueue is a receiver's side of a plan: receives that are posted before the
// sender starts, and posted again as they are used.
type receiveQueue struct {
	plan         *transferPlan
	qp           endpoint.QP
	mr           endpoint.MR
	killed       bool // the host is killed: that its work is flushed is no error
	posted       int
	bytes        int64
	lastProgress time.Time // the sender began
	last         time.Time
}

// prime posts the first receives. A plan without receives needs none.
func (b *receiveQueue) prime() error {
	if b.plan.op == endpoint.Write {
		return nil
	}
	return b.post(min(depth, b.plan.messages()))
}

func (b *receiveQueue) post(n int) error {
	for range n {
		if b.posted == b.plan.messages() {
			return nil
		}
		wr := endpoint.RecvWR{ID: uint64(b.posted)}
		if b.plan.op == endpoint.Send {
			wr.Local = b.plan.segment(b.mr, b.posted)
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
	if b.plan.op == endpoint.Write {
		return nil
	}
	var wc [depth]endpoint.Completion
	for got := 0; got < b.plan.messages(); {
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
			if want := b.plan.segment(b.mr, got).Len; c.Len != want {
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
