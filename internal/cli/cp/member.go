// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cp

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/internal/cli/port"
)

// joinTimeout bounds the making of a group.
const joinTimeout = 15 * time.Second

// member is a receiver's part in a group.
type member struct {
	port  *port.Port
	ring  endpoint.MR // a slot for each chunk of the window
	slot  int         // bytes
	qp    endpoint.QP
	group *endpoint.Group // nil: it was not joined
	err   chan error      // the outcome of the goroutine that writes chunks
}

// join joins the group that the sender makes next. A receiver that cannot do that says so,
// and gets its chunks over the connection.
func (s *session) join(ctx context.Context, data []byte) error {
	ip, ok := netip.AddrFromSlice(data)
	if s.member != nil || !ok {
		return errors.New("a group that cannot be joined")
	}
	m := &member{slot: chunkHead + s.hello.Chunk}
	if err := s.prepare(m, ip.Is6()); err != nil {
		s.o.Say(fmt.Sprintf("no group: %v", err))
		return errors.Join(s.w.send(frameJoined, []byte(err.Error())), m.close())
	}
	if err := s.w.send(frameJoined, nil); err != nil {
		return errors.Join(err, m.close())
	}
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	var err error
	m.group, err = endpoint.Member(ctx, endpoint.MemberConfig{
		Local: endpoint.Local{QP: m.qp, ReceiveOnly: true, HostConfig: s.o.Host}, Listener: s.ln,
	})
	if err != nil { // the sender is told by the exchange
		s.o.Say(fmt.Sprintf("no group: %v", err))
		return m.close()
	}
	s.member = m
	go func() { m.err <- s.take(m) }()
	return nil
}

// prepare opens the device, and makes a queue pair with receives.
func (s *session) prepare(m *member, v6 bool) (err error) {
	if m.port, err = s.o.Local.open(s.w.c, v6); err != nil {
		return err
	}
	n := s.hello.Window
	if m.ring, err = m.port.Buffer(n*m.slot, 0, endpoint.LocalWrite); err != nil {
		return err
	}
	if m.qp, err = m.port.CreateQP(s.o.Local.qpConfig(m.port, 1, n)); err != nil {
		return err
	}
	m.err = make(chan error, 1)
	for i := range n {
		if err := m.post(i); err != nil {
			return err
		}
	}
	return nil
}

func (m *member) post(slot int) error {
	_, err := m.qp.PostRecv(endpoint.RecvWR{ID: uint64(slot), Local: endpoint.Segment{MR: m.ring, Offset: slot * m.slot, Len: m.slot}})
	return err
}

// take writes the chunks that arrive, and reports them, until the queue pair is closed.
func (s *session) take(m *member) error {
	wc := make([]endpoint.Completion, s.hello.Window)
	for messages := 0; ; {
		n, err := m.qp.Poll(context.Background(), wc)
		if err != nil {
			return nil // closed
		}
		for _, c := range wc[:n] {
			if c.Status != endpoint.Success {
				return nil // the group is over; the sender knows
			}
			at := int(c.ID) * m.slot
			if err := s.put(m.ring.Bytes()[at : at+c.Len]); err != nil {
				s.o.Say(fmt.Sprintf("from %s: %v", s.w.c.RemoteAddr(), err))
				s.w.fail(err)
				time.AfterFunc(linger, s.w.close)
				return err
			}
			messages++
			_ = m.post(int(c.ID)) // fails once the queue pair is closed; more chunks may have arrived
			if err := s.w.send(frameDone, done{messages, s.store.bytes}.encode()); err != nil {
				return nil // the reader notices the connection's end
			}
		}
	}
}

// leave ends the membership, when what has arrived is written.
func (s *session) leave() error {
	m := s.member
	if m == nil {
		return nil
	}
	s.member = nil
	_ = m.qp.Close() // behind what has arrived
	err := <-m.err
	return errors.Join(err, m.close())
}

// close frees all that has been made.
func (m *member) close() error {
	if m.group != nil {
		_ = m.group.Close() // the sender has ended it, or removed this host
	}
	if m.qp != nil {
		_ = m.qp.Close()
	}
	if m.port != nil {
		return m.port.Close()
	}
	return nil
}
