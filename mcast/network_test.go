// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// A model of a network around one Switch, or around a tree of them: go-back-N hosts as in
// RC.md §3, links that lose, duplicate and (feedback only) reorder packets, and members
// that join and leave.

// timeline is a network's time, and what happens later, the next one last. What is at the
// same time happens in the order in which it was planned.
type timeline struct {
	now   time.Duration
	later []event
}

type event struct {
	at time.Duration
	do func()
}

func (l *timeline) after(d time.Duration, f func()) {
	i, _ := slices.BinarySearchFunc(l.later, l.now+d, func(e event, at time.Duration) int { return cmp.Compare(at, e.at) })
	l.later = slices.Insert(l.later, i, event{l.now + d, f})
}

// next takes what happens next, if it is due by limit.
func (l *timeline) next(limit time.Duration) (e event, ok bool) {
	last := len(l.later) - 1
	if last < 0 || l.later[last].at > limit {
		return e, false
	}
	e, l.later = l.later[last], l.later[:last]
	return e, true
}

// host is one member: a responder, and a requester for its turn as the source.
type host struct {
	n      *network
	node   *node
	id     int
	strict bool // qib-like; else rdma_rxe-like
	ip     netip.Addr

	// Requester. Indices count packets from sqPSN.
	sqPSN          rocev2.PSN
	ops            []rocev2.Opcode
	una, nxt       int
	maxUnacked     int // maximum number of packets in flight: with a small one the source pauses inside messages
	tries          int // timeouts since the last acknowledgement of new data
	maxOutstanding int // maximum of tries
	top            int // highest index ever sent, plus 1
	restarted      bool
	deferred       bool // true: it waits for the timer of an RNR NAK
	timer          int  // generation: a newer timer cancels older ones

	// Responder. got lists all accepted packets, as source<<20|index.
	ePSN                            rocev2.PSN
	got                             []int
	nakSent                         bool
	muteAt                          int         // number of packets after which it falls silent, if it is network.silenced
	removed                         bool        // evicted, or left
	marked                          bool        // the next acknowledgement carries a BECN
	failed                          bool        // its queue pair is in error, after a fatal NAK
	offers, chances                 int         // packets that it would have got without repair, and did get: see network.evicted
	in                              bool        // true: it has been admitted, if it joined
	missed                          map[int]int // packets of each source that were sent before it joined, by host
	rnrLeft                         int
	transmitted, received, nakCount int
	waves                           int // number of times that it went back

	psnSkew int32                // difference between its ePSN and the registered rq_psn
	queue   []func()             // packets that it has not served yet
	pause   func() time.Duration // time that it takes for a packet, if set

	then func() // called after the last of ops is complete
}

// repairing is the local repair of a network's groups, and the bytes of a retained frame.
type repairing struct {
	spec  RepairSpec
	unit  uint32
	total int64
}

// frame is a packet in a driver's memory.
type frame struct {
	id int // source<<20|index
	p  Packet
}

// up and down are the numbers of h's links.
func (h *host) up() int   { return 2*h.id + 1 }
func (h *host) down() int { return 2 * h.id }

type network struct {
	timeline
	tb        fatalReporter
	nodes     []*node
	rng       func(n int) int
	loss      int // lost packets in 1000
	silenced  int // a host that falls silent, or -1
	hosts     []*host
	portRoom  []int   // room for copies of retained frames, one of these numbers at random
	full      int     // one copy in this number meets a full queue; 0: none
	frames    []frame // packets in the driver's memory, by Handle
	link      []time.Duration
	lost      map[int]int // number of lost packets, by link
	naive     *naiveModel
	firstPSN  rocev2.PSN                     // the first PSN of every queue; 0: any
	links     func(link int) int             // loss of each link in 10000, without duplication, if set
	lossRand  func(link int) func(n int) int // a link's own randomness, if set
	repair    *repairing                     // the local repair of all groups, if set
	pace      time.Duration                  // time of a data packet on a link; 0: next to none
	complete  time.Duration                  // time at which the source's last packet was complete, in testdata/treeloss
	tiered    bool                           // legs to switches have LegSpec.Levels
	maxSteps  int                            // events of a run; 0: 200,000
	timer     time.Duration                  // timeout of requesters
	rnrTimers bool                           // requesters wait for the timer of an RNR NAK, not for rnrDelay
	trace     func(v ...any)                 // called for each packet to a host
	passed    map[rocev2.PSN]severity        // upstream NAKs since the PSN passed
	session   uint64                         // the session of all switches of a tree with their neighbours
	reports   int                            // reports between switches
	verify    bool                           // numberings are verified
	restores  bool                           // the state of switches is restored before some calls

	policy        Policy
	quorum        int
	deadAfter     time.Duration // 0: none, or that of a network with a silent host
	sourceTimeout time.Duration
	turnTime      time.Duration
	fatals        int             // number of receivers that may still fail
	corrupt       int             // data packets in 1000 that a link damages
	damagePSN     bool            // damage may change the PSN too
	damaged       map[Handle]bool // frames that arrived damaged
	evictions     int             // evictions of live hosts
	unfair        bool            // evictions of live hosts are counted, their causes not checked
	failure       *Event          // the failure of the group

	amend     func(*GroupSpec) // change of the group before it is put, if set
	writes    bool             // sources send WRITEs into the group's window
	congested int              // one accepted packet in this number causes a CNP or a BECN; 0: none
}

const (
	rtt       = 10 * time.Microsecond
	timeout   = 400 * time.Microsecond
	maxWindow = 24
	rnrDelay  = 50 * time.Microsecond
)

// carry delivers f over a link, in order unless jitter is set.
func (n *network) carry(link int, jitter bool, f func()) {
	for copies := 1; copies > 0; copies-- {
		rng := n.rng
		if n.lossRand != nil {
			rng = n.lossRand(link)
		}
		if n.links != nil && rng(10_000) < n.links(link) || n.links == nil && rng(1000) < n.loss {
			n.lost[link]++
			continue
		}
		if rng(1000) < n.loss/4 && copies == 1 {
			copies++
		}
		at := n.now + rtt
		if jitter {
			at += time.Duration(n.rng(30)) * time.Microsecond
		} else {
			at = max(at, n.link[link]+max(1, n.pace))
			n.link[link] = at
		}
		n.after(at-n.now, f)
	}
}

// input calls Input as a driver does: it verifies a packet only on NeedVerify.
func (n *network) input(d *node, p Packet) {
	if p.Op.Is(rocev2.OpRequest) { // each arrival is a frame of its own
		n.frames = append(n.frames, frame{n.frames[p.Frame].id, p})
		p.Frame, p.RetainBytes = Handle(len(n.frames)-1), d.unit
		n.damage(&p)
		n.offered(d, &p)
	}
	d.enter()
	d.sw.Input(n.now, &p, &d.out)
	if d.out.NeedVerify {
		if p.Verified || len(d.out.Copies)+len(d.out.Feedback)+len(d.out.Events) > 0 {
			n.tb.Fatalf("NeedVerify with effects, or for a verified packet: %+v", p)
		}
		d.ledger.close(n.tb, d.sw, &p, &d.out)
		if n.damaged[p.Frame] && p.Op.Is(rocev2.OpRequest) {
			return
		}
		p.Verified = true
		d.enter()
		d.sw.Input(n.now, &p, &d.out)
	}
	n.output(d, &p)
}

// output does what Output lists. p is nil after Advance and Apply.
func (n *network) output(d *node, p *Packet) {
	d.ledger.close(n.tb, d.sw, p, &d.out)
	checkInvariants(n.tb, d.sw.groups[0])
	d.leavesOut()
	for _, e := range d.out.Events {
		switch {
		case e.Kind == SourceChanged:
			if d.flat() {
				n.naive.epoch(int(e.Member))
				clear(n.passed)
			}
			d.admitAll(int(e.Member), int(e.PSN.Sub(n.hosts[e.Member].sqPSN)))
		case e.Kind == NumberMismatch && e.Number == ReceivePSN && n.hosts[e.Member].psnSkew == 0:
			n.tb.Fatalf("R55: host %d has the registered numbers: %+v", e.Member, e)
		case e.Kind == MemberEvicted:
			n.evicted(d, e)
		case e.Kind == GroupFailed && n.policy != Evict && n.deadAfter+time.Duration(n.quorum) > 0:
			n.failure = &e
		case e.Kind == NumberMismatch: // a guess that losses can mislead, without consequences
		default:
			n.tb.Fatalf("unexpected event %+v", e)
		}
	}
	if p != nil && p.Op.Is(rocev2.OpRequest) && (d.out.Drop == AwaitsVerification || d.out.Drop == TurnOver || d.out.Drop == None && (d.repairs() || len(d.out.Copies) > 0)) {
		delete(n.passed, p.PSN)
	}
	full := map[LegID]bool{}
	for _, c := range d.out.Copies {
		end, f := &d.legs[c.Leg], n.frames[c.Frame].id
		d.sent[f>>20] = max(d.sent[f>>20], f&0xFFFFF+1)
		h := end.host
		if h != nil && !h.in {
			h.admitted(f>>20, f&0xFFFFF)
		}
		if full[c.Leg] || n.full > 0 && d.repairs() && n.rng(n.full) == 0 {
			full[c.Leg] = true // the copy may be deferred, else it is lost
			d.sw.Requeue(&c, n.now+time.Duration(n.rng(40))*time.Microsecond)
			checkInvariants(n.tb, d.sw.groups[0])
			continue
		}
		if h == nil {
			d.relay(end, c)
			continue
		}
		if i := n.naive.nak[h.id]; i >= 0 && c.PSN == h.ePSN.Add(int32(i)) {
			n.naive.nak[h.id] = -1
		}
		ask := n.frames[c.Frame].p.AckReq || c.Flags&SetAckReq != 0
		n.trace("copy", h.id, c.PSN, f, ask)
		h.chances++
		if n.damaged[c.Frame] {
			continue
		}
		n.checkWrite(h, &c)
		n.carry(h.down(), false, func() { h.deliver(c.PSN, f, ask) })
	}
	for _, r := range d.out.Reports {
		d.report(r)
	}
	for _, p := range d.out.Probes {
		h := d.legs[p.Leg].host
		n.trace("probe", h.id, p.PSN)
		h.chances++
		n.carry(h.down(), false, func() { h.deliver(p.PSN, noFrame, true) })
	}
	evicts := slices.ContainsFunc(d.out.Events, func(e Event) bool { return e.Kind == MemberEvicted })
	for i, f := range d.out.Feedback {
		h := n.hosts[f.To]
		n.trace("feedback", h.id, f.PSN, f.Syndrome, f.MSN)
		if h.node != d {
			d.answer(f)
			continue
		}
		if f.Op == rocev2.CNP {
			continue
		}
		if d.flat() && (!evicts || i == len(d.out.Feedback)-1) { // feedback before the eviction may acknowledge less
			n.check(f)
		}
		n.carry(h.down(), false, func() { h.answered(f.PSN, f.Syndrome) })
	}
}

// check compares feedback to the source with that of naiveModel, and checks the invariants
// I2, I3 and I6.
func (n *network) check(f Feedback) {
	if int(f.To) != n.naive.source {
		return // answers a late duplicate of an earlier source: host.answered checks it
	}
	if n.quorum > 0 || n.failure != nil {
		return // naiveModel waits for all receivers
	}
	s := n.hosts[f.To]
	want := s.sqPSN.Add(int32(n.naive.acked() - 1))
	if f.PSN.Less(want) && n.nodes[0].leavesOut() {
		return
	}
	switch k := f.Syndrome.Kind(); k {
	case rocev2.KindACK:
		if f.PSN != want {
			n.tb.Fatalf("ACK %06x, every receiver has up to %06x", f.PSN, want)
		}
		ends := 0
		for _, op := range s.ops[:n.naive.acked()] {
			if op.Is(rocev2.OpEnd) {
				ends++
			}
		}
		if int(f.MSN) != ends {
			n.tb.Fatalf("ACK %06x has MSN %d, complete are %d messages", f.PSN, f.MSN, ends)
		}
	default:
		if f.PSN != want.Next() {
			n.tb.Fatalf("I3: NAK %06x, every receiver has up to %06x", f.PSN, want)
		}
		sev := severityOf(k)
		if sev <= n.passed[f.PSN] {
			n.tb.Fatalf("I6: NAK %06x of severity %d again before its PSN passed", f.PSN, sev)
		}
		n.passed[f.PSN] = sev
		// The switch sends a NAK too in the name of a receiver whose next packet is not
		// in the store, and for a message that has waited for probes. It sends the
		// source an RNR NAK at the end of its turn.
		g := n.nodes[0].sw.groups[0]
		if k == rocev2.KindRNR && g.is(messageRefused) && f.PSN == g.fwd.nxt {
			return
		}
		if resumed := g.is(asking) && f.PSN == g.fwd.nxt; !resumed && !n.naive.wanted() && (k != rocev2.KindSequence || g.repair.numRecovering == 0 || g.repair.store.find(g.agg.acked.Next()) != nil) {
			n.tb.Fatalf("NAK %06x, but nobody asks for it", f.PSN)
		}
	}
}

// naiveModel is the obvious aggregator: it keeps the set of packets that each receiver has
// acknowledged.
type naiveModel struct {
	network  *network
	source   int
	base     []int          // len(got) of each receiver when the turn began
	sender   []int          // index of the source's packet at that position
	nxt      []int          // packets of each source that all receivers have, by host, at the end of its turn
	received []map[int]bool // positions in each receive queue, by host
	nak      []int          // position of each receiver's last NAK that was not sent since, or -1
}

func (a *naiveModel) epoch(src int) {
	if a.source >= 0 {
		a.nxt[a.source] = a.acked()
	}
	a.source = src
	for i := range a.base {
		a.base[i], a.sender[i] = a.prefix(i), a.nxt[src]
	}
}

func (a *naiveModel) prefix(i int) int {
	p := 0
	if a.base != nil {
		p = a.base[i]
	}
	for a.received[i][p] {
		p++
	}
	return p
}

// acked returns how many packets of the source all receivers have acknowledged.
func (a *naiveModel) acked() int {
	m := -1
	for i := range a.network.hosts {
		if k := a.sender[i] + a.prefix(i) - a.base[i]; a.counts(i) && (m < 0 || k < m) {
			m = k
		}
	}
	return m
}

// counts reports whether the source waits for host i.
func (a *naiveModel) counts(i int) bool {
	h := a.network.hosts[i]
	return i != a.source && h.in && !h.removed
}

// wanted reports whether a receiver that holds acked back has sent a NAK of the next PSN.
func (a *naiveModel) wanted() bool {
	m := a.acked()
	for i := range a.network.hosts {
		if p := a.prefix(i); a.counts(i) && a.sender[i]+p-a.base[i] == m && a.nak[i] == p {
			return true
		}
	}
	return false
}

func (a *naiveModel) feedback(i, upTo int) {
	for p := upTo - 1; p >= 0 && !a.received[i][p]; p-- {
		a.received[i][p] = true
	}
}
