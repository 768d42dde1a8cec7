// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"container/heap"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
	"pgregory.net/rapid"
)

// TestPropertyLossyNetwork runs up to three sources that take turns over a network
// that loses, duplicates and reorders, with hosts of both personalities and
// PSNs about to wrap. In half of the runs one receiver falls silent for good and
// has to be evicted. It checks the invariants of roce.md 6.1 at every packet,
// against an aggregator that keeps sets, and that all transfers finish with
// every receiver having every packet once and in order.
func TestPropertyLossyNetwork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { newNetwork(t).run() })
}

func drawPSN(t *rapid.T, name string) rocev2.PSN {
	return rocev2.PSN(rapid.OneOf(
		rapid.Uint32Range(0, rocev2.PSNMask),
		rapid.Uint32Range(0xFFFFD0, 0xFFFFFF),
		rapid.Uint32Range(0x7FFFD0, 0x800000),
		rapid.Just(uint32(0)),
	).Draw(t, name))
}

func newNetwork(t *rapid.T) *network {
	seed := rapid.Uint64().Draw(t, "seed")
	n := &network{
		t: t, sw: New(Limits{}), passed: map[rocev2.PSN]severity{},
		loss: rapid.SampledFrom([]int{0, 3, 30, 100, 150}).Draw(t, "loss"),
		rng: func(m int) int { // splitmix64: one draw for the whole run keeps rapid fast
			seed += 0x9E3779B97F4A7C15
			z := seed
			z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
			z = (z ^ z>>27) * 0x94D049BB133111EB
			return int((z ^ z>>31) % uint64(m))
		},
	}
	members := rapid.IntRange(4, 9).Draw(t, "members")
	sources := rapid.IntRange(1, 3).Draw(t, "sources")
	spec := GroupSpec{IP: groupIP, QPN: groupQPN, PMTU: 256}
	n.mute = -1
	if rapid.Bool().Draw(t, "mute") {
		n.mute = members - 1 // never a source
		spec.Policy, spec.DeadAfter = Evict, 8*timeout
	}
	n.naive = &naive{n: n, src: -1, base: make([]int, members), next: make([]int, members)}
	n.link = make([]time.Duration, 2*members)
	for i := range members {
		h := &host{n: n, id: i, ip: ipOf(nameOf(MemberID(i))), strict: rapid.Bool().Draw(t, "strict"),
			sq: drawPSN(t, "sq"), rq: drawPSN(t, "rq"), rnrLeft: n.rng(3), win: 1 + n.rng(maxWin), muteAt: n.rng(100)}
		if i < sources {
			for m := 1 + n.rng(40); m > 0; m-- {
				h.ops = append(h.ops, message(1+n.rng(5))...)
			}
		}
		n.hosts = append(n.hosts, h)
		n.naive.has = append(n.naive.has, map[int]bool{})
		n.naive.nak = append(n.naive.nak, -1)
		spec.Legs = append(spec.Legs, LegSpec{})
		spec.Members = append(spec.Members, MemberSpec{IP: h.ip, QPN: rocev2.QPN(0x100 + i), SQPSN: h.sq, RQPSN: h.rq, Leg: LegID(i)})
	}
	if err := n.sw.Apply(0, PutGroup{spec}, &n.out); err != nil {
		t.Fatal(err)
	}
	return n
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
	for steps := 0; n.q.Len() > 0; steps++ {
		if steps > 400_000 {
			n.t.Fatalf("not finished after %d events at %v", steps, n.now)
		}
		e := heap.Pop(&n.q).(event)
		for {
			at, ok := n.sw.NextDeadline()
			if !ok || at > e.at {
				break
			}
			n.now = max(n.now, at)
			n.sw.Advance(n.now, &n.out)
			n.output(nil)
		}
		n.now = e.at
		e.do()
	}
	for _, h := range n.hosts {
		if h.gone {
			continue
		}
		if h.una != len(h.ops) {
			n.t.Fatalf("host %d: %d of %d packets done", h.id, h.una, len(h.ops))
		}
		next := make([]int, len(n.hosts))
		for _, f := range h.got {
			src, i := f>>20, f&0xFFFFF
			if src == h.id || i != next[src] {
				n.t.Fatalf("host %d: packet %d of host %d, expected %d", h.id, i, src, next[src])
			}
			next[src]++
		}
		for _, s := range n.hosts {
			if s != h && !s.gone && next[s.id] != len(s.ops) {
				n.t.Fatalf("host %d: %d of %d packets of host %d", h.id, next[s.id], len(s.ops), s.id)
			}
		}
	}
}
