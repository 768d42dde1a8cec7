// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package join takes joining a group apart into steps, for programs in other
// languages that connect their queue pair by themselves: Join tells what to
// connect to, Connected that it is done, Wait when data may flow. Package
// endpoint does the work; here are the steps, the queue of events with a
// descriptor to poll, and the hosts that groups of one process share.
package join

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gleam-rdma/gleam/endpoint"
)

// Config describes a participation in a group.
type Config struct {
	Exchange string // TCP host:port at which the master listens, or is found
	Host     endpoint.HostConfig
	// ReceiveOnly: the queue pair never sends to the group, and is registered so.
	ReceiveOnly bool
	// Master describes the group that is to be made; nil joins somebody else's.
	// Its Local and Listener are not used.
	Master *endpoint.MasterConfig
}

// Memory is the region of a member, as the switch has to know it.
type Memory struct {
	Addr, Len uint64
	RKey      uint32
}

// ErrOrder is for steps that are called out of order.
var ErrOrder = errors.New("called out of order")

// errClosed is returned by steps during and after Close.
var errClosed = fmt.Errorf("the group was destroyed meanwhile: %w", endpoint.ErrClosed)

// Session is a participation in a group, from description to end. Its methods
// may be called from any goroutine.
type Session struct {
	cfg    Config
	events *queue

	mu     sync.Mutex
	last   *attempt // the latest; nil before the first
	closed bool
}

// New describes a participation; nothing is sent yet.
func New(cfg Config) (*Session, error) {
	if cfg.Exchange == "" {
		return nil, errors.New("no address for the exchange: want the TCP host:port at which the master listens")
	}
	if m := cfg.Master; m != nil {
		switch {
		case !m.GroupIP.IsValid() || m.GroupIP.Is4In6() || m.GroupIP.IsMulticast() || m.GroupIP.IsUnspecified():
			return nil, fmt.Errorf("GroupIP %v: want a unicast address in the switch's group_prefixes", m.GroupIP)
		case m.Members < 1:
			return nil, fmt.Errorf("%d members to wait for: want at least 1", m.Members)
		}
	}
	q, err := newQueue()
	if err != nil {
		return nil, err
	}
	return &Session{cfg: cfg, events: q}, nil
}

// Join begins to join with a queue pair, and returns what to connect it to. If
// ctx ends first, or the exchange fails, nothing is left of it and Join may be
// called again.
func (s *Session) Join(ctx context.Context, qp endpoint.QPInfo, mem *Memory) (endpoint.Remote, error) {
	a, err := s.begin(qp, mem)
	if err != nil {
		return endpoint.Remote{}, err
	}
	select {
	case to := <-a.described:
		return to, nil
	case <-a.done:
	case <-ctx.Done():
		a.cancel(errGivenUp(ctx, "the master describes the group when all its members have come: start what is missing, or allow more time"))
		<-a.done
	}
	return endpoint.Remote{}, a.err
}

// errGivenUp says why ctx ended, and what to do.
func errGivenUp(ctx context.Context, next string) error {
	return fmt.Errorf("%w; %s", context.Cause(ctx), next)
}

func (s *Session) begin(qp endpoint.QPInfo, mem *Memory) (*attempt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	if s.last != nil {
		switch s.last.phase() {
		case joining:
			return nil, fmt.Errorf("%w: a join is going on; leave first", ErrOrder)
		case inGroup:
			return nil, fmt.Errorf("%w: it is in group %s already; leave first", ErrOrder, s.last.group.Info().IP)
		}
		_ = s.last.close() // a group that was over: nothing is lost
	}
	s.events.reset()
	s.last = start(s, qp, mem)
	return s.last, nil
}

// latest returns the latest attempt.
func (s *Session) latest() (*attempt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, errClosed
	case s.last == nil:
		return nil, fmt.Errorf("%w: join first", ErrOrder)
	}
	return s.last, nil
}

// Connected says that the queue pair is ready to send and receive, or why not.
func (s *Session) Connected(failure error) error {
	a, err := s.latest()
	if err != nil {
		return err
	}
	return a.report(failure)
}

// Wait waits until the group is registered. If ctx ends first, the join is given
// up and the error says what was missing.
func (s *Session) Wait(ctx context.Context) (endpoint.GroupInfo, error) {
	a, err := s.latest()
	if err != nil {
		return endpoint.GroupInfo{}, err
	}
	select {
	case <-a.done:
	case <-ctx.Done():
		a.cancel(errGivenUp(ctx, "start what is missing, or allow more time"))
		<-a.done
	}
	if a.err != nil {
		return endpoint.GroupInfo{}, a.err
	}
	return a.group.Info(), nil
}

// Next returns the next event, or why ctx ended, or ErrNoMore.
func (s *Session) Next(ctx context.Context) (endpoint.Event, error) { return s.events.next(ctx) }

// FD returns a descriptor that is readable while an event waits.
func (s *Session) FD() int { return s.events.fd }

// Leave leaves the group, or gives up the join.
func (s *Session) Leave(ctx context.Context) error {
	a, err := s.latest()
	if err != nil {
		return err
	}
	a.cancel(errors.New("it left before the group was registered"))
	<-a.done
	if a.err != nil {
		return nil
	}
	err = a.group.Leave(ctx)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w; try again, or destroy the group: the switch drops it when its lease ends", err)
	}
	return err
}

// Close leaves, for two seconds at most, and lets go of everything.
func (s *Session) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	a := s.last
	s.mu.Unlock()
	var err error
	if a != nil {
		a.cancel(errors.New("it left before the group was registered"))
		<-a.done
		err = a.close()
	}
	return errors.Join(err, s.events.close())
}
