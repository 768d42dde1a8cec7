// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// The CNP filter passes the signals of the most congested leg, so that the source slows
// down for the bottleneck of the tree and not for the sum of all legs (RC.md §7). A
// signal is a CNP, or an ACK with BECN. Every leg has a weight, the number of its
// signals, halved every cnpHalfLife. The leg whose signals pass is cnpFilter.leg.
const (
	// cnpHalfLife is some RTTs of a data centre. After 8 half-lives without a signal
	// the weight of a leg is close to 0.
	cnpHalfLife = time.Millisecond
	// cnpGap is the least time between two CNPs to the source: the same that a
	// receiver's RNIC leaves between its own (DCQCN: 50 us).
	cnpGap = 50 * time.Microsecond
	// cnpSilence without a signal of that leg lets any leg's signal pass: a filter that
	// passes nothing while there is congestion would be worse than none.
	cnpSilence = 2 * cnpGap
	// cnpUnit is the weight of one signal. Weights saturate; at one signal per
	// cnpGap they converge near 29 signals.
	cnpUnit      = 256
	cnpMaxWeight = 1 << 24
	cnpMargin    = 10 // a new leg must weigh more than 1 + 1/cnpMargin times the old one
)

// cnpFilter is the filter's state. Two CNPs to the source are at least cnpGap apart.
type cnpFilter struct {
	leg      int32         // the leg whose signals pass, or none
	passed   bool          // passedAt is set
	legAt    time.Duration // the last signal of leg
	passedAt time.Duration // when the last CNP passed
}

// decayedWeight returns weight w after d: halved for every whole half-life, and linearly
// in between (at most 6 % more than the exponential).
func decayedWeight(w uint32, d time.Duration) uint32 {
	w >>= uint(d / cnpHalfLife) // 0 after 32 half-lives
	rest := uint64(d % cnpHalfLife)
	return w - uint32(uint64(w)*rest/uint64(2*cnpHalfLife))
}

// addSignal adds a signal of leg i and returns its weight.
func (g *group) addSignal(now time.Duration, i int) uint32 {
	l := &g.activity[i]
	l.cnpWeight = min(decayedWeight(l.cnpWeight, now-l.cnpWeightAt)+cnpUnit, cnpMaxWeight)
	l.cnpWeightAt = now
	return l.cnpWeight
}

// noteSignal records a signal of leg i, and reports whether the signal passes the filter.
func (g *group) noteSignal(now time.Duration, i int) bool {
	w := g.addSignal(now, i)
	if g.cnp.leg == int32(i) {
		g.cnp.legAt = now
		return true
	}
	if g.cnp.leg == none {
		g.cnp.leg, g.cnp.legAt = int32(i), now
		return true
	}
	b := &g.activity[g.cnp.leg]
	wb := decayedWeight(b.cnpWeight, now-b.cnpWeightAt)
	if uint64(w)*cnpMargin > uint64(wb)*(cnpMargin+1) {
		g.cnp.leg, g.cnp.legAt = int32(i), now
		return true
	}
	return w >= wb || now-g.cnp.legAt > cnpSilence
}

// noteBECN records a BECN that came with an ACK or NAK of leg i.
func (g *group) noteBECN(now time.Duration, i int) {
	if g.noteSignal(now, i) {
		g.src.becnDue = true
	}
}

// handleCNP serves a congestion notification packet. It has no PSN to check.
func (g *group) handleCNP(now time.Duration, p *Packet, out *Output) Reason {
	i, r := g.legOf(p)
	if r != None {
		return r
	}
	if g.is(failed) {
		return FailedGroup
	}
	if !p.Verified {
		out.NeedVerify = true
		return None
	}
	g.counters.FeedbackIn++
	if !g.noteSignal(now, i) || g.cnp.passed && now-g.cnp.passedAt < cnpGap {
		return CNPFiltered
	}
	g.cnp.passedAt, g.cnp.passed = now, true
	g.counters.FeedbackOut++
	out.Feedback = append(out.Feedback, Feedback{Group: g.id, To: MemberID(g.src.member), Op: rocev2.CNP, BECN: true})
	return None
}
