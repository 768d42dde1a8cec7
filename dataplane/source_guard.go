// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"encoding/binary"
	"net/netip"
	"time"

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

// policer is a token bucket: rate packets per second, and a burst of burstTime. The zero
// value has no limit. It belongs to the worker.
type policer struct {
	gap    time.Duration // between two packets at the full rate; 0: no limit
	burst  time.Duration // how far packets may run ahead of the rate
	fullAt time.Duration // when the bucket would be full again
}

// burstTime is the time whose packets at the full rate may pass in one burst.
const burstTime = 100 * time.Millisecond

// newPolicer makes a policer of rate packets per second; 0 means no limit.
func newPolicer(rate int) policer {
	if rate <= 0 {
		return policer{}
	}
	gap := time.Second / time.Duration(rate)
	return policer{gap: gap, burst: max(burstTime, 10*gap)}
}

// allow reports whether one more packet may pass at time now.
func (b *policer) allow(now time.Duration) bool {
	if b.gap == 0 {
		return true
	}
	next := max(b.fullAt, now) + b.gap
	if next-now > b.burst {
		return false
	}
	b.fullAt = next
	return true
}

// waitFor returns how long after now allow would let a packet pass.
func (b *policer) waitFor(now time.Duration) time.Duration {
	if b.gap == 0 {
		return 0
	}
	return max(0, max(b.fullAt, now)+b.gap-now-b.burst)
}
