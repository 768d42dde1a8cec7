// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/rocev2"

// Target is where one member's memory for the following WRITEs begins, as a target
// message names it (docs/AGGREGATION.md, R41).
type Target struct {
	Member MemberID
	VA     uint64
	RKey   uint32
}

// targetMessageVA in RETH, together with the group's target key, makes a WRITE_ONLY a
// target message. No offset into a target is as large.
const targetMessageVA = ^uint64(0)

// maxTargetMessages is the number of target messages that may be in flight, that is, above
// acked. A further one is dropped, and the source sends it again.
const maxTargetMessages = 32

// targets are the targets that target messages have named, by the PSNs of these messages.
// A WRITE that begins at PSN f goes to the target that the last target message before f
// names, also when the WRITE is retransmitted after later target messages. The result is a
// pure function of the source's packets, whatever their order.
type targets struct {
	acked []target                         `state:"encoded"` // the targets of target messages at or below the group's acked, by LegID
	ring  [maxTargetMessages]targetMessage `state:"own(targetRing)"`
	first uint32                           `state:"derived"` // index in ring of the oldest target message
	count uint32                           `state:"own(targetRing)"`
	named bool                             `state:"encoded"` // the present source has named targets
}

// targetMessage is one target message, above the group's acked.
type targetMessage struct {
	psn  rocev2.PSN `state:"encoded"`
	legs []target   `state:"encoded"` // the targets, by LegID
}

// target is a Target of one leg, if set is true.
type target struct {
	va   uint64 `state:"encoded if x.set"`
	rkey uint32 `state:"encoded if x.set"`
	set  bool   `state:"encoded"`
}

// newTargets returns the tables for a group with the given number of legs.
func newTargets(legs int) *targets {
	t := &targets{acked: make([]target, legs)}
	for i := range t.ring {
		t.ring[i].legs = make([]target, legs)
	}
	return t
}

// addLeg makes room for one more leg.
func (t *targets) addLeg() {
	t.acked = append(t.acked, target{})
	for i := range t.ring {
		t.ring[i].legs = append(t.ring[i].legs, target{})
	}
}

// forgetLeg clears a leg's targets: the leg leads to another member now.
func (t *targets) forgetLeg(leg int) {
	t.acked[leg] = target{}
	for i := range t.ring {
		t.ring[i].legs[leg] = target{}
	}
}

// reset clears all targets: the next source names its own.
func (t *targets) reset() {
	clear(t.acked)
	t.first, t.count, t.named = 0, 0, false
}

func (t *targets) at(i uint32) *targetMessage { return &t.ring[(t.first+i)%maxTargetMessages] }

// insert returns the entry of the target message at psn, without targets: a new entry, or
// the one of an earlier passage of the packet. It returns nil if there is no room. psn is
// above the group's acked.
func (t *targets) insert(psn rocev2.PSN) *targetMessage {
	t.named = true
	i := t.count
	for i > 0 && psn.Less(t.at(i-1).psn) {
		i--
	}
	if i > 0 && t.at(i-1).psn == psn {
		u := t.at(i - 1)
		clear(u.legs)
		return u
	}
	if t.count == maxTargetMessages {
		return nil
	}
	// Make room at i: a target message that was lost before the switch comes after
	// later ones.
	free := t.at(t.count).legs
	for j := t.count; j > i; j-- {
		*t.at(j) = *t.at(j - 1)
	}
	*t.at(i) = targetMessage{psn: psn, legs: free}
	t.count++
	clear(free)
	return t.at(i)
}

// find returns the target of leg for a WRITE that begins at psn, which is above the
// group's acked. Its set is false if no target message before psn names the leg.
func (t *targets) find(leg int, psn rocev2.PSN) target {
	for i := t.count; i > 0; i-- {
		if u := t.at(i - 1); u.psn.Less(psn) && u.legs[leg].set {
			return u.legs[leg]
		}
	}
	return t.acked[leg]
}

// fold moves the targets of target messages at or below a to t.acked: no WRITE that begins
// before these messages will pass again.
func (t *targets) fold(a rocev2.PSN) {
	for t.count > 0 && t.at(0).psn.LessEq(a) {
		for leg, x := range t.at(0).legs {
			if x.set {
				t.acked[leg] = x
			}
		}
		t.first = (t.first + 1) % maxTargetMessages
		t.count--
	}
}
