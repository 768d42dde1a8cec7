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

// atHome reports whether a packet of group id in w.frame that says it is from
// src came from where src lives: its port, and its MAC address or its router's.
// RoCEv2 has no authentication: without this any host could acknowledge for
// another, or write into a group. Strangers are left to the core, which counts
// them.
func (w *worker) atHome(id mcast.GroupID, pi int, src netip.Addr) bool {
	m, ok := w.sw.Member(id, src)
	if !ok {
		return true
	}
	g := &w.groups[id]
	l := &g.legs[g.members[m].leg]
	return l.port == pi && l.mac == w.frame.Eth().Src()
}

// negative reports whether a packet makes a source slow down or send again, so that
// a host may send only so many.
func negative(op rocev2.Opcode, s rocev2.Syndrome) bool {
	return op == rocev2.CNP || op == rocev2.Acknowledge && s.Kind() != rocev2.KindACK
}

// peekNegative is negative for what peek returned of a packet that goes to a group.
func peekNegative(l4 []byte) bool {
	const bth, aeth = rocev2.UDPLen, rocev2.UDPLen + rocev2.BTHLen
	return len(l4) >= aeth+rocev2.AETHLen && binary.BigEndian.Uint16(l4[2:]) == rocev2.UDPPort &&
		negative(rocev2.Opcode(l4[bth]), rocev2.Syndrome(l4[aeth]))
}

// bucket is a token bucket: rate packets a second, and as many at once as come
// in burst. The zero value lets everything pass. It belongs to the worker.
type bucket struct {
	gap   time.Duration // between two packets at the full rate; 0: no limit
	depth time.Duration // how far ahead of the rate a burst may run
	next  time.Duration // when the bucket would be full again
}

// burstTime is how much of its rate a bucket lets pass at once.
const burstTime = 100 * time.Millisecond

// newBucket makes a bucket of rate packets a second; 0 means no limit.
func newBucket(rate int) bucket {
	if rate <= 0 {
		return bucket{}
	}
	gap := time.Second / time.Duration(rate)
	return bucket{gap: gap, depth: max(burstTime, 10*gap)}
}

// take reports whether one more packet may pass at time now.
func (b *bucket) take(now time.Duration) bool {
	if b.gap == 0 {
		return true
	}
	next := max(b.next, now) + b.gap
	if next-now > b.depth {
		return false
	}
	b.next = next
	return true
}

// wait returns how long after now take would let a packet pass.
func (b *bucket) wait(now time.Duration) time.Duration {
	if b.gap == 0 {
		return 0
	}
	return max(0, max(b.next, now)+b.gap-now-b.depth)
}
