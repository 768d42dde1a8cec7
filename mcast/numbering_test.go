// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
	"pgregory.net/rapid"
)

// TestPropertyOldNumbers: receivers whose ePSN differs from the registered one, by 1 to 60
// either way, are removed before any ACK of them counts. No message is completed that a
// member lacks (host.completed), and the other receivers get everything, unless losses hide the number of
// one until the source's retries run out.
func TestPropertyOldNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		n := &network{
			tb: t, passed: map[rocev2.PSN]severity{}, rng: random(seed), silenced: -1, verify: true,
			policy: Evict, deadAfter: 8 * timeout, unfair: true,
			loss: rapid.SampledFrom([]int{0, 3, 30, 100}).Draw(t, "loss"),
		}
		members := rapid.IntRange(4, 9).Draw(t, "members")
		wrong := rapid.IntRange(1, members-3).Draw(t, "wrong")
		n.build(members, 1, 0)
		for i := range n.hosts[0].ops {
			n.hosts[0].ops[i] = rocev2.SendOnly // each packet is a message, as the sender completes packets
		}
		for _, h := range n.hosts[members-wrong:] {
			h.psnSkew = int32(1+n.rng(60)) * int32(1-2*n.rng(2))
		}
		n.nodes[0].put()
		n.run()
		for _, h := range n.hosts[members-wrong:] {
			if !h.removed && (n.failure == nil || !h.hidesNumber()) {
				t.Fatalf("host %d expects %d more than it was registered with, and is a member", h.id, -h.psnSkew)
			}
		}
	})
}

// TestR73_ManyLeave: if more than maxDepartures receivers leave at once, every receiver
// counts as one of them for the same time. After that time none does.
func TestR73_ManyLeave(t *testing.T) {
	var d departures
	var h portTimes
	g, now := rocev2.AddrKey{Hi: 1, Lo: 1}, time.Second
	for i := range uint64(maxDepartures) {
		d.add(now, &h, g, rocev2.AddrKey{Hi: 0, Lo: i}, 0)
		now++
	}
	end := time.Second + quarantine
	if t0 := d.recentUntil(now, &h, rocev2.AddrKey{Hi: 2, Lo: 2}, rocev2.AddrKey{Hi: 0, Lo: 5}); t0 != 0 {
		t.Errorf("another group's member may be heard until %v", t0)
	}
	d.add(now, &h, g, rocev2.AddrKey{Hi: 0, Lo: maxDepartures}, 0)
	for _, c := range []struct {
		who      uint64
		at, want time.Duration
	}{
		{maxDepartures, now, end + maxDepartures},
		{1, now, end + 1},
		{0, now, end},
		{9999, now, end},
		{9999, end - 1, end},
		{9999, end, 0},
		{0, end, 0},
		{1, end, end + 1},
		{1, end + 1, 0},
		{maxDepartures, end + 1, end + maxDepartures},
		{maxDepartures, end + maxDepartures, 0},
	} {
		if got := d.recentUntil(c.at, &h, g, rocev2.AddrKey{Hi: 0, Lo: c.who}); got != c.want {
			t.Errorf("at %v member %d may be heard until %v, want %v", c.at, c.who, got, c.want)
		}
	}
	if d.count != 0 {
		t.Errorf("%d are remembered for ever", d.count)
	}
}
