// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/rocev2"

// Target is where one member's memory for the following WRITEs begins, as an
// update message says it (docs/AGGREGATION.md, R41).
type Target struct {
	Member MemberID
	VA     uint64
	RKey   uint32
}

// targetMessageVA in RETH, together with the group's target key, makes a WRITE_ONLY an
// update message. No offset into a target is as large.
const targetMessageVA = ^uint64(0)

// maxTargetMessages is how many update messages may be in flight, that is, above A.
// One more waits until A has moved: it is dropped, and the source sends it again.
const maxTargetMessages = 32

// targets are what update messages have said, by the PSN at which they did: a
// WRITE that begins at PSN f goes where the last update before f says, also when
// it is retransmitted after later updates were seen. It is a pure function of
// the source's packets, whatever order they come in.
type targets struct {
	acked []target // by LegID: of updates at or below A
	ring  [maxTargetMessages]targetMessage
	first uint32 // index in ring of the oldest
	count uint32
	named bool // the present source has named some
}

// targetMessage is one update message, above A.
type targetMessage struct {
	psn  rocev2.PSN
	legs []target // by LegID
}

// target is a Target, if set.
type target struct {
	va   uint64
	rkey uint32
	set  bool
}

// newTargets returns the tables for a group of so many legs.
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

// forgetLeg forgets a leg's targets: another member is behind it.
func (t *targets) forgetLeg(leg int) {
	t.acked[leg] = target{}
	for i := range t.ring {
		t.ring[i].legs[leg] = target{}
	}
}

// reset forgets everything: another source has targets of its own.
func (t *targets) reset() {
	clear(t.acked)
	t.first, t.count, t.named = 0, 0, false
}

func (t *targets) at(i uint32) *targetMessage { return &t.ring[(t.first+i)%maxTargetMessages] }

// insert returns the update of psn with no targets in it, a new one or that of
// the packet's earlier passage; nil if there is no room. psn is above A.
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
	// Make room at i: an update that was lost before the switch comes after
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

// find returns the target of leg for a WRITE that begins at psn, which is above
// A; set is false if no update before it names the leg.
func (t *targets) find(leg int, psn rocev2.PSN) target {
	for i := t.count; i > 0; i-- {
		if u := t.at(i - 1); u.psn.Less(psn) && u.legs[leg].set {
			return u.legs[leg]
		}
	}
	return t.acked[leg]
}

// fold folds the updates at or below a into the base: no WRITE that begins below
// them will pass again.
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
