// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// node is one switch of the network: the only one, or one of a tree of two
// levels, in which the hosts are behind the leaves.
type node struct {
	left    bool // see leavesOut
	network *network
	sw      *Switch
	out     Output
	uplink  *node // nil for the root
	legs    []legEnd
	sent    map[int]int // packets of a source that went out so far, by host

	ledger ledger
	unit   uint32 // bytes of memory that keeping a frame takes
}

// repairs says whether the group at d has local repair.
func (d *node) repairs() bool { return d.sw.groups[0].store != nil }

// enter is what a driver does before a call: it says for how many copies of kept
// frames it has room.
func (d *node) enter() {
	d.out.MaxResends = d.network.portRoom[0]
	if len(d.network.portRoom) > 1 {
		d.out.MaxResends = d.network.portRoom[d.network.rng(len(d.network.portRoom))]
	}
	d.ledger.open(d.sw)
}

// legEnd is where a leg leads: to a host or to another switch.
type legEnd struct {
	host *host
	node *node
	link int
}

// rootNeighbor is how the leaves call the root. It calls them by their index.
const rootNeighbor Neighbor = 1000

func (d *node) flat() bool { return len(d.network.nodes) == 1 }

func (d *node) index() int {
	for i, x := range d.network.nodes {
		if x == d {
			return i
		}
	}
	panic("not a node of the network")
}

// neighbor is how peer calls d.
func (d *node) neighbor() Neighbor {
	if d.uplink == nil {
		return rootNeighbor
	}
	return Neighbor(d.index())
}

// toward returns the leg that leads to h.
func (d *node) toward(h *host) LegID {
	for i := range d.legs {
		e := &d.legs[i]
		if e.host == h || e.node != nil && h.node != d && (e.node == h.node || e.node.uplink == nil) {
			return LegID(i)
		}
	}
	return LegID(len(d.legs))
}

// put registers the group at d, with the hosts that there are.
func (d *node) put() {
	n := d.network
	spec := GroupSpec{IP: groupIP, QPN: groupQPN, PMTU: 256}
	if n.silenced >= 0 && n.deadAfter == 0 {
		n.policy, n.deadAfter = Evict, 8*timeout
	}
	spec.Policy, spec.Quorum, spec.DeadAfter, spec.SourceTimeout, spec.TurnTime = n.policy, n.quorum, n.deadAfter, n.sourceTimeout, n.turnTime
	if n.verify {
		spec.PSNProbe = 2 * rtt
	}
	spec.Repair, d.unit = drawRepair(n.rng, 2*rtt)
	limits := Limits{}
	if spec.Repair.Bytes > 0 && n.rng(8) == 0 {
		limits.RepairBytes = 1 + spec.Repair.Bytes/2 // less than the group may keep
	}
	if r := n.repair; r != nil {
		spec.Repair, d.unit, limits.RepairBytes = r.spec, r.unit, r.total
	}
	d.sw, d.sent, d.legs = New(limits), map[int]int{}, nil
	for _, h := range n.hosts {
		m := h.spec()
		m.Leg = d.toward(h)
		if int(m.Leg) == len(d.legs) {
			spec.Legs = append(spec.Legs, d.grow(h))
		}
		spec.Members = append(spec.Members, m)
	}
	if err := d.sw.Apply(0, PutGroup{spec}, &d.out); err != nil {
		n.tb.Fatalf("%v", err)
	}
}

func (h *host) spec() MemberSpec {
	return MemberSpec{IP: h.ip, QPN: rocev2.QPN(0x100 + h.id), SQPSN: h.sqPSN, RQPSN: h.ePSN.Add(h.psnSkew)}
}

// grow adds the leg toward h.
func (d *node) grow(h *host) LegSpec {
	if h.node == d {
		d.legs = append(d.legs, legEnd{host: h})
		return LegSpec{}
	}
	peer := h.node
	if d.uplink != nil {
		peer = d.uplink
	}
	d.legs = append(d.legs, legEnd{node: peer, link: len(d.network.link)})
	d.network.link = append(d.network.link, 0)
	return LegSpec{Kind: Forwarded, Neighbor: peer.neighbor()}
}

// relay carries a copy to the next switch.
func (d *node) relay(end *legEnd, c Copy) {
	p := d.network.frames[c.Frame].p
	p.PSN, p.Neighbor, p.Verified, p.Frame = c.PSN, d.neighbor(), false, c.Frame
	p.AckReq = p.AckReq || c.Flags&SetAckReq != 0
	peer := end.node
	d.network.carry(end.link, false, func() { d.network.input(peer, p) })
}

// answer carries feedback to the next switch on the way to the source. It
// keeps the source's numbering, and so names the source.
func (d *node) answer(f Feedback) {
	h := d.network.hosts[f.To]
	end := &d.legs[d.toward(h)]
	p := Packet{Group: groupIP, Src: h.ip, Neighbor: d.neighbor(), DestQP: groupQPN,
		Op: f.Op, PSN: f.PSN, Syndrome: f.Syndrome, MSN: f.MSN, BECN: f.BECN}
	peer := end.node
	d.network.carry(end.link, true, func() { d.network.input(peer, p) })
}

// admitAll lets all who wait begin with a new source, at its packet i.
func (d *node) admitAll(src, i int) {
	for _, h := range d.network.hosts {
		if h.node == d && !h.in && int(d.toward(h)) < len(d.legs) {
			h.admitted(src, i)
		}
	}
}

// admitted makes h a receiver, from packet i of src on.
func (h *host) admitted(src, i int) {
	h.in = true
	for s, k := range h.node.sent {
		h.missed[s] = k
	}
	h.missed[src] = i
	h.n.naive.sender[h.id] = i
}

// advance fires the first deadline that comes by time by, if there is one.
func (n *network) advance(by time.Duration) bool {
	for _, d := range n.nodes {
		if at, ok := d.sw.NextDeadline(); ok && at <= by {
			n.now = max(n.now, at)
			d.enter()
			d.sw.Advance(n.now, &d.out)
			n.output(d, nil)
			return true
		}
	}
	return false
}

// join brings a new receiver into the group while data flows.
func (n *network) join() {
	d := n.nodes[0]
	if k := len(n.nodes) - 1; k > 0 {
		d = n.nodes[1+n.rng(k)]
	}
	h := n.newHost(d)
	for _, d := range n.nodes {
		op := AddMember{Member: h.spec()}
		op.Member.Leg = d.toward(h)
		if int(op.Member.Leg) == len(d.legs) {
			op.Leg = d.grow(h)
		}
		n.apply(d, op)
	}
}

// leave takes a receiver out, unless it is the last of its switch that answers and
// is sent all that is in flight: a group without such a receiver fails.
func (n *network) leave(h *host) {
	others, g := 0, h.node.sw.groups[0]
	for _, o := range n.hosts {
		if o.node == h.node && o != h && !o.removed && len(o.ops) == 0 && o.in && o.id != n.silenced && g.branchAt(int(h.node.toward(o))).flags&joinedInFlight == 0 {
			others++
		}
	}
	if h.removed || others == 0 || h.id == n.silenced {
		return
	}
	h.removed = true
	n.apply(h.node, RemoveMember{Member: MemberID(h.id)})
	for _, d := range n.nodes {
		if d != h.node {
			n.apply(d, RemoveMember{Member: MemberID(h.id)})
		}
	}
}

func (n *network) apply(d *node, op Op) {
	d.enter()
	if err := d.sw.Apply(n.now, op, &d.out); err != nil {
		if n.failure != nil {
			return // nobody joins a group that has failed
		}
		n.tb.Fatalf("%v", err)
	}
	n.output(d, nil)
}

// leavesOut says whether d may have left out an ACK of a fresh rdma_rxe (R52): one that
// reads as its answer to a probe, or came while not all before it had passed. What d
// sends to the source is then too low for a while.
func (d *node) leavesOut() bool {
	g := d.sw.groups[0]
	d.left = d.left || slices.ContainsFunc(g.checks, func(v verification) bool { return v.emptyAnswers > 0 || v.acceptedNothing && g.numbering.gap })
	return d.left
}
