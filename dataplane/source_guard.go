// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"encoding/binary"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// sourceGuard reports whether p, the packet of group id in w.frame, came from the location
// of the member with its source address: by that member's port, and from its MAC address
// or its router's; a request of a member behind another switch, from that switch. RoCEv2
// has no authentication: without this check any host could acknowledge for another, or
// write into a group. Packets of hosts that are not members pass; the core counts and
// drops them.
//
// sourceGuard sets p.Neighbor. Feedback of a neighbour has the address of the source that
// it is for, wherever that is; the core takes it for the leg to that neighbour only.
func (w *worker) sourceGuard(id mcast.GroupID, pi int, p *mcast.Packet) bool {
	g := &w.groups[id]
	from := w.frame.Eth().Src()
	if g.forwards {
		p.Neighbor = w.ports[pi].neighbour.from(from)
	}
	m, ok := w.core.Group(id).Member(p.Src)
	if !ok {
		return true
	}
	l := &g.legs[g.member(m).leg]
	if p.Neighbor != 0 {
		return l.neighbour == p.Neighbor || !p.Op.Is(rocev2.OpRequest)
	}
	return l.port == pi && l.mac == from && l.kind == mcast.Connected
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
