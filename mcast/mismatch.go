// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"math"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Number is a number of a connection that two sides have to agree upon.
type Number uint8

// Numbers that a member's packets show.
const (
	SendPSN    Number = iota // of the member's send queue
	VirtualQPN               // that the member's queue pair is connected to
	ReceivePSN               // that its receive queue expects (R55)
	NumNumbers
)

// mismatchTimes is how often a number comes before it is held to be the member's: as
// often as a queue pair repeats what nobody answers, with the usual retry counts. One
// packet may be late or damaged, and the first one of a source may be lost several
// times while the second one gets through.
const mismatchTimes = 4

// Mismatch is a number in a member's packets that is not the registered one (R72).
type Mismatch struct {
	Seen  rocev2.PSN // or QPN; the lowest PSN
	Want  rocev2.PSN // in its place
	Times uint32     // so often; 0: there is none
	told  bool       // NumberDiffers was emitted for this number of this member
}

// Holds says whether m is more than a stray packet.
func (m *Mismatch) Holds() bool { return m.told && m.Times > 0 }

// Mismatches are those of one member.
type Mismatches [NumNumbers]Mismatch

// mismatch returns what is known of a number of member k; nil if no number of any member
// of g ever differed.
func (g *group) mismatch(k MemberID, n Number) *Mismatch {
	if g.outcomes == nil || g.outcomes.Mismatches == nil {
		return nil
	}
	return &g.outcomes.Mismatches[k][n]
}

// newMismatch is mismatch for one that is about to be noted.
func (g *group) newMismatch(k MemberID, n Number) *Mismatch {
	if o := g.decided(); o.Mismatches == nil {
		o.Mismatches = make([]Mismatches, len(g.members))
	}
	return g.mismatch(k, n)
}

// differs notes that a packet of member k has another number than want.
func (g *group) differs(k MemberID, n Number, seen, want rocev2.PSN, out *Output) {
	m := g.newMismatch(k, n)
	switch {
	case m.Times > 0 && m.Want == want && m.Seen == seen:
		if m.Times < math.MaxUint32 {
			m.Times++
		}
	case m.Times > 0 && m.Want == want && n == SendPSN && m.Seen.Less(seen):
		return // follows the one that is known
	default:
		*m = Mismatch{Seen: seen, Want: want, Times: 1, told: m.told}
	}
	if m.Times >= mismatchTimes {
		g.tellMismatch(k, n, out)
	}
}

// tellMismatch says that a number of member k differs, once.
func (g *group) tellMismatch(k MemberID, n Number, out *Output) {
	if m := g.mismatch(k, n); m != nil && m.Times > 0 && !m.told {
		m.told = true
		g.outcomes.Differing++
		g.tell(out, Event{Kind: NumberDiffers, Group: g.id, Member: k, PSN: m.Seen, Number: n, Want: m.Want})
	}
}

// wrongQPN notes which queue pair p is for, if a member has sent it.
func (g *group) wrongQPN(p *Packet, out *Output) Reason {
	if k, ok := g.memberAt(p.Src); ok && g.members[k].live {
		g.differs(MemberID(k), VirtualQPN, rocev2.PSN(p.DestQP), rocev2.PSN(g.qpn), out)
	}
	return WrongQPN
}

// repeated looks at a PSN that the source has sent before: one whose first packet was
// lost comes back to it, one that was registered with a lower PSN never does.
func (g *group) repeated(psn rocev2.PSN, out *Output) {
	m := g.mismatch(MemberID(g.src), SendPSN)
	switch {
	case m == nil || m.Times == 0:
	case psn == m.Want || m.Want.LessEq(g.a):
		m.Times = 0
	case psn.LessEq(m.Seen):
		g.differs(MemberID(g.src), SendPSN, psn, m.Want, out)
	}
}
