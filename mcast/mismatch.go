// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"math"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Number is a kind of number that both sides of a connection have to agree upon.
type Number uint8

// Numbers that a member's packets show.
const (
	SendPSN    Number = iota // the PSN of the member's send queue
	VirtualQPN               // the QPN that the member's queue pair is connected to
	ReceivePSN               // the ePSN of its receive queue (R55)
	NumNumbers
)

// mismatchThreshold is how often a number is observed before it is taken for the member's:
// as often as a queue pair repeats an unanswered packet, with the usual retry counts. A
// single packet may be late or damaged, and the first packet of a source may be lost
// several times while the second one gets through.
const mismatchThreshold = 4

// Mismatch is a number in a member's packets that is not the registered one (R72).
type Mismatch struct {
	Observed   rocev2.PSN // the PSN or QPN in the packets; of PSNs the lowest
	Registered rocev2.PSN // the registered PSN or QPN
	Count      uint32     // number of observations; 0: there is no mismatch
	reported   bool       // NumberMismatch was emitted for this number of this member
}

// Confirmed reports whether m was observed too often for a stray packet.
func (m *Mismatch) Confirmed() bool { return m.reported && m.Count > 0 }

// Mismatches are the mismatches of one member, by Number.
type Mismatches [NumNumbers]Mismatch

// mismatch returns the mismatch of number n of member k; nil if no number of any member of
// g ever differed.
func (g *group) mismatch(k MemberID, n Number) *Mismatch {
	if g.outcomes == nil || g.outcomes.Mismatches == nil {
		return nil
	}
	return &g.outcomes.Mismatches[k][n]
}

// newMismatch is mismatch for a caller that is about to note one: it does not return nil.
func (g *group) newMismatch(k MemberID, n Number) *Mismatch {
	if o := g.decided(); o.Mismatches == nil {
		o.Mismatches = make([]Mismatches, len(g.members))
	}
	return g.mismatch(k, n)
}

// noteMismatch notes that a packet of member k has the number seen instead of want.
func (g *group) noteMismatch(k MemberID, n Number, seen, want rocev2.PSN, out *Output) {
	m := g.newMismatch(k, n)
	switch {
	case m.Count > 0 && m.Registered == want && m.Observed == seen:
		if m.Count < math.MaxUint32 {
			m.Count++
		}
	case m.Count > 0 && m.Registered == want && n == SendPSN && m.Observed.Less(seen):
		return // a PSN after the one that is known
	default:
		*m = Mismatch{Observed: seen, Registered: want, Count: 1, reported: m.reported}
	}
	if m.Count >= mismatchThreshold {
		g.reportMismatch(k, n, out)
	}
}

// reportMismatch emits NumberMismatch for number n of member k, once.
func (g *group) reportMismatch(k MemberID, n Number, out *Output) {
	if m := g.mismatch(k, n); m != nil && m.Count > 0 && !m.reported {
		m.reported = true
		g.outcomes.MismatchesReported++
		g.emitEvent(out, Event{Kind: NumberMismatch, Group: g.id, Member: k, PSN: m.Observed, Number: n, Registered: m.Registered})
	}
}

// noteWrongQPN notes the destination QPN of p, if a live member has sent p.
func (g *group) noteWrongQPN(p *Packet, out *Output) Reason {
	if k, ok := g.memberAt(p.Src); ok && g.members[k].live {
		g.noteMismatch(MemberID(k), VirtualQPN, rocev2.PSN(p.DestQP), rocev2.PSN(g.qpn), out)
	}
	return WrongQPN
}

// recheckMismatch checks a PSN that the source has sent before. A source whose first
// packet was lost comes back to it; a source that was registered with a lower PSN never
// does.
func (g *group) recheckMismatch(psn rocev2.PSN, out *Output) {
	m := g.mismatch(MemberID(g.src.member), SendPSN)
	switch {
	case m == nil || m.Count == 0:
	case psn == m.Registered || m.Registered.LessEq(g.agg.acked):
		m.Count = 0
	case psn.LessEq(m.Observed):
		g.noteMismatch(MemberID(g.src.member), SendPSN, psn, m.Registered, out)
	}
}
