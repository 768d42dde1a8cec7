// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
)

// message is one message to a group.
type message struct {
	op   endpoint.WROp
	size int // bytes
}

func (m message) String() string { return fmt.Sprintf("%s of %d B", m.op, m.size) }

// lands reports whether m takes a posted receive.
func (m message) lands() bool { return m.op != endpoint.Write }

// quiet is the time for which all hosts must be silent after a transfer.
const quiet = 50 * time.Millisecond

// errEarly is a completion at the source before all receivers had the message.
var errEarly = errors.New("completed at the source before the receiver had it")

// batch is messages that are posted at once, each at its own offset in all
// members' memory.
type batch struct {
	g        *group
	messages []message
	at       []int // offset of each
	used     int   // bytes
}

// newBatch lays msgs out, fills the source's memory and clears the receivers'.
func (g *group) newBatch(msgs ...message) (*batch, error) {
	b := &batch{g: g, messages: msgs}
	for _, m := range msgs {
		b.at = append(b.at, b.used)
		b.used += (m.size + 64 + 63) &^ 63 // some bytes between them that must stay
	}
	if b.used > memory {
		return nil, fmt.Errorf("%d messages of %d bytes in all: memory has %d", len(msgs), b.used, memory)
	}
	for _, mb := range g.members {
		clear(mb.mr.Bytes()[:b.used])
	}
	src := g.source().mr.Bytes()
	random := rand.NewChaCha8([32]byte{byte(g.spec.number), byte(len(msgs)), byte(g.batches), byte(g.batches >> 8)})
	g.batches++
	for i, m := range msgs {
		_, _ = random.Read(src[b.at[i] : b.at[i]+m.size]) // it never fails
	}
	return b, nil
}

// transfer sends msgs and checks all there is to check.
func (g *group) transfer(ctx context.Context, msgs ...message) error {
	b, err := g.newBatch(msgs...)
	if err != nil {
		return err
	}
	for _, r := range g.receivers() {
		if err := b.receive(r); err != nil {
			return err
		}
	}
	if err := b.post(); err != nil {
		return err
	}
	return b.finish(ctx)
}

// receive posts at r the receives for the messages.
func (b *batch) receive(r *member) error {
	for i, m := range b.messages {
		if !m.lands() {
			continue
		}
		wr := endpoint.RecvWR{ID: uint64(i)}
		if (m.op == endpoint.Send || m.op == endpoint.SendImm) && m.size > 0 {
			wr.Local = endpoint.Segment{MR: r.mr, Offset: b.at[i], Len: m.size}
		}
		if _, err := r.qp.PostRecv(wr); err != nil {
			return fmt.Errorf("host %d: post receive: %w", r.index, err)
		}
	}
	return nil
}

// post hands the messages to the source's queue pair.
func (b *batch) post() error { return b.postWith(func(int, *endpoint.SendWR) {}) }

// postWith lets change alter a request before it is posted.
func (b *batch) postWith(change func(i int, wr *endpoint.SendWR)) error {
	src := b.g.source()
	for i, m := range b.messages {
		wr := endpoint.SendWR{ID: uint64(i), Op: m.op, Imm: immediate(i), RemoteAddr: windowBase + uint64(b.at[i]), RKey: b.g.rkey}
		if m.size > 0 {
			wr.Local = endpoint.Segment{MR: src.mr, Offset: b.at[i], Len: m.size}
		}
		change(i, &wr)
		if _, err := src.qp.PostSend(wr); err != nil {
			return fmt.Errorf("post message %d, %s: %w", i, m, err)
		}
	}
	return nil
}

func immediate(i int) uint32 { return 0xA5000000 | uint32(i) }

// finish waits until all is complete and compares everything.
func (b *batch) finish(ctx context.Context) error {
	if err := b.sent(ctx, len(b.messages)); err != nil {
		return err
	}
	return b.compare(ctx)
}

// compare takes the receivers' completions and compares everything.
func (b *batch) compare(ctx context.Context) error {
	for _, r := range b.g.receivers() {
		if err := b.landed(ctx, r); err != nil {
			return fmt.Errorf("host %d: %w", r.index, err)
		}
	}
	for _, mb := range b.g.members {
		if err := silence(ctx, mb); err != nil {
			return err
		}
	}
	want := b.g.source().mr.Bytes()[:b.used] // zero between messages, as with the receivers
	for _, r := range b.g.receivers() {
		if i := difference(want, r.mr.Bytes()[:b.used]); i >= 0 {
			return wrongBytes{fmt.Errorf("host %d: the byte at offset %d is not the source's", r.index, i)}
		}
	}
	return nil
}

// sent takes the source's completions of the first n messages: one for each, in
// order, and only when the message's last byte is in every receiver's memory.
func (b *batch) sent(ctx context.Context, n int) error {
	src := b.g.source()
	var wcs [16]endpoint.Completion
	for done := 0; done < n; {
		k, err := src.qp.Poll(ctx, wcs[:min(len(wcs), n-done)])
		if err != nil {
			return fmt.Errorf("the source, with %d of %d messages complete: %w", done, n, err)
		}
		for _, c := range wcs[:k] {
			if err := c.Err(); err != nil {
				return fmt.Errorf("the source: %w", err)
			}
			m := b.messages[done]
			want := endpoint.SendDone
			if m.op == endpoint.Write || m.op == endpoint.WriteImm {
				want = endpoint.WriteDone
			}
			if c.ID != uint64(done) || c.Op != want {
				return fmt.Errorf("the source: completion %+v, want one of message %d, %s", c, done, m)
			}
			if err := b.arrived(done); err != nil {
				return err
			}
			done++
		}
	}
	return nil
}

// arrived compares message i at all receivers.
func (b *batch) arrived(i int) error {
	from, to := b.at[i], b.at[i]+b.messages[i].size
	want := b.g.source().mr.Bytes()[from:to]
	for _, r := range b.g.receivers() {
		if at := difference(want, r.mr.Bytes()[from:to]); at >= 0 {
			return wrongBytes{fmt.Errorf("message %d, %s, %w: host %d, byte %d", i, b.messages[i], errEarly, r.index, at)}
		}
	}
	return nil
}

// landed takes r's completions: one for each message that takes a receive.
func (b *batch) landed(ctx context.Context, r *member) error {
	var wcs [1]endpoint.Completion
	for i, m := range b.messages {
		if !m.lands() {
			continue
		}
		if _, err := r.qp.Poll(ctx, wcs[:]); err != nil {
			return fmt.Errorf("receive of message %d, %s: %w", i, m, err)
		}
		c := wcs[0]
		if err := c.Err(); err != nil {
			return err
		}
		want := endpoint.Completion{ID: uint64(i), Op: endpoint.Recv, Len: m.size, QPN: c.QPN}
		if m.op == endpoint.WriteImm {
			want.Op = endpoint.RecvWithImm
		}
		if m.op == endpoint.WriteImm || m.op == endpoint.SendImm {
			want.HasImm, want.Imm = true, immediate(i)
		}
		if c != want {
			return fmt.Errorf("completion %+v, want %+v", c, want)
		}
	}
	return nil
}

// silence checks that mb has no completion more.
func silence(ctx context.Context, mb *member) error {
	ctx, cancel := context.WithTimeout(ctx, quiet)
	defer cancel()
	var wcs [1]endpoint.Completion
	n, err := mb.qp.Poll(ctx, wcs[:])
	switch {
	case n > 0:
		return fmt.Errorf("host %d: one completion too many: %+v", mb.index, wcs[0])
	case !errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("host %d: %w", mb.index, err)
	}
	return nil
}

// difference returns the first index at which a and b differ, -1 if none.
func difference(a, b []byte) int {
	if bytes.Equal(a, b) {
		return -1
	}
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}
