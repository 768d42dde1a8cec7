// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
	"pgregory.net/rapid"
)

// quorumReceiver is a go-back-N responder of a quorum run.
type quorumReceiver struct {
	ip       netip.Addr
	ePSN     rocev2.PSN
	first    int // index of the first packet of the source that it is to get; -1: none came yet
	received int // index after the last packet that it has, of those from first on
	nak      bool
	mute     bool
	gone     bool
}

// quorumRun is one source that sends messages of three packets to receivers that join and
// fall silent, over links that lose and duplicate packets, one tick at a time.
type quorumRun struct {
	tb        *rapid.T
	rng       func(int) int
	loss      int // lost packets in 1000
	sw        *Switch
	out       Output
	now       time.Duration
	quorum    int
	receivers []*quorumReceiver // the receivers, by LegID-1
	una, nxt  int
	idleTicks int // ticks without progress
	retries   int // timeouts without progress
	start     rocev2.PSN
	total     int
	failed    bool
	inbox     []Packet // packets from receivers to the switch
	frames    []frame  // the packets in memory, by handle
	unit      uint32   // bytes of memory that a retained frame takes
	ledger    ledger
}

const quorumTick = 10 * time.Microsecond

// TestPropertyQuorum: whatever packets are lost, and whichever receivers join or fall
// silent, a completed packet has reached k receivers that were to get it, in order. A run
// ends with everything completed, or with a fatal NAK if a receiver cannot be spared.
func TestPropertyQuorum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		q := &quorumRun{
			tb: t, sw: New(Limits{}), total: 3 * rapid.IntRange(1, 60).Draw(t, "messages"),
			loss: rapid.SampledFrom([]int{0, 5, 50, 150}).Draw(t, "loss"),
			rng: func(m int) int {
				seed = seed*6364136223846793005 + 1442695040888963407
				return int(seed >> 33 % uint64(m))
			},
		}
		q.start = rocev2.PSN(0xFFFFD0 + q.rng(0x60))
		q.run()
	})
}

func (q *quorumRun) run() {
	n := 2 + q.rng(5)
	q.quorum = 1 + q.rng(n)
	spec := GroupSpec{
		IP: groupIP, GroupParams: GroupParams{QPN: groupQPN, PathMTU: 256, Policy: Quorum, Quorum: q.quorum, DeadAfter: 100 * quorumTick},
		Legs: []LegSpec{{}}, Members: []MemberSpec{{MemberRecord: MemberRecord{IP: ipOf("A"), QPN: 0x100, SQPSN: q.start & rocev2.PSNMask}}},
	}
	spec.Repair, q.unit = drawRepair(q.rng, 3*quorumTick)
	for i := range n {
		r := q.newReceiver()
		r.first = 0
		spec.Legs = append(spec.Legs, LegSpec{})
		spec.Members = append(spec.Members, MemberSpec{MemberRecord: MemberRecord{IP: r.ip, QPN: 0x100, RQPSN: r.ePSN}, Leg: LegID(i + 1)})
	}
	q.apply(PutGroup{spec})
	for tick := 0; q.una < q.total && !q.failed; tick++ {
		if tick > 200_000 {
			q.tb.Fatalf("no end: %d of %d, quorum %d\n%+v", q.una, q.total, q.quorum, q.receivers)
		}
		q.now += quorumTick
		if at, ok := q.sw.NextDeadline(); ok && at <= q.now {
			q.enter()
			q.sw.Advance(q.now, &q.out)
			q.output(nil)
		}
		switch q.rng(400) {
		case 0:
			q.receivers[q.rng(len(q.receivers))].mute = true
		case 1, 2:
			if len(q.receivers) < 12 && !q.failed {
				r := q.newReceiver()
				q.apply(AddMember{Member: MemberSpec{MemberRecord: MemberRecord{IP: r.ip, QPN: 0x100, RQPSN: r.ePSN}, Leg: LegID(len(q.receivers))}})
			}
		}
		q.send()
		box := q.inbox
		q.inbox = nil
		for _, p := range box {
			q.lossy(func() { q.input(p) })
		}
	}
}

func (q *quorumRun) newReceiver() *quorumReceiver {
	r := &quorumReceiver{ip: netip.AddrFrom4([4]byte{10, 0, 1, byte(len(q.receivers))}), ePSN: rocev2.PSN(q.rng(1 << 24)), first: -1}
	q.receivers = append(q.receivers, r)
	return r
}

func (q *quorumRun) apply(op Op) {
	q.enter()
	if err := q.sw.Apply(q.now, op, &q.out); err != nil {
		q.tb.Fatal(err)
	}
	q.output(nil)
}

func (q *quorumRun) enter() {
	q.out.MaxResends = q.rng(4)
	q.ledger.open(q.sw)
}

func (q *quorumRun) lossy(f func()) {
	for n := 1; n > 0; n-- {
		if q.rng(1000) < q.loss {
			continue
		}
		if q.rng(1000) < q.loss/4 {
			n++
		}
		f()
	}
}

// send is one tick of the source: the next packet or, after a time without progress, the
// timeout.
func (q *quorumRun) send() {
	if q.idleTicks++; q.idleTicks > 60 {
		q.nxt, q.idleTicks = q.una, 0
		q.retries++
	}
	// If all receivers are silent, none is removed: the source gives up.
	if q.retries > 100 {
		alive := 0
		for _, r := range q.receivers {
			if !r.gone && !r.mute && r.first >= 0 && r.first <= q.una && r.received >= q.una { // a receiver that lacks more has sent its NAK, and sends no further one
				alive++
			}
		}
		if alive >= q.quorum && alive > 0 {
			var st GroupStatus
			q.sw.Group(0).Snapshot(&st)
			for i, m := range st.Members[1:] {
				q.tb.Logf("%d: %+v %+v", i, m, *q.receivers[i])
			}
			q.tb.Fatalf("stuck at %d of %d with %d live receivers, quorum %d", q.una, q.total, alive, q.quorum)
		}
		q.failed = true
	}
	if q.nxt >= min(q.total, q.una+20) {
		return
	}
	i := q.nxt
	q.nxt++
	op := [3]rocev2.Opcode{rocev2.SendFirst, rocev2.SendMiddle, rocev2.SendLast}[i%3]
	p := Packet{Group: groupIP, Src: ipOf("A"), DestQP: groupQPN, Op: op, PSN: q.start.Add(int32(i)), AckReq: i%3 == 2 || i == q.una+19, Payload: 256, RetainBytes: q.unit}
	q.lossy(func() {
		p.Frame = Handle(len(q.frames))
		q.frames = append(q.frames, frame{i, p})
		q.input(p)
	})
}

func (q *quorumRun) input(p Packet) {
	q.enter()
	q.sw.Input(q.now, &p, &q.out)
	if q.out.NeedVerify {
		q.ledger.close(q.tb, q.sw, &p, &q.out)
		p.Verified = true
		q.enter()
		q.sw.Input(q.now, &p, &q.out)
	}
	q.output(&p)
}

func (q *quorumRun) output(p *Packet) {
	q.ledger.close(q.tb, q.sw, p, &q.out)
	checkInvariants(q.tb, q.sw.groups[0])
	out := q.out
	for _, e := range out.Events {
		switch e.Kind {
		case MemberEvicted:
			q.receivers[e.Member-1].gone = true
			if left := q.in(); left < q.quorum {
				q.tb.Fatalf("evicted member %d: %d receivers are left, the quorum is %d", e.Member, left, q.quorum)
			}
		case GroupFailed:
			q.failed = true
		}
	}
	for _, c := range out.Copies {
		r := q.receivers[c.Leg-1]
		f := &q.frames[c.Frame]
		q.lossy(func() { q.receive(r, c.PSN, f.id, f.p.AckReq || c.Flags&SetAckReq != 0) })
	}
	for _, f := range out.Feedback {
		q.answered(f)
	}
}

// in returns how many receivers are in the group.
func (q *quorumRun) in() (n int) {
	for _, r := range q.receivers {
		if !r.gone {
			n++
		}
	}
	return n
}

// receive gives a packet to r, which is a strict responder.
func (q *quorumRun) receive(r *quorumReceiver, psn rocev2.PSN, i int, ask bool) {
	if r.mute || r.gone {
		return
	}
	at := int(psn.Sub(r.ePSN)) // position in r's receive queue
	if r.first < 0 && at == 0 {
		if i%3 != 0 {
			q.tb.Fatalf("a joiner begins with packet %d, inside a message", i)
		}
		r.first, r.received = i, i
	}
	if r.first < 0 {
		q.answer(r, 0, rocev2.SyndromeNAKSequence)
		return
	}
	if r.first+at != i {
		q.tb.Fatalf("packet %d is number %d for a receiver that began with %d", i, at, r.first)
	}
	switch {
	case i == r.received:
		r.received++
		r.nak = false
		if ask {
			q.answer(r, at, rocev2.SyndromeACK)
		}
	case i < r.received:
		q.answer(r, r.received-r.first-1, rocev2.SyndromeACK)
	case !r.nak:
		r.nak = true
		q.answer(r, r.received-r.first, rocev2.SyndromeNAKSequence)
	}
}

func (q *quorumRun) answer(r *quorumReceiver, at int, syn rocev2.Syndrome) {
	q.inbox = append(q.inbox, Packet{Group: groupIP, Src: r.ip, DestQP: groupQPN, Op: rocev2.Acknowledge, PSN: r.ePSN.Add(int32(at)), Syndrome: syn})
}

// answered serves feedback at the source. It checks the promise before a link may lose the
// feedback.
func (q *quorumRun) answered(f Feedback) {
	i := int(f.PSN.Sub(q.start))
	done := i
	if f.Syndrome.Kind() == rocev2.KindACK {
		done++
	}
	have := 0
	for _, r := range q.receivers {
		if r.first >= 0 && r.received >= done && (r.first < done || done == 0) {
			have++
		}
	}
	if done > 0 && have < q.quorum {
		q.tb.Fatalf("%d packets are called done, %d receivers have them, the quorum is %d", done, have, q.quorum)
	}
	if q.rng(1000) < q.loss {
		return
	}
	if done > q.una {
		q.una, q.idleTicks, q.retries = done, 0, 0
		q.nxt = max(q.nxt, done)
	}
	if f.Syndrome == rocev2.SyndromeNAKSequence && i == q.una {
		q.nxt, q.idleTicks = i, 0
	}
	if f.Syndrome.Kind() == rocev2.KindFatal {
		q.failed = true
		if left := q.in(); left > q.quorum && f.Syndrome != rocev2.SyndromeNAKOpErr {
			q.tb.Fatalf("fatal NAK %#x with %d receivers, the quorum is %d", f.Syndrome, left, q.quorum)
		}
	}
}

// TestQuorumDoesNotAllocate: quorumAcked sorts in place, and allocates nothing.
func TestQuorumDoesNotAllocate(t *testing.T) {
	const n = 9
	s := New(Limits{})
	spec := GroupSpec{IP: groupIP, GroupParams: GroupParams{QPN: groupQPN, PathMTU: 256, Policy: Quorum, Quorum: 4, LagPSNs: 1 << 20}}
	var acks []Packet
	for i := range n + 1 {
		ip := netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})
		spec.Legs = append(spec.Legs, LegSpec{})
		spec.Members = append(spec.Members, MemberSpec{MemberRecord: MemberRecord{IP: ip, QPN: 0x100}, Leg: LegID(i)})
		acks = append(acks, Packet{Group: groupIP, Src: ip, DestQP: groupQPN, Op: rocev2.Acknowledge, Syndrome: rocev2.SyndromeACK, Verified: true})
	}
	out := Output{Copies: make([]Copy, 0, n), Feedback: make([]Feedback, 0, 4), Events: make([]Event, 0, 4)}
	if err := s.Apply(0, PutGroup{spec}, &out); err != nil {
		t.Fatal(err)
	}
	data := Packet{Group: groupIP, Src: spec.Members[0].IP, DestQP: groupQPN, Op: rocev2.SendOnly, Payload: 8, AckReq: true, Verified: true}
	acked := 0
	if got := testing.AllocsPerRun(500, func() {
		s.Input(0, &data, &out)
		for i := n; i > 0; i-- { // an order other than that of the legs
			a := &acks[1+(i*4)%n]
			a.PSN = data.PSN
			s.Input(0, a, &out)
			acked += len(out.Feedback)
		}
		data.PSN = data.PSN.Next()
	}); got != 0 {
		t.Errorf("a packet and its ACKs allocate %v times", got)
	}
	if acked != 501 {
		t.Errorf("%d ACKs for 501 messages", acked)
	}
}
