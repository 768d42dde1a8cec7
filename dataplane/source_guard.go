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

// sourceGuard reports whether a packet of group id in w.frame that says it is from
// src came from where src lives: its port, and its MAC address or its router's.
// RoCEv2 has no authentication: without this any host could acknowledge for
// another, or write into a group. Strangers are left to the core, which counts
// them.
func (w *worker) sourceGuard(id mcast.GroupID, pi int, src netip.Addr) bool {
	m, ok := w.core.Member(id, src)
	if !ok {
		return true
	}
	g := &w.groups[id]
	l := &g.legs[g.members[m].leg]
	return l.port == pi && l.mac == w.frame.Eth().Src()
}

// isNegative reports whether a packet makes a source slow down or send again, so that
// a host may send only so many.
func isNegative(op rocev2.Opcode, s rocev2.Syndrome) bool {
	return op == rocev2.CNP || op == rocev2.Acknowledge && s.Kind() != rocev2.KindACK
}

// peekNegative is negative for what peek returned of a packet that goes to a group.
func peekNegative(l4 []byte) bool {
	const bth, aeth = rocev2.UDPLen, rocev2.UDPLen + rocev2.BTHLen
	return len(l4) >= aeth+rocev2.AETHLen && binary.BigEndian.Uint16(l4[2:]) == rocev2.UDPPort &&
		isNegative(rocev2.Opcode(l4[bth]), rocev2.Syndrome(l4[aeth]))
}

// policer is a token bucket: rate packets a second, and as many at once as come
// in burst. The zero value lets everything pass. It belongs to the worker.
type policer struct {
	gap    time.Duration // between two packets at the full rate; 0: no limit
	burst  time.Duration // how far ahead of the rate a burst may run
	fullAt time.Duration // when the bucket would be full again
}

// burstTime is how much of its rate a bucket lets pass at once.
const burstTime = 100 * time.Millisecond

// newPolicer makes a bucket of rate packets a second; 0 means no limit.
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

// waitFor returns how long after now take would let a packet pass.
func (b *policer) waitFor(now time.Duration) time.Duration {
	if b.gap == 0 {
		return 0
	}
	return max(0, max(b.fullAt, now)+b.gap-now-b.burst)
}
