// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"sync"
)

// userShare bounds how many of something there are at once: in all, and for each user.
type userShare struct {
	mu           sync.Mutex
	max, perUser int
	total        int
	byUser       map[string]int // the number in use by Peer.user
	released     chan struct{}
}

func newShare(max, each int) *userShare {
	return &userShare{max: max, perUser: each, byUser: make(map[string]int), released: make(chan struct{})}
}

// take takes one for user, unless there are too many.
func (s *userShare) take(user string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total >= s.max || s.byUser[user] >= s.perUser {
		return false
	}
	s.total++
	s.byUser[user]++
	return true
}

// give gives one of user's back.
func (s *userShare) give(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total--
	if s.byUser[user]--; s.byUser[user] == 0 {
		delete(s.byUser, user)
	}
	close(s.released)
	s.released = make(chan struct{})
}

// wait takes one for user as soon as it may; false if ctx ends before.
func (s *userShare) wait(ctx context.Context, user string) bool {
	for {
		s.mu.Lock()
		smaller := s.released
		s.mu.Unlock()
		if s.take(user) {
			return true
		}
		select {
		case <-smaller:
		case <-ctx.Done():
			return false
		}
	}
}

// userShares are the shares of the peers of a role.
type userShares struct {
	conns    *userShare // connections
	refusals *userShare // connections beyond these, which get a refusal
	work     *userShare // requests that hold a body or an answer in memory
	polls    *userShare // waiting requests for events
}

// newShares bounds the memory of all bodies and answers: a body has 1 MiB at most.
func newShares() (all [numRoles]userShares) {
	for r := range numRoles {
		each := 1
		if r == owner { // one user
			each = 4
		}
		all[r] = userShares{conns: newShare(64, 16*each), refusals: newShare(16, 16), work: newShare(8, 2*each), polls: newShare(32, 8*each)}
	}
	all[stranger] = all[reader]
	return all
}
