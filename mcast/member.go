// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/mcast/token"
	"github.com/gleam-rdma/gleam/rocev2"
)

// member is a member's state between its turns.
type member struct {
	ip         rocev2.AddrKey
	qpn        rocev2.QPN
	leg        LegID
	live       bool
	role       role  // as registered
	ackedCount int32 // PSNs before sqPSN that were acknowledged to it; as source.ackedCount

	sqPSN    rocev2.PSN // next PSN of its send queue; current while it is not the source
	ePSN     rocev2.PSN // next PSN its receive queue expects; current while it is not a receiver
	messages rocev2.MSN // messages that it sent and that are acknowledged; current when sqPSN is
}

// memberHistory is the part of a member's state that most members never need.
type memberHistory struct {
	quarantinedUntil time.Duration // none of its packets is served before (R68); as source.quarantinedUntil
	waits            time.Duration // since when it has waited for its turn; 0: it does not wait
	refusalReported  bool          // an event has reported that the member, registered to receive only, sent data
}

// extra is the part of a group's state that most groups never need.
type extra struct {
	forwards []LegID         // the forwarded legs
	levels   []uint8         // of each of them (LegSpec.Levels)
	history  []memberHistory // by MemberID; members beyond its end have no history
	resume   resume
	firstPSN []rocev2.PSN              // by MemberID: RQPSN as registered; only of a group that was put with positions
	numbers  []token.Member            // by MemberID: the members' numbers in the registration; those beyond its end are MemberID+1
	byNumber map[token.Member]MemberID // the same, by number
	highest  token.Member              // the highest number of a member whose MemberID another one has taken over
	tree     *tree                     // nil unless there are forwarded legs
	replies  replies                   // if policyParams.replies
	offload  *offload                  // nil unless the group may be offloaded
}

func (g *group) newExtra() *extra {
	if g.extra == nil {
		g.extra = new(extra)
	}
	return g.extra
}

// tree returns the group's part in its tree of switches; nil without forwarded legs.
func (g *group) tree() *tree {
	if g.extra == nil {
		return nil
	}
	return g.extra.tree
}

func (g *group) forwardedLegs() []LegID {
	if g.extra == nil {
		return nil
	}
	return g.extra.forwards
}

// maxLevels bounds LegSpec.Levels.
const maxLevels = 16

// levelsBehind returns LegSpec.Levels of leg i.
func (g *group) levelsBehind(i int) uint8 {
	if k := slices.Index(g.forwardedLegs(), LegID(i)); k >= 0 {
		return g.extra.levels[k]
	}
	return 0
}

// historyOf returns the history of member k, for reading.
func (g *group) historyOf(k MemberID) memberHistory {
	if g.extra == nil || int(k) >= len(g.extra.history) {
		return memberHistory{}
	}
	return g.extra.history[k]
}

// newHistory returns the history of member k, for writing.
func (g *group) newHistory(k MemberID) *memberHistory {
	x := g.newExtra()
	if n := len(g.members); len(x.history) < n {
		x.history = append(x.history, make([]memberHistory, n-len(x.history))...)
	}
	return &x.history[k]
}
