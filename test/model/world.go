// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/mcast/token"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Device is the part of a switch that the model uses. *mcast.Switch is one; tests replace
// it by faulty ones.
type Device interface {
	Input(now time.Duration, p *mcast.Packet, out *mcast.Output)
	Advance(now time.Duration, out *mcast.Output)
	NextDeadline() (time.Duration, bool)
	Group(id mcast.GroupID) mcast.Group
	AppendState(b []byte, now time.Duration) []byte
	SetState(b []byte, now time.Duration) ([]byte, error)
	Apply(now time.Duration, op mcast.Op, out *mcast.Output) error
	PositionsStored(now time.Duration, id mcast.GroupID, number uint32, p *mcast.Positions, out *mcast.Output)
	Requeue(c *mcast.Copy, until time.Duration) bool

	InputForwarded(now time.Duration, id mcast.GroupID, p *mcast.Packet, out *mcast.Output)
	InputAcked(now time.Duration, id mcast.GroupID, legs []mcast.LegACK, sent mcast.SentACK, out *mcast.Output)
	InputCovered(now time.Duration, id mcast.GroupID, c *mcast.Covered, legs []mcast.LegACK, sent mcast.SentACK, out *mcast.Output) bool
	Offload(now time.Duration, id mcast.GroupID, out *mcast.Output) (mcast.Grant, bool)
	Revoked(now time.Duration, id mcast.GroupID, out *mcast.Output)

	SetSession(now time.Duration, id mcast.GroupID, n mcast.Neighbor, session uint64, out *mcast.Output) error
	InputReport(now time.Duration, id mcast.GroupID, n mcast.Neighbor, msg *token.Message, out *mcast.Output)
	RenumberReports(id mcast.GroupID, n mcast.Neighbor, sent, received uint64)
}

var groupIP = netip.AddrFrom4([4]byte{10, 9, 9, 9})

func hostIP(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}) }

// packet is a packet on a link. Data is named by its source and its index in the source's
// stream.
type packet struct {
	feedback bool
	probe    bool // a keepalive probe
	ackReq   bool
	reth     bool  // VA and R_Key are a member's, not the group's
	gen      uint8 // index of the receiver's queue pair that it is for
	source   uint8
	index    uint8
	syndrome rocev2.Syndrome
	msn      rocev2.MSN // feedback of a host, if numbers are verified; the tag in feedback of a switch to another
	psn      rocev2.PSN
	va       uint64
	rkey     uint32
	report   *token.Message // a report of one switch to another; nothing else then
}

// node numbers hosts from 0 and the switches after them.
type node int

// link is one direction of a cable, first in first out but for faults.
type link struct {
	from, to node
	nbr      mcast.Neighbor // the name that to, a switch, has for from
	session  uint8          // the number of sessions that to has begun with from, between switches
	q        []packet
	full     time.Duration // the time until which it accepts only a bounded number of copies
	room     uint8
}

type host struct {
	qp     *rc.QP    // one of
	qps    [2]*rc.QP // the first one, and the one of a Fresh Join
	fresh  []byte    // the initial state of the second one
	posted rc.Posted
	bufs   [][]byte // buffers by ID of the receive
	region []byte   // target of peers' WRITEs
	rkey   uint32
	up     int // link to its switch

	progress    [maxSources]progress // progress by source
	gen         uint8                // the index of the present one of qps
	done        uint8                // own messages completed
	withheld    uint8                // receives that are not posted yet
	started     bool                 // true: it has posted its messages
	dead        bool
	evicted     bool // true: a switch has evicted it
	excluded    bool // true: it is not a member: it left, or has not joined yet
	misnumbered bool // registered with numbers that differ from those of its queue pair
	corrupted   bool // a packet on its way to or from its switch was lost or delayed
}

// member reports whether the group's promise includes host h.
func (h *host) member() bool { return !h.evicted && !h.excluded }

// broken reports whether a fatal NAK of host h has ended its queue pair.
func (h *host) broken() bool { return h.qp.State() != rc.RTS }

// switchState is a switch and the checks' records of it.
type switchState struct {
	*membership
	form        formKey // the form of the membership
	memberships map[formKey]*membership
	storage     storage // its file
	down        []int   // link by host, of those at this switch
	trunks      []int   // link by neighbour, from 1
	spec        mcast.GroupSpec
	failed      bool
	top         [maxSources]uint8 // packets of each source that the switch has forwarded

	// The last NAK to its source, until its PSN passes again (I6).
	nakRank int
	nakPSN  rocev2.PSN

	fast program
	held []mcast.Handle // frames that it retains, sorted
	legs []legState     // states by leg
}

// World is one state of a scenario, with the machinery for the next steps.
type World struct {
	cfg      *Config
	now      time.Duration
	left     Bounds
	mortal   bool // a host may still die
	hosts    []host
	switches []switchState
	links    []link
	home     []int // the switch of each host
	wrap     func(*mcast.Switch, mcast.GroupSpec) Device
	streams  [maxSources]stream

	qpOut         rc.Output
	swOut         mcast.Output
	before, after mcast.GroupStatus
	wrong         *Violation
	op            mcast.Op // the operation of the change under way
	stepOp        string   // restart or durable, while that is under way
	outdated      bool     // something that counts as stored is not
	inForwarded   bool     // a report of the fast path is under way
	refused       bool     // a switch that has restarted had failed the group
	untold        bool     // the group has failed while una was not known: its source is not told
	arrivals      []arrival
	arrived       *arrival       // the report under way
	prologue      []string       // the begin of the transcripts: the group, and how the switches have met
	recordSession mcast.Neighbor // the neighbour of the session that begins
	sessionNumber uint64
	endToEnd      bool
	recorder      *recorder // nil except while a trace is recorded
}

// NewWorld returns the first state of a scenario. wrap, if not nil, replaces
// each switch.
func NewWorld(cfg *Config, wrap func(*mcast.Switch, mcast.GroupSpec) Device) (*World, error) {
	w := &World{cfg: cfg, now: restoreTime, left: cfg.Bounds, mortal: cfg.HostsMayDie, wrap: wrap}
	w.swOut.MaxResends = cfg.PortRoom
	n := cfg.Receivers + 1
	for s := range w.streams {
		w.streams[s] = newStream(s, cfg.stream(s), cfg.Write)
	}
	for i := range n {
		if err := w.addHost(i); err != nil {
			return nil, fmt.Errorf("model: %s: host %s: %w", cfg.Name, name(i), err)
		}
	}
	w.home = cfg.homes()
	for sw := range shapes[cfg.Tree].links {
		if err := w.addSwitch(sw); err != nil {
			return nil, fmt.Errorf("model: %s: switch %d: %w", cfg.Name, sw, err)
		}
	}
	w.connect()
	w.recorder = newRecorder(w)
	if cfg.Tree != Flat {
		w.meet()
	}
	for cfg.reshapes() && w.wrong == nil && w.pending() >= 0 {
		w.take(w.pending(), 0) // the switches have met before the first step
	}
	w.verify()
	for sw := range w.recorder.text {
		w.prologue = append(w.prologue, w.recorder.text[sw].String())
	}
	w.recorder = nil
	w.begin(0)
	if w.wrong != nil {
		return nil, fmt.Errorf("model: %s: first state: %s", cfg.Name, w.wrong.What)
	}
	return w, nil
}

// verify makes the first members show their numbering before the first step.
func (w *World) verify() {
	for w.cfg.Probe && w.wrong == nil {
		at, ok := w.earliest()
		switch {
		case w.pending() >= 0:
			w.take(w.pending(), 0)
		case ok && at <= w.now:
			for n := range len(w.hosts) + len(w.switches) {
				if t, armed := w.deadline(n); armed && t == at {
					w.fire(n)
				}
			}
		default:
			return
		}
	}
}

// pending returns a link with packets; -1 if there is none.
func (w *World) pending() int {
	return slices.IndexFunc(w.links, func(l link) bool { return len(l.q) > 0 })
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
	for id := range total {
		n := w.longest() * pmtu
		if i == w.cfg.Receivers && id+1 == w.cfg.ShortBuffer {
			n = 1
		}
		h.bufs = append(h.bufs, make([]byte, n))
	}
	conf := rc.Config{
		Personality: c.Personality, PMTU: pmtu, LocalQPN: qpn(i), DestQPN: groupQPN, SQPSN: c.SQ, RQPSN: c.RQ,
		Timeout: w.cfg.timeout(), RetryCnt: 7, RNRRetry: rc.Infinite, MinRNRTimer: rnrCode, MaxUnacked: w.cfg.SendWindow,
		SendDepth: 8, RecvDepth: 8, Memory: mem,
	}
	if h.qps[0], err = rc.New(conf); err != nil {
		return err
	}
	h.qp = h.qps[0]
	if j := w.cfg.fresh(i); j != nil {
		conf.LocalQPN, conf.RQPSN = qpn(i)+freshQPN, j.RQ
		if h.qps[1], err = rc.New(conf); err != nil {
			return err
		}
		h.fresh = h.qps[1].AppendState(nil, w.now)
	}
	h.posted.Recv = func(id uint64) rc.RecvWR { return rc.RecvWR{ID: id, Buf: h.bufs[id]} }
	if i < maxSources {
		wrs := w.streams[i].wrs
		h.posted.Send = func(id uint64) rc.WR { return wrs[id] }
	}
	if i == 1 {
		h.withheld = uint8(min(w.cfg.Withheld, total))
	}
	h.excluded = i > w.cfg.Receivers-w.cfg.Outside
	h.progress[0].first = w.cfg.firstOfA()
	for id := range total - int(h.withheld) {
		if err := h.qp.PostRecv(h.posted.Recv(uint64(id))); err != nil {
			return err
		}
	}
	w.hosts = append(w.hosts, *h)
	// posted's closures need only the buffers, which the copy shares
	return nil
}

// longest returns the number of packets of the longest message.
func (w *World) longest() int {
	n := 4
	for s := range w.streams {
		for m, end := range w.streams[s].ends {
			n = max(n, end-w.streams[s].starts[m])
		}
	}
	return n
}

func memberVA(host int) uint64 { return uint64(host+1) << 32 }

// addSwitch makes switch sw, with its view of the group.
func (w *World) addSwitch(sw int) error {
	g := mcast.GroupSpec{IP: groupIP, GroupParams: mcast.GroupParams{QPN: groupQPN, PathMTU: pmtu, Policy: w.cfg.Policy, Quorum: w.cfg.Quorum}, SourceTimeout: stalled, TurnTime: -1}
	if w.cfg.Restart > 0 && w.cfg.Tree != Flat {
		g.SourceTimeout = 3 * stalled // longer than a source waits for a switch that resumes
	}
	if w.cfg.Fair {
		g.TurnTime = 1 // the first request of a waiting member ends a turn
	}
	g.AckEvery = w.cfg.AckEvery
	if w.cfg.WithDeadAfter {
		g.DeadAfter = w.cfg.dead()
		if sw == 0 && w.cfg.Tree != Flat {
			g.DeadAfter = deadBelow // otherwise it would evict a whole rack for one of its members
		}
	}
	if w.cfg.Repair > 0 {
		g.Repair = mcast.RepairSpec{Bytes: int64(w.cfg.Repair) * frameBytes, Timeout: w.cfg.patience(), Tries: w.cfg.tries()}
	}
	if w.cfg.Probe {
		g.PSNProbe, g.Stored = probeWait, w.cfg.Stored
	}
	if w.cfg.Write {
		g.Window = mcast.Window{Base: groupVA, Len: 1 << 13, RKey: groupKey}
	}
	g.Tree.Parent = w.cfg.Tree.parent(sw, w.home)
	first := w.firstForm(sw)
	w.fill(&g, first)
	legs := len(first.at)
	for i := range w.cfg.Changes {
		legs += len(w.cfg.Changes[i].Join)
		if w.cfg.Changes[i].Rebuilt {
			legs += len(shapes[w.cfg.Tree].links[sw])
		}
	}
	if n := w.cfg.FastPath; n > 0 {
		g.FastPath = mcast.FastPathSpec{Slots: n, Drain: drainTime}
	}
	w.switches = append(w.switches, switchState{spec: g, memberships: map[formKey]*membership{}, legs: make([]legState, legs), fast: newProgram(legs)})
	f, err := w.formAt(sw, formKey{})
	if err != nil {
		return err
	}
	w.switches[sw].membership = f
	for i := w.cfg.Receivers - w.cfg.Outside + 1; i < len(w.hosts); i++ {
		w.switches[sw].storage.durable.absent |= 1 << i
	}
	return nil
}

// fill gives a spec the legs and members of a membership.
func (w *World) fill(g *mcast.GroupSpec, f *membership) {
	g.Legs, g.Members = nil, nil
	for _, nbr := range f.legNear {
		g.Legs = append(g.Legs, legSpec(nbr))
	}
	for _, i := range f.host {
		g.Members = append(g.Members, w.memberSpec(i, f.leg[i]))
	}
}

// firstForm returns the group at switch sw in the first state, without a device.
func (w *World) firstForm(sw int) *membership { return w.formIn(sw, w.cfg.Tree) }

// formIn returns the group of the first members at switch sw in tree t, without a device.
func (w *World) formIn(sw int, t Tree) *membership {
	f := &membership{leg: slices.Repeat([]mcast.LegID{noLeg}, len(w.hosts)), near: t.near(sw, w.home)}
	if f.near == nil {
		return f
	}
	legs := map[mcast.Neighbor]mcast.LegID{}
	for i := range len(w.hosts) - w.cfg.Outside {
		nbr := f.near[i]
		l, known := legs[nbr]
		if nbr == 0 || !known {
			l = mcast.LegID(len(f.at))
			legs[nbr] = l
			f.at, f.legNear = append(f.at, i), append(f.legNear, nbr)
		}
		f.leg[i] = l
		f.host = append(f.host, i)
	}
	return f
}

func legSpec(nbr mcast.Neighbor) mcast.LegSpec {
	if nbr != 0 {
		return mcast.LegSpec{Kind: mcast.Forwarded, Neighbor: nbr}
	}
	return mcast.LegSpec{}
}

// memberSpec returns the first registration of host i.
func (w *World) memberSpec(i int, l mcast.LegID) mcast.MemberSpec {
	h := w.cfg.host(i)
	m := mcast.MemberSpec{MemberRecord: mcast.MemberRecord{IP: hostIP(i), QPN: qpn(i), SQPSN: w.cfg.firstPSN(i), RQPSN: h.RQ}, Number: uint32(i) + 1, Leg: l}
	if w.cfg.Write {
		m.Window = mcast.Window{Base: memberVA(i), Len: 1 << 13, RKey: w.hosts[i].rkey}
	}
	return m
}

// connect makes the links, those of A's data first: the first fair schedule prefers low
// numbers, the second high ones.
func (w *World) connect() {
	n, neighbours := len(w.hosts), shapes[w.cfg.Tree].links
	for sw := range w.switches {
		w.switches[sw].down = make([]int, n)
		w.switches[sw].trunks = make([]int, len(neighbours[sw]))
	}
	add := func(from, to node, nbr mcast.Neighbor) {
		w.links = append(w.links, link{from: from, to: to, nbr: nbr})
	}
	host := func(h int) {
		w.switches[w.home[h]].down[h] = len(w.links)
		add(node(n+w.home[h]), node(h), 0)
	}
	trunk := func(from, to int) {
		w.switches[from].trunks[slices.Index(neighbours[from], to)] = len(w.links)
		add(node(n+from), node(n+to), mcast.Neighbor(slices.Index(neighbours[to], from)+1))
	}
	up := func(h int) {
		w.hosts[h].up = len(w.links)
		add(node(h), node(n+w.home[h]), 0)
	}
	up(0)
	for from := range neighbours {
		for _, to := range neighbours[from] {
			if from < to {
				trunk(from, to)
			}
		}
	}
	for h := 1; h < n; h++ {
		host(h)
	}
	for h := 1; h < n; h++ {
		up(h)
	}
	for from := range neighbours {
		for _, to := range neighbours[from] {
			if from > to {
				trunk(from, to)
			}
		}
	}
	host(0)
}

// linkOf returns the link behind leg l of switch sw.
func (w *World) linkOf(sw int, l mcast.LegID) int {
	r := &w.switches[sw]
	if n := r.legNear[l]; n != 0 {
		return r.trunks[n-1]
	}
	return r.down[r.at[l]]
}
