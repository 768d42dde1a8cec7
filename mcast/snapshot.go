// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"net/netip"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Counters count what a group did since it was put.
type Counters struct {
	DataIn      uint64 // request packets of members, refused ones and duplicates too
	Copies      uint64
	FeedbackIn  uint64 // ACK, NAK, RNR NAK and CNP of receivers
	FeedbackOut uint64 // to sources
	NAKsServed  uint64 // NAKs and RNR NAKs answered from the store, of FeedbackIn
	Probes      uint64 // receivers asked again for an ACK that they owed
	Resent      uint64 // copies of kept frames, of Copies
	NotRetained uint64 // frames for which there was no room
	Drops       [NumReasons]uint64
}

// tally is Counters as a group has them: in two parts, of which many groups do without
// the second one.
type tally struct {
	DataIn, Copies, FeedbackIn, FeedbackOut uint64

	more *Counters // the others; nil: all are 0
}

// rare returns the counters of what happens to some groups.
func (t *tally) rare() *Counters {
	if t.more == nil {
		t.more = new(Counters)
	}
	return t.more
}

func (t *tally) counters() Counters {
	var c Counters
	if t.more != nil {
		c = *t.more
	}
	c.DataIn, c.Copies, c.FeedbackIn, c.FeedbackOut = t.DataIn, t.Copies, t.FeedbackIn, t.FeedbackOut
	return c
}

// GroupStatus is a group's state at a moment, for people to look at.
type GroupStatus struct {
	ID           GroupID
	IP           netip.Addr
	QPN          rocev2.QPN
	Policy       Policy
	HasSource    bool
	Source       MemberID
	Acked        rocev2.PSN // A: every live receiver has it; source's space
	Nxt          rocev2.PSN // hi: the next new PSN of the source
	Failed       bool       // FailPSN and FailSyndrome say where and why
	FailPSN      rocev2.PSN
	FailSyndrome rocev2.Syndrome // of the NAK that the source got; 0: none
	FailCause    rocev2.Syndrome // because of FailMember; see Event.Cause
	FailMember   MemberID
	Retained     int64 // bytes of packet memory kept for repair
	RetainedMax  int64 // the most there ever were
	Counters     Counters
	Members      []MemberStatus // by MemberID
}

// MemberStatus is a member's part of GroupStatus. Acked, Lag, Pending and
// Holds are those of its leg: members behind the same switch share them. PSNs
// are in the source's space.
type MemberStatus struct {
	IP         netip.Addr
	QPN        rocev2.QPN
	Leg        LegID
	Live       bool
	Joining    bool // waits for the source's next message
	Source     bool
	Acked      rocev2.PSN
	Lag        int32           // PSNs forwarded and not yet acknowledged by it
	Pending    rocev2.Syndrome // a NAK at Acked+1 waits; 0 if none
	HoldsACK   bool            // the group's ACK waits for it
	Recovering bool            // is sent what it lacks from the store

	Mismatches Mismatches // numbers of its packets that are not the registered ones

	// Unverified: it has not shown yet that it expects Registered, in its own space.
	Unverified    bool
	RegisteredPSN rocev2.PSN
}

// Snapshot writes the state of a group into st, whose Members it reuses. It
// reports whether there is such a group.
func (s *Switch) Snapshot(id GroupID, st *GroupStatus) bool {
	g := s.group(id)
	if g == nil {
		return false
	}
	ms := st.Members[:0]
	*st = GroupStatus{
		ID: g.id, IP: g.ip.addr(), QPN: g.qpn, Policy: g.policy,
		HasSource: g.source != none, Acked: g.acked, Nxt: g.nxt,
		Failed: g.failed, FailPSN: g.failPSN, FailSyndrome: g.failSyndrome, Counters: g.counters.counters(),
	}
	if g.failed && g.outcomes != nil { // SetState brings back no outcomes
		e := &g.outcomes.Failure
		st.FailCause, st.FailMember = e.Cause, e.Member
	}
	if g.store != nil {
		st.Retained, st.RetainedMax = g.store.bytes, g.store.peakBytes
	}
	if g.source != none {
		st.Source = MemberID(g.source)
	}
	for i := range g.members {
		m := &g.members[i]
		b, l := g.branchAt(int(m.leg)), &g.legs[m.leg]
		t := MemberStatus{IP: m.ip.addr(), QPN: m.qpn, Leg: m.leg, Live: m.live, Joining: m.live && l.joining, Source: int32(i) == g.source}
		if m := g.mismatch(MemberID(i), 0); m != nil {
			t.Mismatches = g.outcomes.Mismatches[i]
		}
		t.Unverified, t.RegisteredPSN = m.live && g.unproven(int(m.leg)) && l.member == MemberID(i), m.ePSN
		if m.live && b.flags&isReceiver != 0 {
			t.Acked, t.Lag = b.acked, g.nxt.Prev().Sub(b.acked)
			t.Pending, t.Recovering = b.pendingSyndrome, b.flags&recovering != 0
			t.HoldsACK = b.acked.LessEq(g.acked) && t.Lag > 0 && g.acked != g.nxt.Prev()
		}
		ms = append(ms, t)
	}
	st.Members = ms
	return true
}
