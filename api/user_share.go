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
	byUser       map[uint32]int
	released     chan struct{}
}

func newShare(max, each int) *userShare {
	return &userShare{max: max, perUser: each, byUser: make(map[uint32]int), released: make(chan struct{})}
}

// take takes one for uid, unless there are too many.
func (s *userShare) take(uid uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total >= s.max || s.byUser[uid] >= s.perUser {
		return false
	}
	s.total++
	s.byUser[uid]++
	return true
}

// give gives one of uid's back.
func (s *userShare) give(uid uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total--
	if s.byUser[uid]--; s.byUser[uid] == 0 {
		delete(s.byUser, uid)
	}
	close(s.released)
	s.released = make(chan struct{})
}

// wait takes one for uid as soon as it may; false if ctx ends before.
func (s *userShare) wait(ctx context.Context, uid uint32) bool {
	for {
		s.mu.Lock()
		smaller := s.released
		s.mu.Unlock()
		if s.take(uid) {
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
