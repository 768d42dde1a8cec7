// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/gleam-rdma/gleam/rocev2"
)

// A stranger floods the group, and a member straight, with data and acknowledgements
// under its own address: both ignore it.
func TestStrangersPackets(t *testing.T) {
	inNetworks(t, 3, 1, func(t *testing.T, c rigConfig) {
		r := newRig(t, c)
		r.join()
		a := r.attacker(0)
		frames := [][]byte{
			a.roce(a.groupPath(a.ip), rocev2.Packet{Op: rocev2.WriteOnly, DestQP: virtualQPN, VA: groupBase, RKey: groupRKey, DMALen: 64}, 64),
			a.roce(a.groupPath(a.ip), rocev2.Packet{Op: rocev2.Acknowledge, DestQP: virtualQPN, Syndrome: rocev2.SyndromeACK}, 0),
			a.roce(a.path(a.ip, r.hosts[0]), rocev2.Packet{Op: rocev2.Acknowledge, DestQP: r.hosts[0].qp.Info().QPN, Syndrome: rocev2.SyndromeACK}, 0),
		}
		r.withstands(t, a, 50_000, func(i int) []byte { return frames[i%len(frames)] })
		if a.xdp("xsk_rocev2") == 0 || r.drops()["not_member"] == 0 {
			t.Errorf("not_member has not moved: %v", r.drops())
		}
	})
}
