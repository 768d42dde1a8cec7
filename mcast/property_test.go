// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
	"pgregory.net/rapid"
)

// TestPropertyLossyNetwork runs up to three sources that take turns over a network that
// loses, duplicates and reorders packets, with hosts of both personalities and PSNs about
// to wrap. In half of the runs one receiver falls silent for good and has to be evicted.
// The test checks the invariants of RC.md §6.1 at every packet, against naiveModel, and
// that at the end every receiver has every packet, once and in order.
func TestPropertyLossyNetwork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { newNetwork(t).run() })
}

// psn returns a first PSN; most are about to wrap, or to cross the middle.
func (n *network) psn() rocev2.PSN {
	if n.firstPSN != 0 {
		return n.firstPSN
	}
	switch n.rng(4) {
	case 0:
		return rocev2.PSN(n.rng(rocev2.PSNMask + 1))
	case 1:
		return rocev2.PSN(0xFFFFD0 + n.rng(0x30))
	case 2:
		return rocev2.PSN(0x7FFFD0 + n.rng(0x31))
	}
	return 0
}

// random is splitmix64: one draw for the whole run keeps rapid fast.
func random(seed uint64) func(m int) int {
	return func(m int) int {
		seed += 0x9E3779B97F4A7C15
		z := seed
		z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
		z = (z ^ z>>27) * 0x94D049BB133111EB
		return int((z ^ z>>31) % uint64(m))
	}
}

func newNetwork(t *rapid.T) *network {
	seed := rapid.Uint64().Draw(t, "seed")
	n := &network{
		tb: t, passed: map[rocev2.PSN]severity{},
		loss: rapid.SampledFrom([]int{0, 3, 30, 100, 150}).Draw(t, "loss"),
		rng:  random(seed),
	}
	members := rapid.IntRange(4, 9).Draw(t, "members")
	sources := rapid.IntRange(1, 3).Draw(t, "sources")
	n.verify = rapid.Bool().Draw(t, "verify")
	n.silenced = -1
	if rapid.Bool().Draw(t, "mute") {
		n.silenced = members - 1 // never a source
	}
	n.build(members, sources, 0)
	return n
}

// build makes the hosts and the switches: one switch, or one with the given number of
// children.
func (n *network) build(members, sources, children int) {
	n.naive, n.lost = &naiveModel{network: n, source: -1}, map[int]int{}
	if n.timer == 0 {
		n.timer = timeout
	}
	if n.trace == nil {
		n.trace = func(...any) {}
	}
	n.full = []int{0, 0, 200, 20}[n.rng(4)]
	n.portRoom = [][]int{{0}, {0, 1, 2, 5}, {1}, {-1, 1, 3}}[n.rng(4)]
	n.nodes = []*node{{network: n}}
	for range children {
		n.nodes = append(n.nodes, &node{network: n, uplink: n.nodes[0]})
	}
	n.populate(members, sources, func(i int) *node {
		if children > 0 {
			return n.nodes[1+i%children]
		}
		return n.nodes[0]
	})
}

// populate makes the hosts, each at a switch, and registers the group at all switches.
func (n *network) populate(members, sources int, at func(i int) *node) {
	for i := range members {
		d := at(i)
		h := n.newHost(d)
		h.in, h.rnrLeft = true, n.rng(3)
		h.muteAt = n.rng(100)
		if i < sources {
			for m := 1 + n.rng(40); m > 0; m-- {
				h.ops = append(h.ops, message(1+n.rng(5))...)
			}
		}
	}
	for _, d := range n.nodes {
		d.put()
	}
	n.connect()
}

// newHost adds a host to a switch. The host is no member of the group yet.
func (n *network) newHost(d *node) *host {
	i := len(n.hosts)
	h := &host{n: n, node: d, id: i, ip: netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), strict: n.rng(2) == 0,
		sqPSN: n.psn(), ePSN: n.psn(), maxUnacked: 1 + n.rng(maxWindow), missed: map[int]int{}}
	n.hosts = append(n.hosts, h)
	n.link = append(n.link, 0, 0)
	a := n.naive
	a.base, a.sender, a.nxt, a.nak = append(a.base, 0), append(a.sender, 0), append(a.nxt, 0), append(a.nak, -1)
	a.received = append(a.received, map[int]bool{})
	return h
}

func message(packets int) []rocev2.Opcode {
	if packets == 1 {
		return []rocev2.Opcode{rocev2.SendOnly}
	}
	ops := []rocev2.Opcode{rocev2.SendFirst}
	for range packets - 2 {
		ops = append(ops, rocev2.SendMiddle)
	}
	return append(ops, rocev2.SendLast)
}

func (n *network) run() {
	for _, h := range n.hosts {
		if len(h.ops) > 0 {
			n.after(time.Duration(n.rng(2000))*time.Microsecond, h.start)
		}
	}
	n.finish()
}

// step lets the next thing happen, and before that what switches do by their own time.
func (n *network) step(limit time.Duration) bool {
	e, ok := n.next(limit)
	if !ok {
		return false
	}
	for n.advance(e.at) {
	}
	n.now = e.at
	e.do()
	return true
}

// finish runs the network to its end, and checks the result.
func (n *network) finish() {
	for steps := 0; n.failure == nil && n.step(math.MaxInt64); steps++ {
		if steps > max(200_000, n.maxSteps) {
			n.tb.Fatalf("not finished after %d events at %v: %v", steps, n.now, n.stuck())
		}
	}
	if n.failure != nil || n.quorum > 0 && n.deadAfter == 0 {
		return // a receiver that is behind a quorum at the end may stay there (R37)
	}
	n.drain()
	for _, h := range n.hosts {
		if h.removed || h.failed || !h.in {
			continue
		}
		if h.una != len(h.ops) {
			n.tb.Fatalf("host %d: %d of %d packets done", h.id, h.una, len(h.ops))
		}
		next := make([]int, len(n.hosts))
		for src, i := range h.missed {
			next[src] = i
		}
		for _, f := range h.got {
			src, i := f>>20, f&0xFFFFF
			if src == h.id || i != next[src] {
				n.tb.Fatalf("host %d: packet %d of host %d, expected %d", h.id, i, src, next[src])
			}
			next[src]++
		}
		for _, s := range n.hosts {
			if s != h && !s.removed && next[s.id] != len(s.ops) {
				n.tb.Fatalf("host %d: %d of %d packets of host %d", h.id, next[s.id], len(s.ops), s.id)
			}
		}
	}
}

// drain lets time pass when nothing is left to do, and checks that no frame is retained
// then and no timer runs.
func (n *network) drain() {
	n.portRoom, n.full = []int{0}, 0
	for range 1000 {
		if e, ok := n.next(math.MaxInt64); ok {
			e.do()
		} else if !n.advance(n.now + time.Hour) {
			break
		}
	}
	for _, d := range n.nodes {
		g := d.sw.groups[0]
		if len(d.ledger.held) > 0 || g.repair.numRecovering > 0 || g.due.armed(repairTimer) {
			n.tb.Fatalf("at rest %d frames are held, %d legs are recovering, a clock runs: %v", len(d.ledger.held), g.repair.numRecovering, g.due.armed(repairTimer))
		}
	}
}

// stuck describes the state of a run that does not end.
func (n *network) stuck() (s []string) {
	for _, d := range n.nodes {
		g := d.sw.groups[0]
		s = append(s, fmt.Sprintf("\nswitch: src %d A %06x hi %06x, asked for %+v, prev %06x", g.src.member, g.agg.acked, g.fwd.nxt, g.agg.request, g.src.lastPSN))
		if x := g.tree(); x != nil {
			s = append(s, fmt.Sprintf("\ntoken: %+v, frozen %v, contended %v, ending %v, refused %v", x.status(), g.is(frozen), g.turn.contendedSince, g.turn.endingSince, g.is(messageRefused)))
		}
		if g.repair.store != nil {
			s = append(s, fmt.Sprintf("store from %06x, whole from %06x, %d of %d bytes, tending %v", g.repair.store.first, g.repair.store.contiguousFrom, g.repair.store.bytes, g.repair.store.limit, g.due.armed(repairTimer)))
		}
		for i := range g.acks {
			s = append(s, fmt.Sprintf("\n leg %d: %+v %+v", i, g.acks[i], g.activityOf(i).recovery))
		}
	}
	for _, h := range n.hosts {
		s = append(s, fmt.Sprintf("\n host %d at %d: una %d of %d, next expected %06x, nak %v", h.id, h.node.index(), h.una, len(h.ops), h.ePSN.Add(int32(len(h.got))), h.nakSent))
	}
	return s
}
