// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rc"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Device is what the model needs of a switch. *mcast.Switch is one; tests put
// broken ones in its place.
type Device interface {
	Input(now time.Duration, p *mcast.Packet, out *mcast.Output)
	Advance(now time.Duration, out *mcast.Output)
	NextDeadline() (time.Duration, bool)
	Snapshot(id mcast.GroupID, st *mcast.GroupStatus) bool
	AppendState(b []byte, now time.Duration) []byte
	SetState(b []byte, now time.Duration) ([]byte, error)
}

var groupIP = netip.AddrFrom4([4]byte{10, 9, 9, 9})

func hostIP(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}) }

// packet is a packet on a link. Data is named by its source and its place in
// the source's stream.
type packet struct {
	feedback bool
	ackReq   bool
	reth     bool // VA and R_Key are a member's, not the group's
	source   uint8
	index    uint8
	syndrome rocev2.Syndrome
	psn      rocev2.PSN
	va       uint64
	rkey     uint32
}

// node numbers hosts from 0 and the switches after them.
type node int

// link is one direction of a cable, first in first out but for faults.
type link struct {
	from, to node
	leg      mcast.LegID    // from's leg, if from is a switch
	nbr      mcast.Neighbor // what to, if a switch, calls from
	q        []packet
}

type host struct {
	qp     *rc.QP
	posted rc.Posted
	bufs   [][]byte // by ID of the receive
	region []byte   // what peers may WRITE to
	rkey   uint32
	up     int // its link to its switch

	got      [maxSources]uint8 // packets accepted, by source
	done     uint8             // own messages completed
	withheld uint8             // receives not posted yet
	started  bool              // has posted its messages
	dead     bool
	evicted  bool
}

// relay is a switch and what the checks remember of it.
type relay struct {
	dev  Device
	out  []int         // link by leg
	leg  []mcast.LegID // leg by host
	spec mcast.GroupSpec

	// The last NAK it sent to its source, until its PSN passes again (I6).
	nakRank int
	nakPSN  rocev2.PSN

	held     []mcast.Handle // frames it keeps, in no order that means anything
	branches []branch       // by leg
}

// World is one state of a scenario, and the machinery to go on from there.
type World struct {
	cfg     *Config
	now     time.Duration
	left    Bounds
	mortal  bool // somebody may still die
	hosts   []host
	relays  []relay
	links   []link
	streams [maxSources]stream

	qpOut         rc.Output
	swOut         mcast.Output
	before, after mcast.GroupStatus
	wrong         *Violation
	endToEnd      bool
	rec           *recorder // nil but while a trace is written
}

// near says, by switch, host by host, behind which neighbour a host is; 0 is
// connected. It also returns which switch each neighbour is.
func (t Tree) near(hosts int) (near [][]mcast.Neighbor, neighbours [][]int) {
	at := func(host int) int { // the switch of a host
		switch {
		case t == Rack && (host == 1 || host == 2):
			return 1
		case t == Racks && host == 1:
			return 1
		case t == Racks && host > 1:
			return 2
		}
		return 0
	}
	neighbours = [][][]int{Flat: {nil}, Rack: {{1}, {0}}, Racks: {{1, 2}, {0}, {0}}}[t]
	for sw := range neighbours {
		row := make([]mcast.Neighbor, hosts)
		for h := range row {
			switch {
			case at(h) == sw:
			case sw != 0:
				row[h] = 1 // the root
			default:
				row[h] = mcast.Neighbor(at(h))
			}
		}
		near = append(near, row)
	}
	return near, neighbours
}

// NewWorld returns the first state of a scenario. wrap, if not nil, replaces
// each switch.
func NewWorld(cfg *Config, wrap func(*mcast.Switch, mcast.GroupSpec) Device) (*World, error) {
	w := &World{cfg: cfg, now: epoch, left: cfg.Bounds, mortal: cfg.Mortal}
	w.swOut.MaxRepairs = cfg.Room
	n := cfg.Receivers + 1
	for s := range w.streams {
		w.streams[s] = newStream(s, cfg.stream(s), cfg.Write)
	}
	for i := range n {
		if err := w.addHost(i); err != nil {
			return nil, fmt.Errorf("model: %s: host %s: %w", cfg.Name, name(i), err)
		}
	}
	near, neighbours := cfg.Tree.near(n)
	for sw := range near {
		if err := w.addRelay(near[sw], wrap); err != nil {
			return nil, fmt.Errorf("model: %s: switch %d: %w", cfg.Name, sw, err)
		}
	}
	w.connect(near, neighbours)
	w.begin(0)
	if w.wrong != nil {
		return nil, fmt.Errorf("model: %s: first state: %s", cfg.Name, w.wrong.What)
	}
	return w, nil
}

func (w *World) addHost(i int) error {
	h, c := &host{}, w.cfg.host(i)
	mem := rc.NewMemory(uint64(i))
	h.region = make([]byte, 1<<14)
	mr, err := mem.RegisterMR(h.region, memberVA(i), rc.RemoteWrite)
	if err != nil {
		return err
	}
	h.rkey = mr.RKey
	total := 0
	for s := range w.streams {
		if s != i && !w.cfg.Write {
			total += len(w.streams[s].wrs)
		}
	}
	for range total {
		h.bufs = append(h.bufs, make([]byte, 4*pmtu))
	}
	h.qp, err = rc.New(rc.Config{
		Personality: c.Personality, PMTU: pmtu, LocalQPN: qpn(i), DestQPN: groupQPN, SQPSN: c.SQ, RQPSN: c.RQ,
		Timeout: timeout, RetryCnt: 7, RNRRetry: rc.Infinite, MinRNRTimer: rnrCode, MaxUnacked: w.cfg.Window,
		SendDepth: 8, RecvDepth: 8, Memory: mem,
	})
	if err != nil {
		return err
	}
	h.posted.Recv = func(id uint64) rc.RecvWR { return rc.RecvWR{ID: id, Buf: h.bufs[id]} }
	if i < maxSources {
		wrs := w.streams[i].wrs
		h.posted.Send = func(id uint64) rc.WR { return wrs[id] }
	}
	if i == 1 {
		h.withheld = uint8(min(w.cfg.Withheld, total))
	}
	for id := range total - int(h.withheld) {
		if err := h.qp.PostRecv(h.posted.Recv(uint64(id))); err != nil {
			return err
		}
	}
	w.hosts = append(w.hosts, *h)
	// posted's closures need the buffers only, which the copy shares.
	return nil
}

func memberVA(host int) uint64 { return uint64(host+1) << 32 }

// addRelay makes a switch that knows the group as it looks from there.
func (w *World) addRelay(near []mcast.Neighbor, wrap func(*mcast.Switch, mcast.GroupSpec) Device) error {
	g := mcast.GroupSpec{IP: groupIP, QPN: groupQPN, PMTU: pmtu}
	if w.cfg.Mortal {
		g.Policy, g.DeadAfter = mcast.Evict, dead
		if len(w.relays) == 0 && w.cfg.Tree != Flat {
			g.DeadAfter = deadBelow // else it would cut off a whole rack for one of its members
		}
	}
	if w.cfg.Repair > 0 {
		g.Repair = mcast.RepairSpec{Bytes: int64(w.cfg.Repair) * frameBytes, Timeout: w.cfg.patience(), Tries: w.cfg.tries()}
	}
	if w.cfg.Write {
		g.Window = mcast.Window{Base: groupVA, Len: 1 << 13, RKey: groupKey}
	}
	r := relay{}
	legs := map[mcast.Neighbor]mcast.LegID{}
	for i, nbr := range near {
		l, known := legs[nbr]
		if nbr == 0 || !known {
			l = mcast.LegID(len(g.Legs))
			legs[nbr] = l
			spec := mcast.LegSpec{Neighbor: nbr}
			if nbr != 0 {
				spec.Kind = mcast.Forwarded
			}
			g.Legs = append(g.Legs, spec)
		}
		h := w.cfg.host(i)
		m := mcast.MemberSpec{IP: hostIP(i), QPN: qpn(i), SQPSN: h.SQ, RQPSN: h.RQ, Leg: l}
		if w.cfg.Write {
			m.Window = mcast.Window{Base: memberVA(i), Len: 1 << 13, RKey: w.hosts[i].rkey}
		}
		g.Members = append(g.Members, m)
		r.leg = append(r.leg, l)
	}
	sw := mcast.New(mcast.Limits{Groups: 1, Members: 8})
	if err := sw.Apply(w.now, mcast.PutGroup{Spec: g}, &w.swOut); err != nil {
		return err
	}
	r.dev, r.spec = sw, g
	r.branches = make([]branch, len(g.Legs))
	if wrap != nil {
		r.dev = wrap(sw, g)
	}
	r.out = make([]int, len(g.Legs))
	w.relays = append(w.relays, r)
	return nil
}

// connect makes the links, those that carry A's data first: the first fair
// schedule prefers low ones, the second high ones.
func (w *World) connect(near [][]mcast.Neighbor, neighbours [][]int) {
	n := len(w.hosts)
	at := func(h int) int {
		for sw := range near {
			if near[sw][h] == 0 {
				return sw
			}
		}
		panic("model: a host without a switch")
	}
	add := func(from, to node, leg mcast.LegID, nbr mcast.Neighbor) {
		if from >= node(n) {
			w.relays[int(from)-n].out[leg] = len(w.links)
		} else {
			w.hosts[from].up = len(w.links)
		}
		w.links = append(w.links, link{from: from, to: to, leg: leg, nbr: nbr})
	}
	trunk := func(from, to int) {
		var leg mcast.LegID
		for l, spec := range w.relays[from].spec.Legs {
			if spec.Neighbor != 0 && neighbours[from][spec.Neighbor-1] == to {
				leg = mcast.LegID(l)
			}
		}
		var nbr mcast.Neighbor
		for k, sw := range neighbours[to] {
			if sw == from {
				nbr = mcast.Neighbor(k + 1)
			}
		}
		add(node(n+from), node(n+to), leg, nbr)
	}
	add(0, node(n+at(0)), 0, 0)
	for sw := 1; sw < len(near); sw++ {
		trunk(0, sw)
	}
	for h := 1; h < n; h++ {
		add(node(n+at(h)), node(h), w.relays[at(h)].leg[h], 0)
	}
	for h := 1; h < n; h++ {
		add(node(h), node(n+at(h)), 0, 0)
	}
	for sw := 1; sw < len(near); sw++ {
		trunk(sw, 0)
	}
	add(node(n+at(0)), 0, w.relays[at(0)].leg[0], 0)
}
