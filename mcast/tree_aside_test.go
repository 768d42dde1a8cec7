// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"slices"
	"testing"
	"time"
)

// TestR90_JoinsWhereAllHaveLeft: the members on one side of a switch have all left, and the others
// go on, in a message of their own each. Then a member joins on that side. It gets all that is sent
// from then on, and sends itself, whichever switch starts again just after it has joined.
func TestR90_JoinsWhereAllHaveLeft(t *testing.T) {
	for _, c := range []struct {
		parent, at []int
		leaves     []int
		joins      int // where the last host joins
	}{
		{[]int{-1, 0}, []int{0, 0, 1}, []int{2}, 1},
		{[]int{-1, 0}, []int{1, 1, 0}, []int{2}, 0},
		{[]int{-1, 0, 1}, []int{0, 0, 2}, []int{2}, 1},
		{[]int{-1, 0, 1}, []int{0, 0, 2}, []int{2}, 2},
		{[]int{-1, 0, 1}, []int{0, 0, 1, 2}, []int{2, 3}, 2},
		{[]int{-1, 0, 1}, []int{2, 2, 0}, []int{2}, 0},
		{[]int{-1, 0, 1}, []int{2, 2, 0}, []int{2}, 1},
		{[]int{-1, 0, 0, 2}, []int{1, 1, 3}, []int{2}, 2},
	} {
		for _, repair := range []RepairSpec{{}, {Bytes: 64 * minFrameBytes, Timeout: 100 * time.Microsecond, Tries: 4}} {
			for again := -1; again < len(c.parent); again++ {
				n := treeOf(t, c.parent, append(slices.Clone(c.at), c.joins))
				last := n.hosts[len(n.hosts)-1]
				n.stored, n.repair, last.out = true, repair, true
				n.start()
				complete := func(what string) {
					if !n.run(n.now+time.Second, func() bool { return n.pending == 0 && !n.busy }) {
						t.Errorf("tree %v, hosts at %v, a host joins at %d, switch %d starts again: %d packets are not complete %s", c.parent, c.at, c.joins, again, n.pending, what)
					}
				}
				a, b := n.hosts[0], n.hosts[1]
				a.post(3)
				b.post(3)
				complete("at first")
				for _, k := range c.leaves {
					n.leave(n.hosts[k])
				}
				n.run(n.now+10*time.Millisecond, func() bool { return false })
				for range 5 {
					a.post(3)
					b.post(2)
				}
				complete("after hosts have left")
				n.join(last)
				n.run(n.now+time.Second, func() bool { return !n.busy })
				if again >= 0 {
					n.crashFor(again, 2*time.Millisecond)
				}
				a.post(3)
				b.post(2)
				last.post(2)
				complete("after one has joined")
			}
		}
	}
}
