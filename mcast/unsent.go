// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Unsent tells the switch that a copy of the last Output was not sent, because the
// queue toward its leg is full and will have room at until. If the frame is kept,
// the branch is late from here on and gets it then: the store is the rest of that
// queue (R51). The driver must not have sent, nor send, later copies of the same
// Output for the same leg. It returns false if the copy is lost as on a link, to
// be repaired like any loss.
func (s *Switch) Unsent(c *Copy, until time.Duration) bool {
	g := s.group(c.Group)
	if g == nil || int(c.Leg) >= len(g.tracks) {
		return false
	}
	g.count.Copies--
	if g.store == nil {
		return false
	}
	b, m := &g.branches[c.Leg], &g.tracks[c.Leg].mend
	psn := (c.PSN - rocev2.PSN(b.delta)) & rocev2.PSNMask
	if b.bits&receiving == 0 || b.pend != noPend || m.led || g.store.find(psn) == nil {
		return false
	}
	if b.bits&late == 0 || psn.Less(m.next) {
		g.setLate(int(c.Leg), psn)
	}
	if psn.Less(m.sent) {
		m.sent = psn
	}
	if m.burst > 0 {
		m.left = 1 // a question that was not asked
	}
	m.probing = false
	g.holdFor(m, until)
	s.armFor(g)
	return true
}
