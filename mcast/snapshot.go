// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"net/netip"

	"github.com/gleam-rdma/gleam/mcast/token"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Counters count the packets of a group since it was put.
type Counters struct {
	DataIn      uint64 // request packets of members, with refused ones and duplicates
	Copies      uint64
	FeedbackIn  uint64 // ACK, NAK, RNR NAK and CNP of receivers
	FeedbackOut uint64 // feedback packets to members
	NAKsServed  uint64 // NAKs and RNR NAKs answered from the store, of FeedbackIn
	Probes      uint64 // probes to receivers whose ACK was overdue
	Resent      uint64 // copies of retained frames, of Copies
	NotRetained uint64 // frames for which the store had no room
	Repeated    uint64 // packets that the source has sent again, of DataIn

	RepeatedBytes uint64 // payload of those of Repeated that were served, and had come before
	Drops         [NumReasons]uint64
}

// tally is a group's form of Counters, in two parts: many groups never need the second
// one.
type tally struct {
	DataIn, Copies, FeedbackIn, FeedbackOut uint64

	more *Counters // the other counters; nil: all are 0
}

// rare returns the counters that many groups never need.
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

// GroupStatus is a group's state at one moment, for operators.
type GroupStatus struct {
	ID           GroupID
	IP           netip.Addr
	QPN          rocev2.QPN
	Policy       Policy
	HasSource    bool
	Source       MemberID
	Acked        rocev2.PSN // A: acknowledged by all live receivers, or by the quorum; source's space
	Nxt          rocev2.PSN // the next new PSN of the source
	Failed       bool       // FailPSN, FailSyndrome, FailCause and FailMember are set
	FailPSN      rocev2.PSN
	FailSyndrome rocev2.Syndrome // syndrome of the NAK that the source got; 0: none
	FailCause    rocev2.Syndrome // the cause at FailMember; see Event.Cause
	FailMember   MemberID
	Retained     int64 // bytes of packet memory that the store retains
	RetainedMax  int64 // the maximum of Retained so far
	Counters     Counters
	Members      []MemberStatus // the members, by MemberID
	InConflict   bool           // the switches disagree on the source: a neighbour sends data of Conflict
	Conflict     MemberID
	InTree       bool // the group has legs to other switches, and Token is set
	Token        TokenStatus
}

// TokenStatus is what a switch knows of the right to be the source of a group (R84).
type TokenStatus struct {
	State    token.State
	Term     token.Term
	Toward   Neighbor // the switch behind which the token is; 0: it is here
	Serving  bool     // Member, of this switch, may send
	Member   MemberID
	Waiting  int // own members and neighbours that wait for the token here
	Children int // switches below
}

func (t *tree) status() TokenStatus {
	st := TokenStatus{State: t.machine.State(), Term: t.machine.Term()}
	if leg := t.machine.Toward(); leg != token.Here {
		st.Toward = t.neighborOf(leg)
	}
	st.Member, st.Serving = t.memberOf(t.machine.Serving())
	if !st.Serving {
		st.Member = 0
	}
	st.Waiting, st.Children = t.machine.Waiting()
	return st
}

// MemberStatus is a member's part of GroupStatus. Acked, Lag, Pending and HoldsACK are
// those of its leg: members behind the same switch share them. PSNs are in the source's
// space.
type MemberStatus struct {
	IP         netip.Addr
	QPN        rocev2.QPN
	Leg        LegID
	Live       bool
	Joining    bool // receives from the source's next message on
	Unplaced   bool // true: it is not known yet what the members behind its leg have (R89)
	Source     bool
	Acked      rocev2.PSN
	Lag        int32           // PSNs that were forwarded and that it has not acknowledged
	Pending    rocev2.Syndrome // the syndrome of a pending NAK of Acked+1; 0: none
	HoldsACK   bool            // the group's ACK waits for it
	Recovering bool            // its leg gets lost data from the store

	Mismatches Mismatches // numbers in its packets that differ from the registered ones

	// Unverified: the member has not shown yet that it expects RegisteredPSN, which is in
	// its own space.
	Unverified    bool
	RegisteredPSN rocev2.PSN
}

// Snapshot writes the state of a group into st, whose Members it reuses. It reports
// whether the group exists.
func (v Group) Snapshot(st *GroupStatus) bool {
	g := v.g
	if g == nil {
		return false
	}
	ms := st.Members[:0]
	*st = GroupStatus{
		ID: g.id, IP: g.ip.Addr(), QPN: g.qpn, Policy: g.policy.kind,
		HasSource: g.src.member != none, Acked: g.agg.acked, Nxt: g.fwd.nxt,
		Failed: g.is(failed), FailPSN: g.failure.psn, FailSyndrome: g.failure.syndrome, Counters: g.counters.counters(),
	}
	if g.is(failed) && g.outcomes != nil { // SetState does not restore outcomes
		e := &g.outcomes.Failure
		st.FailCause, st.FailMember = e.Cause, e.Member
	}
	if g.repair.store != nil {
		st.Retained, st.RetainedMax = g.repair.store.bytes+g.repair.store.held.bytes, g.repair.store.peakBytes
	}
	if g.src.member != none {
		st.Source = MemberID(g.src.member)
	}
	st.Conflict, st.InConflict = g.conflictsWith()
	if t := g.tree(); t != nil {
		st.InTree, st.Token = true, t.status()
	}
	for i := range g.members {
		m := &g.members[i]
		b, l := g.ackStateOf(int(m.leg)), &g.legs[m.leg]
		t := MemberStatus{IP: m.ip.Addr(), QPN: m.qpn, Leg: m.leg, Live: m.live, Joining: m.live && l.joining, Unplaced: m.live && b.flags&isUnplaced != 0, Source: int32(i) == g.src.member}
		if m := g.mismatch(MemberID(i), 0); m != nil {
			t.Mismatches = g.outcomes.Mismatches[i]
		}
		t.Unverified, t.RegisteredPSN = m.live && g.unproven(int(m.leg)) && l.member == MemberID(i), m.ePSN
		if m.live && b.flags&isReceiver != 0 {
			t.Acked, t.Lag = b.acked, g.fwd.nxt.Prev().Sub(b.acked)
			t.Pending, t.Recovering = b.pendingSyndrome, b.flags&recovering != 0
			t.HoldsACK = b.acked.LessEq(g.agg.acked) && g.agg.acked != g.fwd.nxt.Prev()
		}
		ms = append(ms, t)
	}
	st.Members = ms
	return true
}

// Progress returns how far the data has come, and whether src is its source.
func (v Group) Progress(src netip.Addr) (acked, nxt rocev2.PSN, isSource bool) {
	g := v.g
	if g == nil || g.src.member == none {
		return 0, 0, false
	}
	return g.agg.acked, g.fwd.nxt, g.src.addr == rocev2.KeyOf(src)
}

// SourcePSN returns the PSN of the source that feedback with PSN psn, sent by src, is
// about: a member numbers by its own queue pair (R18). ok is false if src is no receiver here.
func (v Group) SourcePSN(src netip.Addr, psn rocev2.PSN) (of rocev2.PSN, ok bool) {
	g := v.g
	if g == nil || g.src.member == none {
		return 0, false
	}
	m, ok := g.memberAt(src)
	if !ok {
		return 0, false
	}
	l := g.members[m].leg
	if !g.legs[l].connected() || g.acks[l].flags&isReceiver == 0 {
		return 0, false
	}
	return (psn - rocev2.PSN(g.acks[l].delta)) & rocev2.PSNMask, true
}

// Awaited is what a group's next ACK waits for.
type Awaited struct {
	Legs  int        // number of legs that have no more than what is acknowledged; 0: the ACK waits for nobody
	Alone bool       // true: it waits for one leg, while another receiving leg has more
	PSN   rocev2.PSN // the first one that is not acknowledged, in the source's space
}

// Awaited returns what the next ACK of a group waits for, whatever the number of its members.
// Under Quorum some of the legs may be ones that it need not wait for, and Alone is false.
func (v Group) Awaited() (a Awaited) {
	g := v.g
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
func (v Group) AwaitedMember(was MemberID) (m MemberID, ok bool) {
	g := v.g
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
