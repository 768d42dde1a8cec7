// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/mcast"
)

// Under --dead-after the switch evicts a receiver that is silent, and the sender goes on with the others.

// policy returns the policy of the groups.
func (s *sender) policy() mcast.Policy {
	if s.params.DeadAfter > 0 {
		return mcast.Evict
	}
	return mcast.Strict
}

// goOnWithout has all lanes go on without the receiver at ip, which the switch has evicted. It reports whether
// there is one, and another that is left.
func (s *sender) goOnWithout(ip netip.Addr) bool {
	i := slices.Index(s.members, ip)
	if i < 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isLost(i) {
		return true // from the group of another lane
	}
	if s.left == 1 {
		return false
	}
	s.left--
	s.lose[i]()
	for _, l := range s.lanes {
		l.lose(i)
	}
	return true
}

// isLost reports whether the groups go on without receiver i.
func (s *sender) isLost(i int) bool { return s.lost[i].Err() != nil }

// mayBeLost reports whether err is the end of a connection to a receiver that the group may go on without.
func (s *sender) mayBeLost(err error) bool {
	return s.params.DeadAfter > 0 && errors.Is(err, errClosed)
}

// hear waits for a message of receiver i, whose connection is c, or until the switch has evicted it.
func (s *sender) hear(ctx context.Context, c *control, i int, want string) (message, error) {
	hearing, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(s.lost[i], stop)()
	m, err := c.receive(hearing, want)
	if s.mayBeLost(err) { // the connection ends at once, the silence not before dead-after
		select {
		case <-s.lost[i].Done():
		case <-ctx.Done():
		}
	}
	return m, err
}

// withoutLost notes the receivers that are lost in z, and drops their rows.
func (s *sender) withoutLost(z *Size) {
	var left []ReceiverResult
	for i, r := range z.Receivers {
		if s.isLost(i) {
			z.Evicted = append(z.Evicted, s.members[i])
		} else {
			left = append(left, r)
		}
	}
	z.Receivers = left
}

// probeLanes has each lane send a probe once in a while, until ctx ends. A receiver may have acknowledged all data, and
// die before it answers: the switch waits for nothing then, and evicts nobody, while the sender waits for the answer.
func (s *sender) probeLanes(ctx context.Context) {
	tick := time.NewTicker(s.params.DeadAfter)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			for _, l := range s.lanes {
				l.mu.Lock()
				l.probeDue = true
				l.changed.Broadcast()
				l.mu.Unlock()
			}
		case <-ctx.Done():
			return
		}
	}
}

// probe posts a WRITE of no bytes to the group, which asks all receivers for an acknowledgement, and tells their programs
// nothing. The caller holds mu.
func (l *sendLane) probe(ctx context.Context) error {
	l.probeDue, l.probing = false, true
	l.mu.Unlock()
	defer l.mu.Lock()
	t := l.targets[0]
	return t.post(ctx, &endpoint.SendWR{Op: endpoint.Write, RemoteAddr: t.va, RKey: t.rkey})
}

// posting counts a work request that has been posted to all targets.
func (l *sendLane) posting() {
	if l.params.DeadAfter > 0 {
		l.mu.Lock()
		l.requests++
		l.mu.Unlock()
	}
}
