// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"net/netip"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Progress returns how far the data of group id has come, and whether src is its source.
func (s *Switch) Progress(id GroupID, src netip.Addr) (acked, nxt rocev2.PSN, isSource bool) {
	g := s.group(id)
	if g == nil || g.src.member == none {
		return 0, 0, false
	}
	return g.agg.acked, g.fwd.nxt, g.src.addr == rocev2.KeyOf(src)
}

// SourcePSN returns the PSN of the source that feedback of group id with PSN psn, sent by src, is
// about: a member numbers by its own queue pair (R18). ok is false if src is no receiver here.
func (s *Switch) SourcePSN(id GroupID, src netip.Addr, psn rocev2.PSN) (of rocev2.PSN, ok bool) {
	g := s.group(id)
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
