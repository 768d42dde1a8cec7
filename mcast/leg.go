// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"github.com/gleam-rdma/gleam/rocev2"
)

// severity orders the NAKs that a leg may have pending: a NAK of higher severity
// replaces one of lower severity at the same PSN (RC.md §6.2).
type severity uint8

const (
	sevNone severity = iota
	sevSequence
	sevRNR
	sevFatal
)

// Bits of ackState.flags.
const (
	isReceiver     uint8 = 1 << iota // a live leg, not the source's: it gets copies, and counts for acked
	isConnected                      // a connected leg
	isUnplaced     uint8 = 1 << 7    // of a forwarded leg: has receivers, and what they have is not known yet (R89)
	joinedInFlight uint8 = 1 << 5    // joined while earlier data was in flight: not counted as a receiver of that data (R36)
)

// ackState is the part of a leg's state that the data path reads and writes: 12 bytes,
// so that 64 legs are 12 cache lines. A pending NAK needs no PSN of its own: NAK(e)
// acknowledges e-1, and an acknowledgement of e ends it, so e is always acked+1.
type ackState struct {
	acked           rocev2.PSN // the leg has acknowledged all up to here; in the source's space
	delta           uint32     // added to a PSN toward a connected leg, modulo 2^24
	flags           uint8
	pending         severity        // of the pending NAK; sevNone without one
	pendingSyndrome rocev2.Syndrome // of the pending NAK
}

// leg is the part of a leg's state that a group without data has too: 24 bytes.
type leg struct {
	base     uint64   // first address of the member's window, if windowed
	rkey     uint32   // of the member's window
	neighbor Neighbor // 0: the leg is connected
	port     Port
	member   MemberID // the first member behind it; the only one if connected
	members  uint16   // live members behind it
	windowed bool     // connected, and the member has a window
	joining  bool     // receives from the next message that begins
}

func newLeg(spec LegSpec) leg { return leg{neighbor: spec.Neighbor, port: spec.Port} }

func (l *leg) connected() bool { return l.neighbor == 0 }

func (l *leg) kind() LegKind {
	if l.connected() {
		return Connected
	}
	return Forwarded
}

// setWindow sets the window of the member behind a connected leg.
func (l *leg) setWindow(w Window) { l.base, l.rkey, l.windowed = w.Base, w.RKey, w != Window{} }

// newAckState returns the ACK state of leg l before the group's first data.
func (l *leg) newAckState() ackState {
	if l.connected() {
		return ackState{flags: isConnected}
	}
	return ackState{}
}

// ackStateOf returns the ACK state of leg i, also before the group's first data.
func (g *group) ackStateOf(i int) ackState {
	if g.acks == nil {
		return g.legs[i].newAckState()
	}
	return g.acks[i]
}
