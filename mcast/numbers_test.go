// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"testing"

	"github.com/gleam-rdma/gleam/mcast/token"
)

// TestMembersAreFoundByNumber: places of members that have left are taken by members with other
// numbers, none of which is used twice.
func TestMembersAreFoundByNumber(t *testing.T) {
	for seed := range uint64(50) {
		rng, g := random(seed), &group{}
		next := uint32(1)
		for range 200 {
			k := MemberID(rng(len(g.members) + 1))
			if int(k) == len(g.members) {
				g.members = append(g.members, member{})
			}
			if g.members[k].live && rng(2) == 0 {
				g.members[k].live = false
				continue
			} else if g.members[k].live {
				continue
			}
			if rng(3) == 0 {
				next += uint32(rng(4))
			}
			next = max(next, uint32(k)+1)
			g.members[k].live = true
			g.setNumber(k, next)
			next++
			for n := range next + 2 {
				want, live := MemberID(0), false
				for k := range g.members {
					if g.members[k].live && g.numberOf(MemberID(k)) == token.Member(n) {
						want, live = MemberID(k), true
					}
				}
				if got, ok := g.numbered(n); ok != live || ok && got != want {
					t.Fatalf("seed %d: number %d is member %d %v, not %d %v", seed, n, got, ok, want, live)
				}
			}
		}
		if g.extra != nil && len(g.extra.byNumber) > len(g.members) {
			t.Fatalf("seed %d: %d numbers of %d members", seed, len(g.extra.byNumber), len(g.members))
		}
	}
}
