// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// node is one switch of the network: the only one, or one in a tree.
type node struct {
	left    bool // see leavesOut
	network *network
	sw      *Switch
	out     Output
	uplink  *node // nil for the root
	legs    []legEnd
	sent    map[int]int // number of packets of each source that went out so far, by host

	ledger ledger
	unit   uint32 // bytes of memory that a retained frame takes
}

// repairs reports whether the group at d has local repair.
func (d *node) repairs() bool { return d.sw.groups[0].repair.store != nil }

// enter does what a driver does before a call: it sets the room for copies of retained
// frames.
func (d *node) enter() {
	d.out.MaxResends = d.network.portRoom[0]
	if len(d.network.portRoom) > 1 {
		d.out.MaxResends = d.network.portRoom[d.network.rng(len(d.network.portRoom))]
	}
	if n := d.network; n.restores && n.rng(20) == 0 {
		restore(n.tb, d.sw, n.now, n.rng)
	}
	d.ledger.open(d.sw)
}

// legEnd is the other end of a leg: a host or another switch.
type legEnd struct {
	host   *host
	node   *node
	link   int
	frames int // data that went to another switch
}

// rootNeighbor is the root's number at the leaves. At the root a leaf's number is its
// index.
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

// neighbor returns the number of d at its peers.
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
		if e.host == h || e.node != nil && e.node == d.hop(h.node) {
			return LegID(i)
		}
	}
	return LegID(len(d.legs))
}

// hop returns the next switch on the way from d to another one; nil if d is that one.
func (d *node) hop(to *node) *node {
	for x := to; x != d; x = x.uplink {
		if x == nil {
			return d.uplink
		}
		if x.uplink == d {
			return x
		}
	}
	return nil
}

// levels returns the number of levels of switches behind the link from d to peer.
func (d *node) levels(peer *node) (n uint8) {
	for _, x := range d.network.nodes {
		if x != d && (x.uplink == peer || peer.uplink == x) {
			n = max(n, peer.levels(x))
		}
	}
	return n + 1
}

// put registers the group at d, with all present hosts.
func (d *node) put() {
	n := d.network
	spec := GroupSpec{IP: groupIP, GroupParams: GroupParams{QPN: groupQPN, PathMTU: 256}}
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
	if n.amend != nil {
		n.amend(&spec)
	}
	if d.uplink != nil {
		spec.Tree.Parent = d.uplink.neighbor()
	}
	if err := d.sw.Apply(0, PutGroup{spec}, &d.out); err != nil {
		n.tb.Fatalf("%v", err)
	}
}

// connect tells the switches of a tree of their sessions.
func (n *network) connect() {
	n.session++
	for _, d := range n.nodes {
		for i := range d.legs {
			if peer := d.legs[i].node; peer != nil {
				if err := d.sw.SetSession(n.now, 0, peer.neighbor(), n.session, &d.out); err != nil {
					n.tb.Fatalf("%v", err)
				}
				n.output(d, nil)
			}
		}
	}
}

// report carries a report to the next switch. Reports may overtake each other.
func (d *node) report(r Report) {
	for i := range d.legs {
		end := &d.legs[i]
		if end.node != nil && end.node.neighbor() == r.Neighbor {
			d.network.reports++
			d.network.carry(end.link, true, func() {
				peer := end.node
				peer.enter()
				peer.sw.InputReport(d.network.now, 0, d.neighbor(), &r.Message, &peer.out)
				if peer.out.Drop == ConflictingReport || peer.out.Drop == LaterEpoch {
					d.network.tb.Fatalf("a report contradicts what was reported before: %+v", r)
				}
				d.network.output(peer, nil)
			})
			return
		}
	}
	d.network.tb.Fatalf("a report to neighbour %d, which is none", r.Neighbor)
}

func (h *host) spec() MemberSpec {
	m := MemberSpec{MemberRecord: MemberRecord{IP: h.ip, QPN: rocev2.QPN(0x100 + h.id), SQPSN: h.sqPSN, RQPSN: h.ePSN.Add(h.psnSkew)}, Number: uint32(h.id) + 1}
	if h.n.writes {
		m.Window = h.window()
	}
	return m
}

// grow adds the leg toward h.
func (d *node) grow(h *host) LegSpec {
	if h.node == d {
		d.legs = append(d.legs, legEnd{host: h})
		return LegSpec{}
	}
	peer := d.hop(h.node)
	d.legs = append(d.legs, legEnd{node: peer, link: len(d.network.link)})
	d.network.link = append(d.network.link, 0)
	spec := LegSpec{Kind: Forwarded, Neighbor: peer.neighbor()}
	if d.network.tiered {
		spec.Levels = d.levels(peer)
	}
	return spec
}

// relay carries a copy to the next switch.
func (d *node) relay(end *legEnd, c Copy) {
	p := d.network.frames[c.Frame].p
	p.PSN, p.Neighbor, p.Verified, p.Frame = c.PSN, d.neighbor(), false, c.Frame
	p.AckReq = p.AckReq || c.Flags&SetAckReq != 0
	peer := end.node
	end.frames++
	d.network.carry(end.link, false, func() { d.network.input(peer, p) })
}

// answer carries feedback to the next switch on the way to the source. The feedback keeps
// the source's numbering, so its Src is the source's address.
func (d *node) answer(f Feedback) {
	h := d.network.hosts[f.To]
	end := &d.legs[d.toward(h)]
	p := Packet{Group: groupIP, Src: h.ip, Neighbor: d.neighbor(), DestQP: groupQPN,
		Op: f.Op, PSN: f.PSN, Syndrome: f.Syndrome, MSN: f.MSN, BECN: f.BECN}
	peer := end.node
	d.network.carry(end.link, true, func() { d.network.input(peer, p) })
}

// admitAll makes all joining hosts receivers of a new source, from its packet i on.
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

// advance fires the first deadline up to time by, and reports whether there was one.
func (n *network) advance(by time.Duration) bool {
	var first *node
	for _, d := range n.nodes {
		if at, ok := d.sw.NextDeadline(); ok && (at < by || at == by && first == nil) {
			first, by = d, at
		}
	}
	if first == nil {
		return false
	}
	n.now = max(n.now, by)
	first.enter()
	first.sw.Advance(n.now, &first.out)
	n.output(first, nil)
	return true
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

// leave removes a receiver, unless it is the last one of its switch that answers and gets
// all data in flight: a group without such a receiver fails.
func (n *network) leave(h *host) {
	others, g := 0, h.node.sw.groups[0]
	for _, o := range n.hosts {
		if o.node == h.node && o != h && !o.removed && len(o.ops) == 0 && o.in && o.id != n.silenced && g.ackStateOf(int(h.node.toward(o))).flags&joinedInFlight == 0 {
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
			return // a failed group takes no new members
		}
		n.tb.Fatalf("%v", err)
	}
	n.output(d, nil)
}

// leavesOut reports whether d may have ignored an ACK of a new rdma_rxe receiver (R52):
// one that looks like its answer to a probe, or that came while the packets before it had
// a gap. The feedback of d to the source is then too low for a while.
func (d *node) leavesOut() bool {
	g := d.sw.groups[0]
	d.left = d.left || slices.ContainsFunc(g.numbering.checks, func(v verification) bool { return v.emptyAnswers > 0 || v.acceptedNothing && g.numbering.gap })
	return d.left
}
