// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// The CNP filter lets the signals of the most congested branch through, so
// that the source slows down for the bottleneck of the tree and not for the
// sum of all branches (RC.md §7). Every branch has a weight, the
// number of its signals, halved every cnpHalfLife.
const (
	// cnpHalfLife is some RTTs of a data centre; a branch silent for 8 of
	// them weighs next to nothing.
	cnpHalfLife = time.Millisecond
	// cnpGap is the least time between two CNPs to the source: what a
	// receiver's RNIC keeps by itself (DCQCN: 50 us).
	cnpGap = 50 * time.Microsecond
	// cnpSilence of the best branch lets any branch's CNP pass: a filter that
	// passes nothing while there is congestion would be worse than none.
	cnpSilence = 2 * cnpGap
	// cnpUnit is the weight of one signal. Weights saturate; at one signal per
	// cnpGap they settle near 29 of them.
	cnpUnit   = 256
	cnpMax    = 1 << 24
	cnpMargin = 10 // a new best must weigh more than 1 + 1/cnpMargin times the old
)

// decayed is weight w after d: halved for every whole half-life, and linearly
// in between (at most 6 % more than the exponential).
func decayed(w uint32, d time.Duration) uint32 {
	if d <= 0 {
		return w
	}
	n := d / cnpHalfLife
	if n > 31 {
		return 0
	}
	w >>= uint(n)
	rest := uint64(d % cnpHalfLife)
	return w - uint32(uint64(w)*rest/uint64(2*cnpHalfLife))
}

// weigh adds a signal of leg i and returns its weight.
func (g *group) weigh(now time.Duration, i int) uint32 {
	l := &g.tracks[i]
	l.weight = min(decayed(l.weight, now-l.weighed)+cnpUnit, cnpMax)
	l.weighed = now
	return l.weight
}

// hottest notes a signal of leg i and says whether it speaks for the group.
func (g *group) hottest(now time.Duration, i int) bool {
	w := g.weigh(now, i)
	if g.best == int32(i) {
		g.bestSeen = now
		return true
	}
	if g.best == nobody {
		g.best, g.bestSeen = int32(i), now
		return true
	}
	b := &g.tracks[g.best]
	wb := decayed(b.weight, now-b.weighed)
	if uint64(w)*cnpMargin > uint64(wb)*(cnpMargin+1) {
		g.best, g.bestSeen = int32(i), now
		return true
	}
	return w >= wb || now-g.bestSeen > cnpSilence
}

// congested notes a BECN that came with an acknowledgement.
func (g *group) congested(now time.Duration, i int) {
	if g.hottest(now, i) {
		g.becn = true
	}
}

// cnp serves a congestion notification packet. It has no PSN to check.
func (g *group) cnp(now time.Duration, p *Packet, out *Output) Reason {
	i, r := g.branchOf(p)
	if r != None {
		return r
	}
	if g.dead {
		return GroupDead
	}
	if !p.Verified {
		out.NeedVerify = true
		return None
	}
	g.count.FeedbackIn++
	if !g.hottest(now, i) || g.hasPass && now-g.passed < cnpGap {
		return Filtered
	}
	g.passed, g.hasPass = now, true
	g.count.FeedbackOut++
	out.Feedback = append(out.Feedback, Feedback{Group: g.id, To: MemberID(g.src), Op: rocev2.CNP, BECN: true})
	return None
}
