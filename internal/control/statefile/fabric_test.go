// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package statefile_test

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

const (
	virtualQPN   = mcast.DefaultQPN
	perMessage   = 3 // packets
	pmtu         = 256
	probeTimeout = time.Millisecond
)

var groupIP = netip.AddrFrom4([4]byte{10, 9, 9, 9})

// fabric is a switch, and hosts with queue pairs in one group. Packets arrive in order, and
// none is lost but where a test says so.
type fabric struct {
	t        *testing.T
	now      time.Duration
	sw       *mcast.Switch
	spec     mcast.GroupSpec
	hosts    []*member
	toSwitch []fromMember
	toHosts  []toMember
	events   []mcast.Event
	random   *rand.Rand
	loss     float64
	inFile   *mcast.Positions // durable
	due      *mcast.Positions // being written
	number   uint32           // the number of due
}

type member struct {
	qp        *rc.QP
	ip        netip.Addr
	send      rocev2.PSN // the PSN of its next message
	received  int        // messages
	completed int        // own messages
	failed    bool
}

type fromMember struct {
	host int
	p    rc.Packet
}

type toMember struct {
	host int
	p    rc.Packet
}

func newFabric(t *testing.T, personality rc.Personality, probe time.Duration, seed uint64) *fabric {
	return newFabricOf(t, rc.Config{Personality: personality, Timeout: 10 * time.Millisecond, RetryCnt: 6}, probe, seed)
}

// newFabricOf makes the queue pairs with the personality and the retries of cfg.
func newFabricOf(t *testing.T, cfg rc.Config, probe time.Duration, seed uint64) *fabric {
	f := &fabric{t: t, random: rand.New(rand.NewPCG(seed, 0)), spec: mcast.GroupSpec{IP: groupIP, GroupParams: mcast.GroupParams{QPN: virtualQPN, PathMTU: pmtu, DeadAfter: 0}, PSNProbe: probe}}
	for i := range 3 {
		h := &member{ip: netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})}
		sq, rq := rocev2.PSN(1000*(i+1)), rocev2.PSN(5000+10*i)
		var err error
		h.qp, err = rc.New(rc.Config{Personality: cfg.Personality, PMTU: pmtu, LocalQPN: rocev2.QPN(0x20 + i), DestQPN: virtualQPN, SQPSN: sq, RQPSN: rq,
			Timeout: cfg.Timeout, RetryCnt: cfg.RetryCnt, RNRRetry: rc.Infinite, MaxUnacked: 16})
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			if err := h.qp.PostRecv(rc.RecvWR{Buf: make([]byte, perMessage*pmtu)}); err != nil {
				t.Fatal(err)
			}
		}
		h.send = sq
		f.hosts = append(f.hosts, h)
		f.spec.Legs = append(f.spec.Legs, mcast.LegSpec{Port: mcast.Port(i)})
		f.spec.Members = append(f.spec.Members, mcast.MemberSpec{MemberRecord: mcast.MemberRecord{IP: h.ip, QPN: rocev2.QPN(0x20 + i), SQPSN: sq, RQPSN: rq}, Leg: mcast.LegID(i)})
	}
	f.start(f.spec)
	return f
}

// start replaces the switch by a new one with the group of spec: it has restarted.
func (f *fabric) start(spec mcast.GroupSpec) {
	f.sw, f.events = mcast.New(mcast.Limits{}), nil
	var out mcast.Output
	if err := f.sw.Apply(f.now, mcast.PutGroup{Spec: spec}, &out); err != nil {
		f.t.Fatal(err)
	}
	f.send(&out, nil)
}

// post lets host i send messages.
func (f *fabric) post(i, messages int) {
	h := f.hosts[i]
	for range messages {
		if err := h.qp.PostSend(rc.WR{Data: make([]byte, perMessage*pmtu), Signaled: true}); err != nil {
			f.t.Fatal(err)
		}
		h.send = h.send.Add(perMessage)
	}
}

// run does steps things in an order by chance: hosts send, packets arrive. When there is
// nothing to do, time goes on, until end.
func (f *fabric) run(end time.Duration, steps int) {
	for ; steps > 0; steps-- {
		done := false
		for first, k := f.random.IntN(3), 0; k < 3 && !done; k++ {
			switch (first + k) % 3 {
			case 0:
				done = f.transmit()
			case 1:
				if done = len(f.toHosts) > 0; done {
					d := f.toHosts[0]
					f.toHosts = f.toHosts[1:]
					f.deliver(d)
				}
			case 2:
				if done = len(f.toSwitch) > 0; done {
					d := f.toSwitch[0]
					f.toSwitch = f.toSwitch[1:]
					f.input(d)
				}
			}
		}
		if !done && !f.advance(end) {
			return
		}
	}
}

func (f *fabric) transmit() bool {
	for i, h := range f.hosts {
		var out rc.Output
		if h.qp.Transmit(f.now, &out, 1) > 0 {
			f.take(i, &out)
			return true
		}
	}
	return false
}

func (f *fabric) advance(end time.Duration) bool {
	next, ok := f.sw.NextDeadline()
	for _, h := range f.hosts {
		if t, armed := h.qp.NextDeadline(); armed && (!ok || t < next) {
			next, ok = t, true
		}
	}
	if f.due != nil {
		next, ok = min(f.now+time.Millisecond, next), true
	}
	if !ok || next > end {
		return false
	}
	f.now = max(f.now, next)
	var out mcast.Output
	f.sw.Advance(f.now, &out)
	f.send(&out, nil)
	f.write()
	for i, h := range f.hosts {
		var out rc.Output
		h.qp.Advance(f.now, &out)
		f.take(i, &out)
	}
	return true
}

func (f *fabric) take(i int, out *rc.Output) {
	h := f.hosts[i]
	for _, p := range out.Packets {
		if f.random.Float64() < f.loss {
			continue
		}
		f.toSwitch = append(f.toSwitch, fromMember{i, p})
	}
	for _, c := range out.Completions {
		switch {
		case c.Status != rc.Success:
			h.failed = true
		case c.Op == rc.WCRecv:
			h.received++
		default:
			h.completed++
		}
	}
}

func (f *fabric) input(d fromMember) {
	p := mcast.Packet{
		Group: groupIP, Src: f.hosts[d.host].ip, Port: mcast.Port(d.host), Op: d.p.Op, AckReq: d.p.AckReq, Verified: true, DestQP: virtualQPN,
		PSN: d.p.PSN, Payload: uint16(len(d.p.Payload)), Syndrome: d.p.Syndrome, MSN: d.p.MSN,
	}
	var out mcast.Output
	f.sw.Input(f.now, &p, &out)
	f.send(&out, &d.p)
	f.write()
}

// write reads positions that are due, and makes those of before durable, at some time.
func (f *fabric) write() {
	if f.due != nil && f.random.IntN(10) == 0 {
		var out mcast.Output
		f.inFile = f.due
		f.due = nil
		f.sw.PositionsStored(f.now, 0, f.number, f.inFile, &out)
		f.send(&out, nil)
	}
	var o mcast.Outcomes
	if f.sw.Group(0).Outcomes(&o); f.due == nil && o.Positions > f.number {
		f.due = new(mcast.Positions)
		f.number, _ = f.sw.Group(0).Positions(f.due)
	}
}

func (f *fabric) send(out *mcast.Output, data *rc.Packet) {
	for _, p := range out.Probes {
		f.toHosts = append(f.toHosts, toMember{int(p.Leg), rc.Packet{Op: rocev2.WriteOnly, AckReq: true, DestQP: f.spec.Members[p.Leg].QPN, PSN: p.PSN}})
	}
	for _, c := range out.Copies {
		p := *data
		p.PSN, p.DestQP = c.PSN, f.spec.Members[c.Leg].QPN
		f.toHosts = append(f.toHosts, toMember{int(c.Leg), p})
	}
	for _, b := range out.Feedback {
		f.toHosts = append(f.toHosts, toMember{int(b.To), rc.Packet{Op: b.Op, PSN: b.PSN, Syndrome: b.Syndrome, MSN: b.MSN, DestQP: f.spec.Members[b.To].QPN}})
	}
	f.events = append(f.events, out.Events...)
}

// arrive lets everything arrive that is on its way to hosts, and loses the rest, as while a
// switch restarts.
func (f *fabric) arrive() {
	for len(f.toHosts) > 0 {
		d := f.toHosts[0]
		f.toHosts = f.toHosts[1:]
		f.deliver(d)
	}
	f.toSwitch = nil
}

func (f *fabric) deliver(d toMember) {
	if f.random.Float64() < f.loss {
		return
	}
	var out rc.Output
	f.hosts[d.host].qp.Input(f.now, &d.p, &out)
	f.take(d.host, &out)
}

// falseCompletion reports whether host 0 has a completion for a message that another host
// does not have. before are the messages that each host had received before.
func (f *fabric) falseCompletion(before []int) bool {
	for i, h := range f.hosts[1:] {
		if h.received-before[i+1] < f.hosts[0].completed {
			return true
		}
	}
	return false
}

func (f *fabric) received() (n []int) {
	for _, h := range f.hosts {
		n = append(n, h.received)
	}
	return n
}
