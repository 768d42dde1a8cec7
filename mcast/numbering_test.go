// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"testing"

	"github.com/gleam-rdma/gleam/rocev2"
	"pgregory.net/rapid"
)

// TestPropertyOldNumbers: receivers that expect another PSN than the one they were
// registered with, by 1 to 60 either way, are removed before anything counts for
// them. No completion speaks of a message that a
// member lacks (host.completed), and the others have it all.
func TestPropertyOldNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		n := &network{
			t: t, passed: map[rocev2.PSN]severity{}, rng: random(seed), mute: -1, verify: true,
			policy: Evict, deadAfter: 8 * timeout, unfair: true,
			loss: rapid.SampledFrom([]int{0, 3, 30, 100}).Draw(t, "loss"),
		}
		members := rapid.IntRange(4, 9).Draw(t, "members")
		wrong := rapid.IntRange(1, members-3).Draw(t, "wrong")
		n.build(members, 1, 0)
		for i := range n.hosts[0].ops {
			n.hosts[0].ops[i] = rocev2.SendOnly // the sender completes packets
		}
		for _, h := range n.hosts[members-wrong:] {
			h.skew = int32(1+n.rng(60)) * int32(1-2*n.rng(2))
		}
		n.nodes[0].put()
		n.run()
		for _, h := range n.hosts[members-wrong:] {
			if !h.gone {
				t.Fatalf("host %d expects %d more than it was registered with, and is a member", h.id, -h.skew)
			}
		}
	})
}
