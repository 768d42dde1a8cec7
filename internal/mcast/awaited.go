// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/internal/rocev2"

// Awaited is whom a group's next ACK waits for.
type Awaited struct {
	Legs   int        // that have no more than what is acknowledged; 0: the ACK waits for nobody
	Member MemberID   // the first live member of such a leg, if Legs > 0
	Alone  bool       // it waits for one leg, while another receiving leg has more
	PSN    rocev2.PSN // the first one that is not acknowledged, in the source's space
}

// Awaited returns whom the next ACK of a group waits for. Under Quorum some of those legs may be
// ones that it need not wait for, and Alone is false.
func (s *Switch) Awaited(id GroupID) (a Awaited) {
	g := s.group(id)
	if g == nil || g.failed || g.src.member == none || g.agg.unplaced || g.agg.acked == g.fwd.nxt.Prev() {
		return a
	}
	a.PSN = g.agg.acked.Next()
	receivers := 0
	for i := range g.acks {
		if b := &g.acks[i]; b.flags&isReceiver != 0 {
			receivers++
			if b.acked.LessEq(g.agg.acked) {
				a.Legs++
			}
		}
	}
	a.Alone = a.Legs == 1 && receivers > 1 && g.policy.quorum == 0
	for i := range g.members {
		m := &g.members[i]
		if b := g.ackStateOf(int(m.leg)); m.live && b.flags&isReceiver != 0 && b.acked.LessEq(g.agg.acked) {
			a.Member = MemberID(i)
			return a
		}
	}
	return Awaited{}
}
