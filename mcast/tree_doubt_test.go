// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"testing"
	"time"
)

// TestR86_SourcesInDoubt: the switches of two sources start again, each with a file in which its own one
// is the source. Only one of them is within a message. The other one begins none before.
func TestR86_SourcesInDoubt(t *testing.T) {
	for _, c := range []struct{ parent, at []int }{
		{[]int{-1, 0, 0}, []int{1, 0, 1, 2}}, // 0 is within a message, 1 is at rest; at the switch of 1 is nobody else
		{[]int{-1, 0, 0}, []int{1, 0, 1, 2, 1}},
		{[]int{-1, 0, 0}, []int{1, 2, 1, 0}},
		{[]int{-1, 0, 0, 1}, []int{1, 0, 1, 2, 3}},
		{[]int{-1, 0}, []int{1, 0, 1, 0}},
		{[]int{-1, 0, 0}, []int{1, 0, 1, 2, 0}},
	} {
		for seed := range 200 {
			if seed >= 60 && testing.Short() {
				break
			}
			n := treeOf(t, c.parent, c.at)
			n.rng = random(uint64(seed) + 1)
			n.stored, n.loss = true, []int{0, 50, 300}[seed%3]
			n.start()
			a, b, d := n.hosts[0], n.hosts[1], n.hosts[3]
			b.post(2)
			n.run(time.Second, func() bool { return n.pending == 0 })
			n.run(n.now+20*time.Millisecond, func() bool { return false })
			a.post(3)
			n.after(time.Duration(n.rng(3000))*time.Microsecond, func() { n.crashFor(b.at, 500*time.Microsecond) })
			n.after(5*time.Millisecond, func() { b.post(3) })
			n.after(time.Duration(4000+n.rng(4000))*time.Microsecond, func() { n.crashFor(a.at, 500*time.Microsecond) })
			if seed%2 == 0 {
				n.after(5*time.Millisecond, func() { d.post(3) }) // waits, and is not in doubt
			}
			n.run(n.now+30*time.Millisecond, func() bool { return false })
			n.loss = min(n.loss, 10)
			if !n.run(n.now+3*time.Second, func() bool { return n.pending == 0 }) {
				t.Errorf("tree %v, hosts at %v, %d: %d packets are not complete; %s", c.parent, c.at, seed, n.pending, n.conflict)
			}
		}
	}
}
