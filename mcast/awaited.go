// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/rocev2"

// Awaited is what a group's next ACK waits for.
type Awaited struct {
	Legs  int        // that have no more than what is acknowledged; 0: the ACK waits for nobody
	Alone bool       // it waits for one leg, while another receiving leg has more
	PSN   rocev2.PSN // the first one that is not acknowledged, in the source's space
}

// Awaited returns what the next ACK of a group waits for, whatever the number of its members.
// Under Quorum some of the legs may be ones that it need not wait for, and Alone is false.
func (s *Switch) Awaited(id GroupID) (a Awaited) {
	g := s.group(id)
	if g == nil || g.is(failed) || g.src.member == none || g.is(unplaced) || g.agg.acked == g.fwd.nxt.Prev() || g.agg.numAtAcked == 0 {
		return a
	}
	a.PSN, a.Legs = g.agg.acked.Next(), int(g.agg.numAtAcked)
	a.Alone = a.Legs == 1 && g.recv.count > 1 && g.policy.quorum == 0
	return a
}

// AwaitedMember returns the first member behind a leg that the next ACK of a group waits for, if
// Awaited has some. The leg of was, for whom it waited before, is asked first: the other ones are
// walked only when it has more.
func (s *Switch) AwaitedMember(id GroupID, was MemberID) (m MemberID, ok bool) {
	g := s.group(id)
	if g == nil {
		return 0, false
	}
	if int(was) < len(g.members) && g.members[was].live && g.isAwaited(int(g.members[was].leg)) {
		return was, true
	}
	for i := range g.acks {
		if g.isAwaited(i) {
			return g.legs[i].member, true
		}
	}
	return 0, false
}

// isAwaited reports whether leg i is a receiver that has no more than what is acknowledged.
func (g *group) isAwaited(i int) bool {
	if g.acks == nil {
		return false
	}
	b := &g.acks[i]
	return b.flags&isReceiver != 0 && b.acked.LessEq(g.agg.acked)
}
