// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/mcast/token"
	"github.com/gleam-rdma/gleam/rocev2"
)

// A tree of switches that start again, and whose parents change, while members send: the
// model of R89 and R90. Hosts are go-back-N requesters and strict responders; every other one answers
// duplicates as rdma_rxe does before it has accepted anything. Links lose, and have a delay.

// treeNet is the network. Switch 0 is the root.
type treeNet struct {
	timeline
	tb     fatalReporter
	rng    func(int) int
	loss   int // lost packets in 1000
	stored bool
	probe  bool // members are probed, also if nothing is stored
	repair RepairSpec
	// patience is the retransmission timeout of the hosts, if it is not the usual one.
	patience time.Duration
	turnTime time.Duration             // TurnTime of GroupSpec
	window   int                       // packets that a host has in flight, if not the usual number
	askAtEnd bool                      // only the last packet of a message has AckReq, not that of a window
	silence  time.Duration             // DeadAfter of GroupSpec, with the policy Evict, a fourth of AllDeadAfter; 0: members are not evicted
	rejoined int                       // hosts that were evicted, and have joined anew
	evicted  func(h *treeHost)         // called for each member that is evicted
	timeouts int                       // how often a host has gone back without having been told
	reports  int                       // messages of the token that were sent
	passes   func(at int, l *leg) bool // reports whether what switch at has for a leg goes out there; nil: all does
	carried  map[[4]int]int            // how often a packet, of a source, went from a switch to another one; nil: not counted

	switches []*treeSwitch
	hosts    []*treeHost
	frames   []treeFrame
	parent   []int // the switches' parents in the present layout, as planned
	layout   uint32
	met      map[[2]int]uint64 // how often two switches have begun a session
	busy     bool              // an update is under way
	conflict string            // the last event of switches that disagree on the source
	pending  int               // packets of sources that are not complete
	log      func(string, ...any)
}

type treeSwitch struct {
	n       *treeNet
	id      int
	sw      *Switch
	out     Output
	down    bool
	parent  []int // the switches' parents in the layout that is installed here
	layout  uint32
	links   map[int]bool // the neighbours in the installed layout
	durable *Positions
	stored  []*treeHost // those of the members of durable
	timer   time.Duration
}

type treeFrame struct {
	src, index int
	op         rocev2.Opcode
	ask        bool // true: it has AckReq
}

type treeHost struct {
	n   *treeNet
	id  int
	at  int
	ip  netip.Addr
	sq  rocev2.PSN // PSN of packet 0
	rq  rocev2.PSN
	ops []rocev2.Opcode

	una, nxt, top int
	waits         time.Duration
	timer         int

	ePSN    rocev2.PSN
	got     []int // packets of each source
	mid     int   // the source of a message that has begun, or -1
	nakSent bool
	deafTo  time.Duration // its queue pair takes nothing before
	msn     rocev2.MSN
	out     bool   // true: the host is no member (yet, or any more)
	begun   []bool // true, by source, for a host that has joined: got counts from its first packet on
	owed    []int  // the packet, by source, from which on it has to get all, since the join is installed at all switches
}

// hostOf returns the host that is member m of g.
func (n *treeNet) hostOf(g *group, m MemberID) *treeHost { return n.hosts[g.numberOf(m)-1] }

// lacks reports whether h is to get packet i of source src, and has not got it.
func (h *treeHost) lacks(src, i int) bool {
	switch {
	case h.out || h.id == src:
		return false
	case h.begun == nil || h.begun[src]:
		return h.got[src] <= i
	}
	return h.owed != nil && h.owed[src] <= i
}

// carry delivers f over a link, if it is not lost.
func (n *treeNet) carry(f func()) {
	if n.rng(1000) < n.loss {
		return
	}
	n.after(10*time.Microsecond, f)
}

// toward returns the neighbour of switch s toward switch t, in a tree.
func toward(parent []int, s, t int) int {
	for x := t; x >= 0; x = parent[x] {
		if x == s {
			panic("toward itself")
		}
		if parent[x] == s {
			return x
		}
	}
	return parent[s]
}

func newTreeNet(tb fatalReporter, rng func(int) int, switches, hosts int) *treeNet {
	n := &treeNet{tb: tb, rng: rng, met: map[[2]int]uint64{}, log: func(string, ...any) {}}
	for s := range switches {
		above := -1
		if s > 0 {
			above = rng(s)
		}
		n.parent = append(n.parent, above)
	}
	for h := range hosts {
		at := h
		if h >= switches || rng(2) == 0 {
			at = rng(switches)
		}
		psn := rocev2.PSN([]int{0, 0xFFFFF8, 0x7FFFFA, rng(1 << 24)}[rng(4)])
		rq := rocev2.PSN([]int{0, 0xFFFFF9, 0x7FFFFC, rng(1 << 24)}[rng(4)])
		n.hosts = append(n.hosts, &treeHost{n: n, id: h, at: at, ip: netip.AddrFrom4([4]byte{10, 0, 1, byte(h + 1)}), sq: psn, rq: rq, ePSN: rq, mid: -1, got: make([]int, hosts)})
	}
	return n
}

// put gives switch s the group; running: others have it already.
func (s *treeSwitch) put(running bool) {
	n := s.n
	spec := GroupSpec{IP: groupIP, GroupParams: GroupParams{QPN: groupQPN, PathMTU: 256}, Repair: n.repair, Stored: s.stores(), TurnTime: n.turnTime, Tree: TreeSpec{Layout: s.layout, Rebuilt: s.layout != 0, Running: running}}
	if n.silence != 0 {
		spec.Policy, spec.DeadAfter, spec.AllDeadAfter = Evict, n.silence, 4*n.silence
	}
	if n.stored || n.probe {
		spec.PSNProbe = time.Millisecond
	}
	if p := s.parent[s.id]; p >= 0 {
		spec.Tree.Parent = Neighbor(p + 1)
	}
	legs := map[Neighbor]LegID{}
	for _, h := range n.hosts {
		if h.out {
			continue
		}
		m := h.member(LegID(len(spec.Legs)))
		if h.at == s.id {
			spec.Legs = append(spec.Legs, LegSpec{})
		} else if nbr := Neighbor(toward(s.parent, s.id, h.at) + 1); true {
			l, ok := legs[nbr]
			if !ok {
				l = m.Leg
				legs[nbr] = l
				spec.Legs = append(spec.Legs, LegSpec{Kind: Forwarded, Neighbor: nbr, Levels: levelsFrom(s.parent, s.id, int(nbr)-1)})
			}
			m.Leg = l
		}
		spec.Members = append(spec.Members, m)
	}
	if spec.Tree.Parent != 0 {
		if _, ok := legs[spec.Tree.Parent]; !ok {
			spec.Tree.Parent = 0 // nobody is above
		}
	}
	if running && s.durable != nil && s.stores() {
		spec.Resume = s.resume()
	}
	s.sw, s.timer = New(Limits{}), 0
	if err := s.sw.Apply(n.now, PutGroup{spec}, &s.out); err != nil {
		n.tb.Fatalf("switch %d: %v", s.id, err)
	}
	n.log("put %d running %v durable %v", s.id, running, s.durable)
	s.output()
	s.connect()
}

// stores reports whether a member is at the switch: only then its positions are stored.
func (s *treeSwitch) stores() bool {
	return s.n.stored && slices.ContainsFunc(s.n.hosts, func(h *treeHost) bool { return !h.out && h.at == s.id })
}

// connect tells a switch its sessions: those that both ends have.
func (s *treeSwitch) connect() {
	for _, l := range s.sw.groups[0].forwardedLegs() {
		leg := &s.sw.groups[0].legs[l]
		peer := int(leg.neighbor) - 1
		session := s.n.session(s.id, peer, s.layout)
		if s.n.switches[peer].down || !s.links[peer] {
			session = 0
		}
		if err := s.sw.SetSession(s.n.now, 0, leg.neighbor, session, &s.out); err != nil {
			s.n.tb.Fatalf("switch %d: %v", s.id, err)
		}
		s.output()
	}
}

// session returns the session of two switches in a layout.
func (n *treeNet) session(a, b int, layout uint32) uint64 {
	return n.met[[2]int{min(a, b), max(a, b)}]<<16 | uint64(layout)<<1 | 1
}

// meet begins new sessions of switch s, which has started again, with all others.
func (n *treeNet) meet(s int) {
	for i := range n.switches {
		n.met[[2]int{min(i, s), max(i, s)}]++
	}
	for i := range n.switches {
		if !n.switches[i].down {
			n.switches[i].connect()
		}
	}
}

// crash stops a switch, and starts it again soon.
func (n *treeNet) crash(id int) { n.crashFor(id, time.Duration(n.rng(2000))*time.Microsecond) }

// crashFor stops a switch, and starts it again after down.
func (n *treeNet) crashFor(id int, down time.Duration) {
	s := n.switches[id]
	if s.down {
		return
	}
	n.log("crash %d", id)
	s.down = true
	for i := range n.switches {
		if !n.switches[i].down && n.switches[i].links[id] {
			n.switches[i].connect()
		}
	}
	n.after(down, func() {
		s.down = false
		s.put(true)
		n.meet(id)
	})
}

// output does what the switch has put out.
func (s *treeSwitch) output() {
	n, g, o := s.n, s.sw.groups[0], &s.out
	checkInvariants(n.tb, g)
	for _, e := range o.Events {
		switch e.Kind {
		case SourceChanged, NumberMismatch:
		case MemberEvicted:
			n.noteEvicted(s.id, n.hostOf(g, e.Member))
		case PositionsDue:
			s.store()
		case SourceConflict:
			n.conflict = fmt.Sprintf("%v: switch %d: a neighbour sends data of member %d, which is not the source", n.now, s.id, e.Member)
		default:
			n.tb.Fatalf("%v: switch %d: %+v", n.now, s.id, e)
		}
	}
	for _, c := range o.Copies {
		f, l := c.Frame, &g.legs[c.Leg]
		if n.passes != nil && !n.passes(s.id, l) {
			continue
		}
		if l.connected() {
			h := n.hostOf(g, l.member)
			psn, ask := c.PSN, c.Flags&SetAckReq != 0 || n.frames[f].ask
			n.carry(func() { h.deliver(psn, int(f), ask) })
			continue
		}
		n.data(s.id, int(l.neighbor)-1, c.PSN, int(f), c.Flags&SetAckReq != 0)
	}
	for _, f := range o.Feedback {
		h := n.hostOf(g, f.To)
		psn, syndrome := f.PSN, f.Syndrome
		l := &g.legs[g.members[f.To].leg]
		if n.passes != nil && !n.passes(s.id, l) {
			continue
		}
		n.log("%v feedback of %d to %d: %06x %v", n.now, s.id, h.id, psn, syndrome)
		if l.connected() {
			n.carry(func() { h.answered(psn, syndrome) })
			continue
		}
		p := Packet{Group: groupIP, Src: h.ip, Neighbor: Neighbor(s.id + 1), DestQP: groupQPN, Op: f.Op, PSN: psn, Syndrome: syndrome, MSN: f.MSN}
		n.send(int(l.neighbor)-1, p)
	}
	for _, p := range o.Probes {
		h := n.hostOf(g, g.legs[p.Leg].member)
		n.carry(func() { h.deliver(p.PSN, -1, true) })
	}
	n.reports += len(o.Reports)
	for _, r := range o.Reports {
		to, from, msg := n.switches[int(r.Neighbor)-1], Neighbor(s.id+1), r.Message
		if b := msg.AppendBinary(nil); n.rng(8) == 0 { // as it is on the wire
			var err error
			if msg, err = token.ParseMessage(b); err != nil {
				n.tb.Fatalf("%v", err)
			}
		}
		n.carry(func() {
			if to.down {
				return
			}
			to.sw.InputReport(n.now, 0, from, &msg, &to.out)
			if to.out.Drop == ConflictingReport || to.out.Drop == LaterEpoch {
				n.tb.Fatalf("switch %d: a report of %d contradicts an earlier one: %+v", to.id, from-1, msg)
			}
			to.output()
		})
	}
	if at, ok := s.sw.NextDeadline(); ok && (s.timer <= n.now || at < s.timer) {
		s.timer = max(at, n.now)
		sw := s.sw
		n.after(s.timer-n.now, func() {
			if at, ok := sw.NextDeadline(); !s.down && s.sw == sw && ok && at <= n.now {
				sw.Advance(n.now, &s.out)
			} else if s.sw != sw || s.down || !ok {
				return
			} else {
				s.out.reset()
			}
			s.timer = 0
			s.output()
		})
	}
}

// store makes the present positions durable, soon.
func (s *treeSwitch) store() {
	sw := s.sw
	s.n.after(time.Duration(s.n.rng(500))*time.Microsecond, func() {
		if s.down || s.sw != sw {
			return
		}
		if number, ok := s.read(); ok {
			sw.PositionsStored(s.n.now, 0, number, s.durable, &s.out)
			s.output()
		}
	})
}

// read makes the present positions durable. A driver does so with each change of the members too.
func (s *treeSwitch) read() (number uint32, ok bool) {
	var p Positions
	number, ok = s.sw.Group(0).Positions(&p)
	if !ok || number == 0 {
		return 0, false
	}
	s.durable, s.stored = &p, nil
	for m := range p.Members {
		s.stored = append(s.stored, s.n.hostOf(s.sw.groups[0], MemberID(m)))
	}
	return number, true
}

// resume returns the durable positions of the present members. Those that have joined since then
// wait for their first message.
func (s *treeSwitch) resume() *Positions {
	var p Positions
	for _, h := range s.n.hosts {
		if h.out {
			continue
		}
		at := Position{Joining: h.at != s.id}
		if i := slices.Index(s.stored, h); i >= 0 {
			at = s.durable.Members[i]
			if s.durable.HasSource && int(s.durable.Source) == i {
				p.HasSource, p.Source = true, MemberID(len(p.Members))
			}
		}
		p.Members = append(p.Members, at)
	}
	return &p
}

// data carries a packet from a switch to another one.
func (n *treeNet) data(from, to int, psn rocev2.PSN, frame int, ask bool) {
	f := n.frames[frame]
	f.ask = f.ask || ask
	if n.carried != nil {
		n.carried[[4]int{from, to, f.src, f.index}]++
	}
	p := Packet{Group: groupIP, Src: n.hosts[f.src].ip, Neighbor: Neighbor(from + 1), DestQP: groupQPN, Op: f.op, PSN: psn, Payload: 256, AckReq: f.ask}
	n.frames = append(n.frames, f)
	p.Frame, p.RetainBytes = Handle(len(n.frames)-1), minFrameBytes
	n.send(to, p)
}

func (n *treeNet) send(to int, p Packet) {
	s := n.switches[to]
	n.carry(func() {
		if s.down {
			return
		}
		s.input(p)
	})
}

func (s *treeSwitch) input(p Packet) {
	if s.sw.Input(s.n.now, &p, &s.out); s.out.NeedVerify {
		p.Verified = true
		s.sw.Input(s.n.now, &p, &s.out)
	}
	s.n.log("%v switch %d from %v(%d): %v psn %06x syn %v: %v", s.n.now, s.id, p.Src, p.Neighbor, p.Op, p.PSN, p.Syndrome, s.out.Drop)
	s.output()
}

// run takes the network to time until, or to when done says.
func (n *treeNet) run(until time.Duration, done func() bool) bool {
	for !done() {
		e, ok := n.next(until)
		if !ok {
			return false
		}
		n.now = e.at
		e.do()
	}
	return true
}
