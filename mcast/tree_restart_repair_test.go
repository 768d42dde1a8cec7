// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// treeOf returns a network with the given parents of its switches, and the switches of its hosts.
func treeOf(tb fatalReporter, parent, at []int) *treeNet {
	n := &treeNet{tb: tb, rng: random(1), met: map[[2]int]uint64{}, log: func(string, ...any) {}, parent: parent}
	for h, s := range at {
		psn := rocev2.PSN(0x100 * (h + 1))
		n.hosts = append(n.hosts, &treeHost{n: n, id: h, at: s, ip: netip.AddrFrom4([4]byte{10, 0, 1, byte(h + 1)}), sq: psn, rq: psn, ePSN: psn, mid: -1, got: make([]int, len(at))})
	}
	return n
}

// TestR95_RestartWithAWindowInFlight: a switch starts again while the source has 64 packets in
// flight. It gets the rest of them in a few steps, whichever is shorter, the source's timeout or
// the probe timeout.
func TestR95_RestartWithAWindowInFlight(t *testing.T) {
	for _, c := range []struct{ parent, at []int }{
		{[]int{-1, 0}, []int{0, 1, 1}},
		{[]int{-1, 0}, []int{1, 0, 0}},
		{[]int{-1, 0, 1}, []int{0, 2, 2}},
		{[]int{-1, 0, 1}, []int{2, 0, 0}},
		{[]int{-1, 0, 1}, []int{2, 1, 0}},
		{[]int{-1, 0, 1, 2, 3}, []int{4, 0, 0}},
	} {
		for s := range c.parent {
			for _, probe := range []time.Duration{DefaultRepairTimeout, 70 * time.Millisecond} {
				n := treeOf(t, c.parent, c.at)
				n.stored, n.window, n.patience = true, 64, 67*time.Millisecond
				n.repair = RepairSpec{Bytes: 1000 * minFrameBytes, Timeout: probe, Tries: DefaultRepairTries}
				n.start()
				h := n.hosts[0]
				for range 400 {
					h.post(1)
				}
				n.run(time.Second, func() bool { return h.una >= 200 })
				n.crashFor(s, 50*time.Millisecond)
				down := n.now
				n.run(time.Minute, func() bool { return n.now > down+50*time.Millisecond })
				n.timeouts = 0
				n.run(time.Minute, func() bool { return h.una >= 300 })
				if took := n.now - down; h.una < 300 || n.timeouts > 6 || took > 500*time.Millisecond {
					t.Errorf("tree %v, hosts at %v, switch %d, probes after %v: packet %d after %v and %d timeouts of the source", c.parent, c.at, s, probe, h.una, took, n.timeouts)
				}
			}
		}
	}
}

// TestR95_LongestBurst: 300 packets in a row from above are one burst of 64.
func TestR95_LongestBurst(t *testing.T) {
	var m recovery
	for psn := range rocev2.PSN(300) {
		m.noteSentAgain(psn)
	}
	if m.burst != maxBurst || m.burstEnd != 300 {
		t.Errorf("a burst of %d packets that ends before %v", m.burst, m.burstEnd)
	}
}
