// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"testing"
	"time"
)

// TestR99_MessageThatOneLegHas: the switch of two sources stops when packets of a new message have gone to
// one of its legs alone, behind which nobody has acknowledged them. It starts again while the other
// source waits, and all messages are complete soon.
func TestR99_MessageThatOneLegHas(t *testing.T) {
	for _, c := range []struct {
		parent, at []int // the sources are hosts 0 and 1
		restarts   []int
	}{
		{[]int{-1, 0, 1}, []int{1, 1, 0, 1, 2}, []int{1}},
		{[]int{-1, 0}, []int{1, 1, 0, 1}, []int{1}},
		{[]int{-1, 0}, []int{0, 0, 1, 0}, []int{0}},
		{[]int{-1, 0, 0}, []int{0, 0, 1, 2}, []int{0}},
		{[]int{-1, 0, 1}, []int{2, 2, 0, 1}, []int{2}},
		{[]int{-1, 0, 1}, []int{2, 2, 0, 2}, []int{2, 1}},
		{[]int{-1, 0, 1}, []int{0, 0, 2, 0}, []int{0, 1}},
		{[]int{-1, 0, 1, 2}, []int{2, 2, 0, 3}, []int{2, 1}},
		{[]int{-1, 0, 0, 1}, []int{0, 0, 3, 2}, []int{0, 1}},
	} {
		for _, repair := range []RepairSpec{{}, {Bytes: 1000 * minFrameBytes, Timeout: DefaultRepairTimeout, Tries: DefaultRepairTries}} {
			for _, arrive := range []int{1, 3, 21} {
				for early := range 4 {
					n := treeOf(t, c.parent, c.at)
					n.rng = random(uint64(early) + 1)
					n.stored, n.window, n.patience, n.repair, n.turnTime = true, 64, 67*time.Millisecond, repair, 20*time.Millisecond
					n.start()
					a, b := n.hosts[0], n.hosts[1]
					a.post(5)
					n.run(time.Second, func() bool { return n.pending == 0 })
					n.run(n.now+20*time.Millisecond, func() bool { return false })
					far := n.hosts[2]
					n.passes = func(at int, l *leg) bool { return at != a.at || !l.connected() || n.hosts[l.member] != a }
					a.post(5) // which gets no acknowledgement of it
					got := 10
					n.run(time.Second, func() bool { return far.got[0] == got })
					n.run(n.now+10*time.Millisecond, func() bool { return false })
					left := arrive
					n.passes = func(at int, l *leg) bool { // packets to host 2 alone
						if at != a.at {
							return true
						}
						if l.connected() || toward(c.parent, at, far.at) != int(l.neighbor)-1 {
							return false
						}
						left--
						return left >= 0
					}
					at := n.now
					n.after(time.Duration(1000*early)*time.Microsecond, func() { b.post(5) })
					a.post(22)
					n.run(n.now+time.Second, func() bool { return far.got[0] == got+arrive })
					for _, s := range c.restarts {
						n.crashFor(s, 20*time.Millisecond)
					}
					n.passes = nil
					n.run(at+time.Minute, func() bool { return n.pending == 0 })
					if took := n.now - at; n.pending != 0 || took > time.Second {
						t.Errorf("tree %v, hosts at %v, switches %v restart, repair %v, %d packets, %d: %d packets are not complete after %v", c.parent, c.at, c.restarts, repair.Bytes != 0, arrive, early, n.pending, took)
					}
				}
			}
		}
	}
}
