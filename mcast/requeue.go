// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Requeue tells the switch that a copy of the last Output was not sent: the queue toward
// its leg is full, and will have room at until. If the frame is retained the leg recovers
// from that PSN on, and gets the copy when the queue has room: the store continues that
// queue (R51). The driver must not have sent, nor send, later copies of the same Output
// for the same leg. Requeue returns false if the copy is lost as on a link, to be
// repaired like any loss.
func (s *Switch) Requeue(c *Copy, until time.Duration) bool {
	g := s.group(c.Group)
	if g == nil || int(c.Leg) >= len(g.activity) {
		return false
	}
	g.counters.Copies--
	if g.repair.store == nil {
		return false
	}
	b, m := &g.acks[c.Leg], &g.activity[c.Leg].recovery
	psn := (c.PSN - rocev2.PSN(b.delta)) & rocev2.PSNMask
	if b.flags&isReceiver == 0 || psn.LessEq(b.acked) || !m.storeServes(b) || g.repair.store.find(psn) == nil {
		return false // acked asks, and repairs nothing: its timer asks again (R57)
	}
	if m.state == inSync || psn.Less(m.cursor) {
		m.cursor = psn
	}
	g.deliver(int(c.Leg), copyRefused)
	g.noteFault(int(c.Leg), PortFull)
	m.gateOpen, m.shutNow = false, false // the driver knows what has gone to the leg, and says when it goes on
	switch {
	case b.flags&isConnected == 0 && m.inBurst(psn):
		m.untilProbe = uint8(m.burstEnd.Sub(m.cursor))
	case psn.Less(m.firstUnsent):
		m.firstUnsent = psn
	}
	if m.probeEvery != 0 {
		m.untilProbe = 1 // the probe, if the copy was one, was not sent
	}
	g.resumeAfter(m, until)
	s.rearm(g)
	return true
}
