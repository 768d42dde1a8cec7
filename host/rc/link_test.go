// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"bytes"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"

	"pgregory.net/rapid"

	"github.com/gleam-rdma/gleam/host/rc/dcqcn"
	"github.com/gleam-rdma/gleam/rocev2"
)

// flight is a packet on its way, or (to < 0) the moment a receive is posted.
type flight struct {
	at  time.Duration
	seq int
	to  int
	p   Packet
}

type flights []flight

func (f flights) Len() int { return len(f) }
func (f flights) Less(i, j int) bool {
	return f[i].at < f[j].at || f[i].at == f[j].at && f[i].seq < f[j].seq
}
func (f flights) Swap(i, j int) { f[i], f[j] = f[j], f[i] }
func (f *flights) Push(x any)   { *f = append(*f, x.(flight)) }
func (f *flights) Pop() any {
	old := *f
	x := old[len(old)-1]
	*f = old[:len(old)-1]
	return x
}

// faults are the link's, each a probability per packet.
type faults struct{ lossData, lossAck, dup, reorder, mark float64 }

// bed is a sender (QP 0), a receiver (QP 1), a bad link between them and what
// they are to transfer.
type bed struct {
	t      rapid.TB
	rng    *rand.Rand
	faults faults
	qp     [2]*QP
	now    time.Duration
	last   [2]time.Duration // latest arrival, per direction
	queue  flights
	seq    int
	out    Output

	msgs     []transfer
	region   []byte // the receiver's memory region
	sent     []Completion
	received []Completion
	posted   int // receives posted so far

	// Legitimate exhaustion of a sender's retries.
	timeoutsAtAnswer, answers uint64
}

// transfer is one message and where it has to end up.
type transfer struct {
	wr      WR
	data    []byte // a copy: WR.Data is scribbled over on completion
	recv    int    // index of the receive it consumes; -1: none
	recvBuf []byte
}

const (
	linkDelay = 10 * time.Microsecond
	slotSize  = 8192 // room for one WRITE in the region
	iova      = 0x7f0000000000
)

// send puts what QP from wants sent on the link.
func (b *bed) send(from int) {
	for i := range b.out.Packets {
		p := b.out.Packets[i]
		p.Payload = bytes.Clone(p.Payload)
		loss := b.faults.lossData
		if from == 1 {
			loss = b.faults.lossAck
		}
		p.CE = b.faults.mark > 0 && b.rng.Float64() < b.faults.mark
		copies := 1
		if b.rng.Float64() < b.faults.dup {
			copies = 2
		}
		for range copies {
			if b.rng.Float64() < loss {
				continue
			}
			at := max(b.now+linkDelay, b.last[from])
			if b.rng.Float64() < b.faults.reorder {
				at += time.Duration(b.rng.IntN(5)) * linkDelay
			} else {
				b.last[from] = at
			}
			b.push(flight{at: at, to: 1 - from, p: p})
		}
	}
	for _, c := range b.out.Completions {
		b.completed(from, c)
	}
	b.out.Reset()
}

func (b *bed) push(f flight) {
	b.seq++
	f.seq = b.seq
	heap.Push(&b.queue, f)
}

// completed checks a completion at the moment it is made.
func (b *bed) completed(side int, c Completion) {
	if side == 1 {
		b.received = append(b.received, c)
		return
	}
	b.sent = append(b.sent, c)
	if c.Status != Success {
		return
	}
	// The one promise that matters: completed means delivered.
	m := &b.msgs[c.ID]
	if got := b.delivered(m); !bytes.Equal(got, m.data) {
		b.t.Fatalf("message %d (%v, %d bytes) completed at the sender but the receiver does not hold it", c.ID, m.wr.Op, len(m.data))
	}
	for i := range m.wr.Data {
		m.wr.Data[i] = 0xEE // the application may reuse it now
	}
}

// delivered returns the bytes where m should have ended up.
func (b *bed) delivered(m *transfer) []byte {
	if m.wr.Op == WRWrite || m.wr.Op == WRWriteImm {
		off := m.wr.VA - iova
		return b.region[off : off+uint64(len(m.data))]
	}
	return m.recvBuf[:len(m.data)]
}

// pump lets the sender send what it can, with a small budget at a time.
func (b *bed) pump() {
	for {
		n := b.qp[0].Transmit(b.now, &b.out, 7)
		b.send(0)
		if n < 7 {
			return
		}
	}
}

// step serves the next event; false: there is none.
func (b *bed) step() bool {
	next, side := time.Duration(-1), -1
	for i, q := range b.qp {
		if at, ok := q.NextDeadline(); ok && (next < 0 || at < next) {
			next, side = at, i
		}
	}
	if len(b.queue) > 0 && (next < 0 || b.queue[0].at <= next) {
		f := heap.Pop(&b.queue).(flight)
		b.now = f.at
		if f.to < 0 {
			b.postRecv()
			return true
		}
		b.qp[f.to].Input(b.now, &f.p, &b.out)
		b.send(f.to)
		b.watch()
		b.pump()
		return true
	}
	if side < 0 {
		return false
	}
	b.now = max(b.now, next)
	b.watch()
	b.qp[side].Advance(b.now, &b.out)
	b.send(side)
	b.pump()
	return true
}

// watch remembers how many timeouts passed since the sender last heard
// anything that counts.
func (b *bed) watch() {
	s := b.qp[0].Stats()
	if n := s.AcksReceived + s.NaksReceived + s.RNRsReceived; n != b.answers {
		b.answers, b.timeoutsAtAnswer = n, s.Timeouts
	}
}

func (b *bed) postRecv() {
	for _, m := range b.msgs {
		if m.recv == b.posted {
			if err := b.qp[1].PostRecv(RecvWR{ID: uint64(1000 + m.recv), Buf: m.recvBuf}); err != nil {
				b.t.Fatalf("post receive: %v", err)
			}
			b.posted++
			return
		}
	}
	b.t.Fatalf("no message needs receive %d", b.posted)
}

// plan is one drawn experiment.
type plan struct {
	personality [2]Personality
	base        rocev2.PSN
	pmtu        int
	window      int
	ops         []WROp
	sizes       []int
	unsignaled  []bool
	recvDelay   []int // delays after the one before, in units of 100 us; 0: at once
	faults      faults
	seed        uint64
	credits     bool
	congestion  *dcqcn.Config
}

func newBed(t rapid.TB, p plan) *bed {
	b := &bed{t: t, rng: rand.New(rand.NewPCG(p.seed, 1)), faults: p.faults}
	mem := NewMemory(p.seed)
	b.region = bytes.Repeat([]byte{0xCC}, (len(p.ops)+1)*slotSize)
	mr, err := mem.RegisterMR(b.region, iova, RemoteWrite)
	if err != nil {
		t.Fatalf("register: %v", err)
	}
	cfg := Config{
		PMTU: p.pmtu, Timeout: 2 * time.Millisecond, RetryCnt: 7, RNRRetry: Infinite, MinRNRTimer: 9,
		MaxUnacked: p.window, Credits: p.credits, Memory: mem, Congestion: p.congestion, FrameOverhead: 42,
	}
	for i := range b.qp {
		c := cfg
		c.Personality = p.personality[i]
		c.LocalQPN, c.DestQPN = rocev2.QPN(0x100+i), rocev2.QPN(0x101-i)
		c.SQPSN, c.RQPSN = p.base, p.base
		if i == 0 {
			c.RQPSN = 0x123456 // nobody sends to it
		} else {
			c.SQPSN = 0x123456
		}
		if b.qp[i], err = New(c); err != nil {
			t.Fatalf("new: %v", err)
		}
	}
	recvs, at := 0, time.Duration(0)
	for i, op := range p.ops {
		m := transfer{recv: -1, data: make([]byte, p.sizes[i])}
		for j := range m.data {
			m.data[j] = byte(b.rng.Uint32())
		}
		m.wr = WR{ID: uint64(i), Op: op, Data: bytes.Clone(m.data), Imm: uint32(i) * 7, Signaled: !p.unsignaled[i]}
		if op == WRWrite || op == WRWriteImm {
			m.wr.VA, m.wr.RKey = iova+uint64(i)*slotSize, mr.RKey
		} else {
			m.recvBuf = make([]byte, len(m.data)+i%2) // some fit exactly
		}
		if op == WRSendInv {
			spare, err := mem.RegisterMR(make([]byte, 1), 0, RemoteWrite)
			if err != nil {
				t.Fatalf("register: %v", err)
			}
			m.wr.RKey = spare.RKey
		}
		if op != WRWrite {
			m.recv = recvs
			recvs++
			at += time.Duration(p.recvDelay[i]) * 100 * time.Microsecond
			b.push(flight{at: at, to: -1})
		}
		b.msgs = append(b.msgs, m)
	}
	return b
}

// run transfers everything and checks all of it.
func (b *bed) run() {
	for i := range b.msgs {
		if err := b.qp[0].PostSend(b.msgs[i].wr); err != nil {
			b.t.Fatalf("post send: %v", err)
		}
	}
	for len(b.queue) > 0 && b.queue[0].at == 0 {
		heap.Pop(&b.queue)
		b.postRecv()
	}
	b.pump()
	for steps := 0; b.qp[0].sendQueued() > 0; steps++ {
		if steps > 2_000_000 {
			b.t.Fatalf("no end after %d events; sender %+v; receiver %+v", steps, b.qp[0].Stats(), b.qp[1].Stats())
		}
		if !b.step() {
			b.t.Fatalf("stuck with %d WRs; sender %+v; receiver %+v", b.qp[0].sendQueued(), b.qp[0].Stats(), b.qp[1].Stats())
		}
	}
	if b.qp[0].State() == Error && b.exhausted() {
		return
	}
	for b.step() { // late duplicates change nothing
	}
	b.verify()
}

// exhausted reports whether a sender other than rxe has failed as it has to: after
// RetryCnt+1 timeouts, or more with early ones, with no answer between.
func (b *bed) exhausted() bool {
	s := b.qp[0].Stats()
	return b.qp[0].Config().Personality != RXE && b.sent[len(b.sent)-1].Status != Success && s.Timeouts-b.timeoutsAtAnswer >= 8
}

func (b *bed) verify() {
	for i, q := range b.qp {
		if q.State() != RTS {
			b.t.Fatalf("QP %d is in %v; completions %+v %+v", i, q.State(), b.sent, b.received)
		}
	}
	var wantSent, wantReceived []Completion
	region := bytes.Repeat([]byte{0xCC}, len(b.region))
	for i, m := range b.msgs {
		op := WCSend
		if m.wr.Op == WRWrite || m.wr.Op == WRWriteImm {
			op = WCRDMAWrite
			copy(region[i*slotSize:], m.data)
		} else if !bytes.Equal(m.recvBuf[:len(m.data)], m.data) {
			b.t.Fatalf("message %d arrived damaged", i)
		}
		if m.wr.Signaled {
			wantSent = append(wantSent, Completion{ID: m.wr.ID, Op: op, Bytes: len(m.data)})
		}
		if m.recv < 0 {
			continue
		}
		c := Completion{ID: uint64(1000 + m.recv), Op: WCRecv, Bytes: len(m.data)}
		switch m.wr.Op {
		case WRWriteImm:
			c.Op = WCRecvRDMAWithImm
			c.Imm, c.HasImm = m.wr.Imm, true
		case WRSendImm:
			c.Imm, c.HasImm = m.wr.Imm, true
		case WRSendInv:
			c.InvKey, c.HasInv = m.wr.RKey, true
		}
		wantReceived = append(wantReceived, c)
	}
	if got, want := fmt.Sprint(b.sent), fmt.Sprint(wantSent); got != want {
		b.t.Fatalf("sender completions\n got %s\nwant %s", got, want)
	}
	if got, want := fmt.Sprint(b.received), fmt.Sprint(wantReceived); got != want {
		b.t.Fatalf("receiver completions\n got %s\nwant %s", got, want)
	}
	if !bytes.Equal(b.region, region) {
		b.t.Fatalf("the receiver's memory differs from what was written")
	}
	r := b.qp[1].Stats()
	if r.Messages != uint64(len(b.msgs)) || b.qp[1].ExpectedPSN() != b.qp[0].nextSendPSN() {
		b.t.Fatalf("receiver has %d messages of %d, expects PSN %#x, sender is at %#x", r.Messages, len(b.msgs), b.qp[1].ExpectedPSN(), b.qp[0].nextSendPSN())
	}
}

// sendQueued returns the number of WRs posted and not yet completed.
func (q *QP) sendQueued() int { return q.requester.sendQueue.count }

// recvQueued returns the number of RecvWRs posted and not yet completed.
func (q *QP) recvQueued() int { return q.responder.recvQueue.count }

// nextSendPSN returns the PSN that the next WR posted will start at.
func (q *QP) nextSendPSN() rocev2.PSN { return q.requester.psn(q.requester.nextPost) }
