// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
	"pgregory.net/rapid"
)

// Long random runs. Ordinary test runs do few of them; make soak does thousands
// (-rapid.checks).

// drawNetwork is an empty network, whose loss in 1000 is drawn from loss.
func drawNetwork(t *rapid.T, loss ...int) *network {
	n := &network{tb: t, passed: map[rocev2.PSN]severity{}, silenced: -1}
	n.loss = rapid.SampledFrom(loss).Draw(t, "loss")
	n.rng = random(rapid.Uint64().Draw(t, "seed"))
	return n
}

// churn lets members join and leave at random times within the given time.
func (n *network) churn(joins, leaves int, within time.Duration) {
	at := func() time.Duration { return time.Duration(n.rng(int(within))) }
	for range joins {
		n.after(at(), n.join)
	}
	for range leaves {
		n.after(at(), func() {
			if h := n.hosts[n.rng(len(n.hosts))]; len(h.ops) == 0 {
				n.leave(h)
			}
		})
	}
}

// TestPropertyChangingGroup is TestPropertyLossyNetwork with up to 64 members, of which
// some join and some leave while data flows. Every packet to the source is compared with
// that of naiveModel.
func TestPropertyChangingGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNetwork(t, 0, 3, 30, 100, 150)
		members := rapid.SampledFrom([]int{4, 5, 6, 7, 8, 12, 64}).Draw(t, "members")
		if rapid.Bool().Draw(t, "mute") {
			n.silenced = members - 1
		}
		n.build(members, rapid.IntRange(1, 3).Draw(t, "sources"), 0)
		n.churn(n.rng(6), n.rng(6), 20*time.Millisecond)
		n.run()
	})
}

// TestC72_TreeSoak: two levels of switches, loss up to 15 % on every hop and
// in both directions, both personalities, all queues beginning at FFFFF0, up to
// three sources that begin at any time, members that join and leave. Whenever a packet is
// acknowledged to the source, every live receiver has it, and every run ends.
func TestC72_TreeSoak(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { soakTree(t, rapid.IntRange(1, 3).Draw(t, "sources")) })
}

// TestR84_OneAfterTheOther: three sources in a tree begin within 2 ms, and the turn of
// each ends after 1 ms. All are served to the end.
func TestR84_OneAfterTheOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := soakTree(t, 3)
		if n.reports == 0 {
			t.Fatal("the switches have said nothing to each other")
		}
	})
}

func soakTree(t *rapid.T, sources int) *network {
	n := drawNetwork(t, 10, 50, 150)
	n.firstPSN, n.turnTime = 0xFFFFF0, rapid.SampledFrom([]time.Duration{0, time.Microsecond, time.Millisecond}).Draw(t, "turn")
	children := rapid.IntRange(2, 4).Draw(t, "children")
	n.build(children*rapid.IntRange(2, 4).Draw(t, "members of each"), sources, children)
	n.churn(n.rng(4), n.rng(4), 20*time.Millisecond)
	n.run()
	return n
}

// TestR64_DamagedPSN: links flip bits of PSNs, opcodes and AckReq. A damaged frame with
// the next PSN does not pass for a packet of the source: up to three sources, which begin
// at any time, are all served to the end.
func TestR64_DamagedPSN(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNetwork(t, 0, 3, 30)
		n.corrupt, n.damagePSN = 20, true
		n.build(rapid.IntRange(4, 6).Draw(t, "members"), rapid.IntRange(1, 3).Draw(t, "sources"), 0)
		n.run()
	})
}

// TestR66_NobodyGivesUpWaiting: three sources begin at once and send for longer than a
// requester's seven retries take. The sources that wait for their turn use up no retries.
func TestR66_NobodyGivesUpWaiting(t *testing.T) {
	for seed := range uint64(4) {
		n := &network{tb: t, passed: map[rocev2.PSN]severity{}, silenced: -1, rng: random(seed)}
		n.build(5, 3, 0)
		n.full = 0
		for _, h := range n.hosts {
			h.rnrLeft, h.maxUnacked = 0, maxWindow
			if len(h.ops) == 0 {
				continue
			}
			h.ops = nil
			for range 200 {
				h.ops = append(h.ops, message(1+n.rng(9))...)
			}
			n.after(0, h.start)
		}
		n.finish()
		for _, h := range n.hosts {
			if h.maxOutstanding > 0 {
				t.Errorf("seed %d: host %d timed out %d times in a row", seed, h.id, h.maxOutstanding)
			}
		}
	}
}
