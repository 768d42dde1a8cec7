// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"context"
	"fmt"

	"github.com/gleam-rdma/gleam/host/endpoint"
)

// pollBatch is the most completions of one Poll.
const pollBatch = 64

// sendPipe is the sending half of a queue pair: a post waits for a free entry.
type sendPipe struct {
	qp       endpoint.QP
	room     chan struct{} // one token for each work request that may be posted
	singleWR [1]endpoint.SendWR

	va   uint64 // target address of WRITEs
	rkey uint32
}

// newPipe returns the sendPipe of a queue pair with MaxSend depth.
func newPipe(qp endpoint.QP, depth int) *sendPipe {
	p := &sendPipe{qp: qp, room: make(chan struct{}, depth)}
	for range depth {
		p.room <- struct{}{}
	}
	return p
}

// post posts one request as soon as there is a free entry. One goroutine at a time may
// call it.
func (p *sendPipe) post(ctx context.Context, wr *endpoint.SendWR) error {
	select {
	case <-p.room:
	default:
		select {
		case <-p.room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	p.singleWR[0] = *wr
	_, err := p.qp.PostSend(p.singleWR[:]...)
	return err
}

// collect takes completions until ctx ends; done, which may be nil, gets their number. It
// returns the reason why it stopped.
func (p *sendPipe) collect(ctx context.Context, done func(n int)) error {
	wc := make([]endpoint.Completion, pollBatch)
	for {
		n, err := p.qp.Poll(ctx, wc)
		if err != nil {
			return err
		}
		for i := range n {
			if err := wc[i].Err(); err != nil {
				return err
			}
			p.room <- struct{}{}
		}
		if done != nil {
			done(n)
		}
	}
}

// recvInbox is the receiving half of a queue pair: it keeps receives posted.
type recvInbox struct {
	qp     endpoint.QP
	wrs    []endpoint.RecvWR
	wc     []endpoint.Completion
	posted int // receives posted so far, in this run
	total  int // receives of this run; 0: no limit
	buffer func(k int) endpoint.Segment
}

func newInbox(qp endpoint.QP) *recvInbox {
	return &recvInbox{qp: qp, wrs: make([]endpoint.RecvWR, 0, pollBatch), wc: make([]endpoint.Completion, pollBatch)}
}

// arm posts the first receives of a run of total messages, at most depth. buffer returns
// the segment for message k; nil: messages have no bytes.
func (b *recvInbox) arm(total, depth int, buffer func(k int) endpoint.Segment) error {
	b.posted, b.total, b.buffer = 0, total, buffer
	for b.posted < depth && (total == 0 || b.posted < total) {
		if err := b.post(min(depth-b.posted, pollBatch)); err != nil {
			return err
		}
	}
	return nil
}

// post posts n more receives, as far as the run needs them.
func (b *recvInbox) post(n int) error {
	b.wrs = b.wrs[:0]
	for ; n > 0 && (b.total == 0 || b.posted < b.total); n-- {
		wr := endpoint.RecvWR{ID: uint64(b.posted)}
		if b.buffer != nil {
			wr.Local = b.buffer(b.posted)
		}
		b.wrs = append(b.wrs, wr)
		b.posted++
	}
	if len(b.wrs) == 0 {
		return nil
	}
	_, err := b.qp.PostRecv(b.wrs...)
	return err
}

// take waits for messages and returns their completions, which are valid until the next
// call.
func (b *recvInbox) take(ctx context.Context) ([]endpoint.Completion, error) {
	n, err := b.qp.Poll(ctx, b.wc)
	if err != nil {
		return nil, err
	}
	for i := range n {
		if err := b.wc[i].Err(); err != nil {
			return nil, fmt.Errorf("receive %d: %w", b.wc[i].ID, err)
		}
	}
	return b.wc[:n], nil
}

// Immediate data: the number of the message in the run, and whether it is the last.
// Answers use the same bits for their count.
const (
	lastFlag  = 1 << 31
	countMask = lastFlag - 1
)

// layout maps the messages of a run to a lane's memory, and to pieces.
type layout struct {
	size, slots, chunk, chunks int
}

func newLayout(p *Params, size int) layout {
	l := layout{size: size, slots: p.slots(size), chunk: size, chunks: p.chunks(size)}
	if l.chunks > 1 {
		l.chunk = p.Chunk
	}
	return l
}

// segment returns the segment of piece k of the run, counted over all messages.
func (l *layout) segment(mr endpoint.MR, k int) endpoint.Segment {
	m, c := k/l.chunks, k%l.chunks
	return endpoint.Segment{MR: mr, Offset: m%l.slots*l.size + c*l.chunk, Len: min(l.chunk, l.size-c*l.chunk)}
}

// request fills in the work request for piece k. With imm it has immediate data, which
// receivers get even with a WRITE.
func (l *layout) request(wr *endpoint.SendWR, p *Params, mr endpoint.MR, k int, imm, last bool) {
	*wr = endpoint.SendWR{ID: uint64(k), Op: endpoint.Send, Local: l.segment(mr, k), Imm: uint32(k & countMask)}
	if last {
		imm = true
		wr.Imm |= lastFlag
	}
	switch {
	case p.write() && imm:
		wr.Op = endpoint.WriteImm
	case p.write():
		wr.Op = endpoint.Write
	case imm:
		wr.Op = endpoint.SendImm
	}
}
