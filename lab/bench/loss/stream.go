// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package loss

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
)

// headerLen is the length of a message's header: its number, counted over all messages
// of the stream. The bytes of the message's slot in the sender's memory follow.
const headerLen = 8

// source is the sending end of a stream of SENDs.
type source struct {
	qp    endpoint.QP
	mr    endpoint.MR // slots messages
	size  int         // the size of a message
	slots int         // the number of slots: at least the messages that may be posted
	seq   uint64      // the number of the next message
	posts []time.Time // the times of posts, by slot
	wc    []endpoint.Completion
}

func newSource(qp endpoint.QP, mr endpoint.MR, size int) *source {
	slots := mr.Len() / size
	return &source{qp: qp, mr: mr, size: size, slots: slots, posts: make([]time.Time, slots), wc: make([]endpoint.Completion, slots)}
}

// streamResult is the result of a source in one run.
type streamResult struct {
	messages  int             // all that were posted; they are complete
	delivered int             // messages of these that were complete by the end of the run
	seconds   float64         // the time that the run took
	latencies []time.Duration // post to completion, of all
}

// goodput is in bytes per second.
func (s *streamResult) goodput(size int) float64 {
	return float64(s.delivered) * float64(size) / s.seconds
}

// run posts messages, depth at a time, for a while or until limit messages are posted
// (0: no limit), and then waits for those in flight.
func (s *source) run(ctx context.Context, d time.Duration, limit, depth int) (r streamResult, err error) {
	start := time.Now()
	end, last := start.Add(d), start
	first := s.seq
	done := first
	for {
		now := time.Now()
		for s.seq-done < uint64(depth) && now.Before(end) && (limit == 0 || r.messages < limit) {
			if err := s.post(now); err != nil {
				return r, err
			}
			r.messages++
		}
		if s.seq == done {
			break
		}
		n, err := s.qp.Poll(ctx, s.wc)
		if err != nil {
			return r, fmt.Errorf("wait for message %d of this run: %w", done-first, err)
		}
		now = time.Now()
		for _, c := range s.wc[:n] {
			if err := c.Err(); err != nil {
				return r, fmt.Errorf("message %d of this run: %w", done-first, err)
			}
			if c.ID != done {
				return r, fmt.Errorf("completion of message %d while that of %d was due", c.ID, done)
			}
			r.latencies = append(r.latencies, now.Sub(s.posts[int(done)%s.slots]))
			done++
			if !now.After(end) {
				r.delivered++
				last = now
			}
		}
	}
	r.seconds = d.Seconds()
	if limit > 0 && r.delivered == limit { // over before its time
		r.seconds = last.Sub(start).Seconds()
	}
	return r, nil
}

func (s *source) post(now time.Time) error {
	slot := int(s.seq % uint64(s.slots))
	at := slot * s.size
	binary.BigEndian.PutUint64(s.mr.Bytes()[at:], s.seq) // its earlier message is complete
	s.posts[slot] = now
	wr := endpoint.SendWR{ID: s.seq, Op: endpoint.Send, Local: endpoint.Segment{MR: s.mr, Offset: at, Len: s.size}}
	if _, err := s.qp.PostSend(wr); err != nil {
		return fmt.Errorf("post: %w", err)
	}
	s.seq++
	return nil
}

// receiver is the receiving end of a stream: it compares every byte.
type receiver struct {
	name    string
	qp      endpoint.QP
	mr      endpoint.MR
	size    int
	sources *source       // the source whose slots, but for the headers, never change
	seq     atomic.Uint64 // messages that have arrived, all right
	slots   uint64
}

// prime posts the first receives.
func (s *receiver) prime() error {
	s.slots = uint64(s.mr.Len() / s.size)
	for i := range s.slots {
		if err := s.post(i); err != nil {
			return err
		}
	}
	return nil
}

func (s *receiver) post(seq uint64) error {
	at := int(seq%s.slots) * s.size
	wr := endpoint.RecvWR{ID: seq, Local: endpoint.Segment{MR: s.mr, Offset: at, Len: s.size}}
	if _, err := s.qp.PostRecv(wr); err != nil {
		return fmt.Errorf("%s: post a receive: %w", s.name, err)
	}
	return nil
}

// drain takes and compares messages until ctx ends, or something is wrong.
func (s *receiver) drain(ctx context.Context) error {
	wc := make([]endpoint.Completion, recvDepth)
	for {
		n, err := s.qp.Poll(ctx, wc)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		for _, c := range wc[:n] {
			seq := s.seq.Load()
			if err := c.Err(); err != nil {
				return fmt.Errorf("%s: receive %d: %w", s.name, seq, err)
			}
			if err := s.compare(seq, c); err != nil {
				return fmt.Errorf("%s has OTHER BYTES than the sender: %w", s.name, err)
			}
			if err := s.post(seq + s.slots); err != nil {
				return err
			}
			s.seq.Add(1)
		}
	}
}

// compare checks message seq, whose completion is c.
func (s *receiver) compare(seq uint64, c endpoint.Completion) error {
	if c.ID != seq || c.Len != s.size {
		return fmt.Errorf("receive %d of %d bytes, want receive %d of %d", c.ID, c.Len, seq, s.size)
	}
	at := int(seq%s.slots) * s.size
	got := s.mr.Bytes()[at : at+s.size]
	if n := binary.BigEndian.Uint64(got); n != seq {
		return fmt.Errorf("message %d is there in place of %d", n, seq)
	}
	slot := int(seq%uint64(s.sources.slots)) * s.size
	want := s.sources.mr.Bytes()[slot : slot+s.size]
	if !bytes.Equal(got[headerLen:], want[headerLen:]) {
		i := headerLen
		for got[i] == want[i] {
			i++
		}
		return fmt.Errorf("message %d: byte %d is 0x%02x, want 0x%02x", seq, i, got[i], want[i])
	}
	return nil
}

// arrived waits until message seq-1 is there.
func (s *receiver) arrived(ctx context.Context, seq uint64) error {
	for s.seq.Load() < seq {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s has %d of %d messages: %w", s.name, s.seq.Load(), seq, context.Cause(ctx))
		case <-time.After(settleStep):
		}
	}
	return nil
}
