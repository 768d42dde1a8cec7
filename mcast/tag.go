// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/rocev2"

// Feedback from one switch to the next is in the PSNs of the source, and names the source by
// its address. A source that is registered anew, or leaves and joins again, may have the same
// address and the same PSNs. So such feedback carries a tag of the registration in the place
// of the MSN, which only the source itself has a use for (R87).

// tagStep is the difference of a member's tags in consecutive epochs: 2^24 over the golden
// ratio. For d up to 4096, the tags of epochs that differ by d are at least 2^24/(3d) apart:
// no members with numbers closer than that have the same tag.
const tagStep = 0x9E3779

// layout returns the number of the tree's layout.
func (s *TreeSpec) layout() uint32 {
	if s.Layout == 0 {
		return s.Epoch
	}
	return s.Layout
}

// tagOf returns the tag of the registration of member k.
func (g *group) tagOf(k MemberID) rocev2.MSN {
	layout := uint32(0)
	if t := g.tree(); t != nil {
		layout = t.place.layout()
	}
	return rocev2.MSN((layout*tagStep + uint32(g.numberOf(k))) & rocev2.PSNMask)
}

// msnTo returns the MSN of feedback to member k, of whose messages that many are
// acknowledged: the tag if the next hop to k is a switch.
func (g *group) msnTo(k MemberID, messages rocev2.MSN) rocev2.MSN {
	if g.legs[g.members[k].leg].connected() {
		return messages
	}
	return g.tagOf(k)
}
