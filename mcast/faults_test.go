// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
	"pgregory.net/rapid"
)

// Faults in a network beside losses: hosts that fall silent, fail or are evicted, and
// frames that arrive damaged.

// isDead reports whether h answers no packet any more.
func (h *host) isDead() bool {
	return h.failed || h.n.silenced == h.id && len(h.got) >= h.muteAt
}

// fails puts a receiver's queue pair into error now and then, at a packet that it would
// have accepted.
func (h *host) fails(accepts bool) bool {
	if h.n.fatals == 0 || !accepts || len(h.ops) > 0 || h.n.rng(30) > 0 {
		return false
	}
	h.n.fatals--
	h.failed = true
	h.reply(len(h.got), rocev2.SyndromeNAKAccess)
	return true
}

// damage changes fields that only the ICRC protects. It changes the PSN only if damagePSN
// is set.
func (n *network) damage(p *Packet) {
	if n.corrupt == 0 || n.rng(1000) >= n.corrupt {
		return
	}
	if n.damaged == nil {
		n.damaged = map[Handle]bool{}
	}
	n.damaged[p.Frame] = true
	if n.damagePSN && n.rng(2) == 0 {
		p.PSN ^= 1 << n.rng(6)
	}
	switch n.rng(3) {
	case 0:
		ops := []rocev2.Opcode{rocev2.SendFirst, rocev2.SendMiddle, rocev2.SendLast, rocev2.SendOnly, rocev2.ReadRequest}
		p.Op = ops[n.rng(len(ops))]
		if p.Op.Is(rocev2.OpFirst | rocev2.OpMiddle) {
			p.Payload = 256
		}
	case 1:
		p.AckReq = !p.AckReq
	}
}

// offered counts p for the hosts for which it is the first packet that they lack. p comes
// from the source; without local repair each of these hosts would get it.
func (n *network) offered(d *node, p *Packet) {
	g := d.sw.groups[0]
	if g.src.member == none || rocev2.KeyOf(p.Src) != g.src.addr || n.damaged[p.Frame] {
		return
	}
	for i := range d.legs {
		if b := &g.acks[i]; b.flags&isReceiver != 0 && d.legs[i].host != nil && p.PSN == b.acked.Next() {
			d.legs[i].host.offers++
		}
	}
}

// evicted checks the cause of the eviction of a host. Silence is the host's fault if it
// is dead, and the network's fault if the host got enough packets that it could have
// answered: at least as many as without local repair, and with local repair at least as
// many as dead_after has probes. Any other eviction of a live host is the switch's fault.
func (n *network) evicted(d *node, e Event) {
	h, g := n.hosts[e.Member], d.sw.groups[0]
	kept := g.repair.store != nil && g.repair.store.find(e.PSN.Next()) != nil
	switch {
	case h.isDead(), h.psnSkew != 0:
	case n.unfair:
		n.evictions++
	case n.quorum > 0 && (e.Syndrome == Stranded || !kept && e.PSN.Less(g.agg.acked)):
		n.evictions++ // behind the quorum: it lacks data that will not be sent again (R37)
	case e.Syndrome == Silent && n.deadAfter > 0 && n.loss > 0:
		probes := 0
		if kept {
			probes = livenessProbes - 1
		}
		if h.chances < max(h.offers, probes) {
			n.tb.Fatalf("host %d is alive and evicted for silence after it was sent %d packets, of which it lacks the first; its source repeated that %d times", h.id, h.chances, h.offers)
		}
		n.evictions++
	default:
		n.tb.Fatalf("host %d is alive and evicted: %+v", h.id, e)
	}
	h.removed = true
}

// hidesNumber reports whether h is a member that expects other PSNs than it was registered with, and answers
// all but one packet with an acknowledgement that says nothing, as rdma_rxe does before it has accepted anything,
// and others do that expect PSN 0.
// If its NAK is lost, or losses leave fewer of its answers than it was sent probes, nothing tells it from a
// receiver that has yet to accept something (docs/LIMITS.md).
func (h *host) hidesNumber() bool {
	return h != nil && h.n.loss > 0 && !h.removed && h.psnSkew != 0 && len(h.got) == 0 && (!h.strict || h.ePSN == 0)
}

// givesUp ends a run in which no receiver is left that could answer the source: if all are
// silent, none is removed (R23), and a real requester's retries run out. It returns false
// if s is not the present source.
func (n *network) givesUp(s *host) bool {
	g := s.node.sw.groups[0]
	if int(g.src.member) != s.id {
		return false
	}
	for i := range g.acks {
		if s.node.legs[i].host.hidesNumber() {
			n.failure = &Event{Kind: GroupFailed}
			return true
		}
	}
	for i := range g.acks {
		b := &g.acks[i]
		if b.flags&isReceiver == 0 || s.node.legs[i].host.isDead() {
			continue
		}
		if kept := g.repair.store != nil && g.repair.store.find(b.acked.Next()) != nil; kept || !b.acked.Less(g.agg.acked) {
			n.tb.Fatalf("host %d hears nothing, and leg %d is alive: %v", s.id, i, n.stuck())
		}
	}
	n.failure = &Event{Kind: GroupFailed}
	return true
}

// completedByQuorum checks the promise of a quorum, for the packets below to.
func (h *host) completedByQuorum(to int) {
	for i := h.una; i < to; i++ {
		has := 0
		for _, r := range h.n.hosts {
			have := 0
			for _, g := range r.got {
				if g>>20 == h.id {
					have++
				}
			}
			if m := r.missed[h.id]; r != h && r.in && m <= i && i < m+have {
				has++
			}
		}
		if has < h.n.quorum {
			h.n.tb.Fatalf("I2: host %d was told packet %d is done, %d hosts have it, the quorum is %d", h.id, i, has, h.n.quorum)
		}
	}
}

// TestPropertyReceiversFail: some receivers' queue pairs fail with a fatal NAK, others
// join, frames are damaged and lost, under evict with local repair and without, with up
// to three sources. The cause of every eviction is checked.
func TestPropertyReceiversFail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNetwork(t, 0, 3, 30, 100)
		n.policy, n.deadAfter = Evict, 8*timeout
		n.corrupt = rapid.SampledFrom([]int{0, 0, 10}).Draw(t, "corrupt")
		n.build(6+n.rng(3), 1+n.rng(3), 0)
		n.fatals = n.rng(3)
		n.churn(n.rng(4), 0, 20*time.Millisecond)
		n.run()
	})
}

// TestPropertyQuorumTakesTurns is the same for a quorum: at every completion at least the
// quorum has the packet. The others are repaired or removed (R37, R39), and every run
// ends.
func TestPropertyQuorumTakesTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNetwork(t, 0, 3, 30, 100)
		members := 6 + n.rng(3)
		n.policy, n.deadAfter, n.quorum = Quorum, 8*timeout, 1+n.rng(3)
		n.build(members, 1+n.rng(3), 0)
		n.fatals = n.rng(3)
		n.churn(n.rng(4), 0, 20*time.Millisecond)
		n.run()
	})
}

// TestPropertyQuorumNeverDead: without dead_after, a receiver that lost the last packets,
// or a copy that crossed its NAK, stays behind for good. It does not keep the next source
// from its turn, not even if it is that source itself (R65).
func TestPropertyQuorumNeverDead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNetwork(t, 0, 3, 30)
		n.policy, n.quorum, n.sourceTimeout = Quorum, 1+n.rng(3), 20*time.Millisecond
		n.build(6+n.rng(3), 2+n.rng(2), 0)
		n.run()
		g := n.nodes[0].sw.groups[0]
		if g.src.member != none && !g.members[g.src.member].live {
			t.Fatalf("host %d was evicted, and is the source", g.src.member)
		}
		for _, h := range n.hosts {
			if n.failure == nil && !h.removed && h.una != len(h.ops) {
				t.Fatalf("host %d: %d of %d packets done: %v", h.id, h.una, len(h.ops), n.stuck())
			}
		}
	})
}
