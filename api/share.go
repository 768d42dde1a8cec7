// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"sync"
)

// share bounds how many of something there are at once: in all, and for each user.
type share struct {
	mu         sync.Mutex
	max, each  int
	total      int
	of         map[uint32]int
	gotSmaller chan struct{}
}

func newShare(max, each int) *share {
	return &share{max: max, each: each, of: make(map[uint32]int), gotSmaller: make(chan struct{})}
}

// take takes one for uid, unless there are too many.
func (s *share) take(uid uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total >= s.max || s.of[uid] >= s.each {
		return false
	}
	s.total++
	s.of[uid]++
	return true
}

// give gives one of uid's back.
func (s *share) give(uid uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total--
	if s.of[uid]--; s.of[uid] == 0 {
		delete(s.of, uid)
	}
	close(s.gotSmaller)
	s.gotSmaller = make(chan struct{})
}

// wait takes one for uid as soon as it may; false if ctx ends before.
func (s *share) wait(ctx context.Context, uid uint32) bool {
	for {
		s.mu.Lock()
		smaller := s.gotSmaller
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

// shares are what the peers of a role have to themselves.
type shares struct {
	conns    *share // connections
	refusals *share // connections beyond these, which are told so
	work     *share // requests that hold a body or an answer in memory
	polls    *share // questions for events that wait
}

// newShares bounds the memory of all bodies and answers: a body has 1 MiB at most.
func newShares() (all [numRoles]shares) {
	for r := range numRoles {
		each := 1
		if r == owner { // one user
			each = 4
		}
		all[r] = shares{conns: newShare(64, 16*each), refusals: newShare(16, 16), work: newShare(8, 2*each), polls: newShare(32, 8*each)}
	}
	all[stranger] = all[reader]
	return all
}
