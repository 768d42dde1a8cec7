// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/gleam-rdma/gleam/host/endpoint"
)

const (
	streamSize  = 3000 // bytes of a message: three packets
	streamDepth = 16   // messages in flight
)

// stream sends numbered messages from host 0 until stop, and has each receiver check
// that, from its first message on, it gets all in order.
type stream struct {
	r       *rig
	stopped atomic.Bool
	sent    atomic.Uint64 // completed
	sender  sync.WaitGroup
	others  sync.WaitGroup
}

// content is message seq.
func content(seq uint64) []byte {
	b := make([]byte, streamSize)
	for i := 0; i < streamSize; i += 8 {
		binary.LittleEndian.PutUint64(b[i:], seq*0x9E3779B97F4A7C15+uint64(i))
	}
	binary.LittleEndian.PutUint64(b, seq)
	return b
}

func (r *rig) stream() *stream {
	s := &stream{r: r}
	s.sender.Go(s.send)
	return s
}

func (s *stream) send() {
	h := s.r.hosts[0]
	var next, done uint64
	var wc [streamDepth]endpoint.Completion
	for !s.stopped.Load() || done < next {
		for ; next < done+streamDepth && !s.stopped.Load(); next++ {
			off := int(next%streamDepth) * streamSize
			copy(h.mr.Bytes()[off:], content(next))
			if _, err := h.qp.PostSend(endpoint.SendWR{ID: next, Op: endpoint.Send, Local: endpoint.Segment{MR: h.mr, Offset: off, Len: streamSize}}); err != nil {
				s.r.t.Errorf("post message %d: %v", next, err)
				return
			}
		}
		n, err := h.qp.Poll(s.r.ctx, wc[:])
		for _, c := range wc[:n] {
			if err = errors.Join(err, c.Err()); c.Err() == nil {
				done++
			}
		}
		if err != nil {
			s.r.t.Errorf("message %d: %v", done, err)
			return
		}
		s.sent.Store(done)
	}
}

// receiver is a host that takes part in a stream.
type receiver struct {
	first, next atomic.Uint64 // numbers of received messages; first is ^0 before any
	ended       chan struct{} // closed when its queue pair is
}

// receive has a queue pair take part. Its receives are posted when it returns.
func (s *stream) receive(name string, qp endpoint.QP, mr endpoint.MR) *receiver {
	s.r.t.Helper()
	const room = 4 * streamDepth
	v := &receiver{ended: make(chan struct{})}
	v.first.Store(^uint64(0))
	post := func(id uint64) error {
		_, err := qp.PostRecv(endpoint.RecvWR{ID: id, Local: endpoint.Segment{MR: mr, Offset: int(id) * streamSize, Len: streamSize}})
		return err
	}
	for id := range uint64(room) {
		if err := post(id); err != nil {
			s.r.t.Fatal(err)
		}
	}
	s.others.Go(func() {
		defer close(v.ended)
		var wc [room]endpoint.Completion
		for {
			n, err := qp.Poll(s.r.ctx, wc[:])
			for _, c := range wc[:n] {
				if c.Status == endpoint.WRFlushErr {
					return
				}
				b := mr.Bytes()[int(c.ID)*streamSize:][:streamSize]
				seq := binary.LittleEndian.Uint64(b)
				if v.first.CompareAndSwap(^uint64(0), seq) {
					v.next.Store(seq)
				}
				if want := v.next.Load(); c.Err() != nil || seq != want || !bytes.Equal(b, content(want)) {
					s.r.t.Errorf("%s: got message %d (%v), want %d", name, seq, c.Err(), want)
					return
				}
				v.next.Add(1)
				if post(c.ID) != nil {
					return
				}
			}
			if err != nil {
				return // closed
			}
		}
	})
	return v
}

// stop ends the stream and checks that these have all of it, each from its first
// message on.
func (s *stream) stop(vs ...*receiver) {
	s.r.t.Helper()
	s.stopped.Store(true)
	s.sender.Wait()
	for i, v := range vs {
		until(s.r.t, "the last message", func() bool { return v.next.Load() == s.sent.Load() })
		s.r.t.Logf("receiver %d: messages %d to %d", i, v.first.Load(), v.next.Load()-1)
	}
}

// reaches waits until a receiver has messages that were sent after now.
func (s *stream) reaches(v *receiver) {
	s.r.t.Helper()
	goal := s.sent.Load() + 3*streamDepth
	until(s.r.t, "messages go on", func() bool { return v.next.Load() > goal || s.r.t.Failed() })
}
