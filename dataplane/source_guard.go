// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"encoding/binary"
	"net/netip"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// sourceGuard reports whether the packet of group id in w.frame, whose source address is
// src, came from the location of that member: by its port, and from its MAC address or
// its router's. RoCEv2 has no authentication: without this check any host could
// acknowledge for another, or write into a group. Packets of hosts that are not members
// pass; the core counts and drops them.
func (w *worker) sourceGuard(id mcast.GroupID, pi int, src netip.Addr) bool {
	m, ok := w.core.Member(id, src)
	if !ok {
		return true
	}
	g := &w.groups[id]
	l := &g.legs[g.members[m].leg]
	return l.port == pi && l.mac == w.frame.Eth().Src()
}

// isNegative reports whether a packet makes a source slow down or resend. The rate of
// such packets from one port is limited.
func isNegative(op rocev2.Opcode, s rocev2.Syndrome) bool {
	return op == rocev2.CNP || op == rocev2.Acknowledge && s.Kind() != rocev2.KindACK
}

// peekNegative is isNegative for the bytes that peekIP returned of a packet for a group.
func peekNegative(l4 []byte) bool {
	const bth, aeth = rocev2.UDPLen, rocev2.UDPLen + rocev2.BTHLen
	return len(l4) >= aeth+rocev2.AETHLen && binary.BigEndian.Uint16(l4[2:]) == rocev2.UDPPort &&
		isNegative(rocev2.Opcode(l4[bth]), rocev2.Syndrome(l4[aeth]))
}
