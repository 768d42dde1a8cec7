// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// replyHost is a go-back-N host: member 0 sends to all, member 1 replies to it, and so do
// the others in vain.
type replyHost struct {
	una, nxt, top, total int
	sq, rq               rocev2.PSN
	got                  int  // packets accepted, of the one stream that it gets
	nakSent              bool // true: it has sent a NAK since the last packet in order
}

// replyNet is a switch with hosts, whose links lose and duplicate packets.
type replyNet struct {
	t      *testing.T
	s      *Switch
	out    Output
	now    time.Duration
	rng    func(int) int
	loss   int // lost packets in 100
	hosts  []*replyHost
	up     [][]Packet // packets to the switch, by host
	down   [][]func()
	frames []int // sender, by Handle
}

const replyWindow = 8

func (n *replyNet) transmit(i int) {
	h := n.hosts[i]
	for ; h.nxt < min(h.total, h.una+replyWindow); h.nxt++ {
		n.frames = append(n.frames, i)
		n.up[i] = append(n.up[i], Packet{Group: groupIP, Src: ipOf(string(rune('A' + i))), DestQP: groupQPN, Op: rocev2.SendOnly, PSN: h.sq.Add(int32(h.nxt)), Payload: 10, AckReq: h.nxt%3 == 2 || h.nxt == h.total-1, Frame: Handle(len(n.frames) - 1), RetainBytes: 100})
		h.top = max(h.top, h.nxt+1)
	}
}

// receive serves a packet of a sender at host i.
func (n *replyNet) receive(i, sender int, psn rocev2.PSN, ask bool) {
	h := n.hosts[i]
	if sender >= 2 || (sender == 1) != (i == 0) {
		n.t.Fatalf("host %d gets a packet of host %d", i, sender)
	}
	answer := func(psn rocev2.PSN, s rocev2.Syndrome) {
		n.up[i] = append(n.up[i], Packet{Group: groupIP, Src: ipOf(string(rune('A' + i))), DestQP: groupQPN, Op: rocev2.Acknowledge, PSN: psn & rocev2.PSNMask, Syndrome: s, MSN: rocev2.MSN(h.got)})
	}
	switch d := psn.Sub(h.rq.Add(int32(h.got))); {
	case d == 0:
		h.got++
		h.nakSent = false
		if ask {
			answer(psn, rocev2.SyndromeACK)
		}
	case d < 0:
		answer(h.rq.Add(int32(h.got-1)), rocev2.SyndromeACK)
	case !h.nakSent:
		h.nakSent = true
		answer(h.rq.Add(int32(h.got)), rocev2.SyndromeNAKSequence)
	}
}

// answered serves an acknowledgement or a NAK of psn at host i, the requester. An ACK is correct only
// if every host that the acknowledged packets go to has received them.
func (n *replyNet) answered(i int, psn rocev2.PSN, s rocev2.Syndrome) {
	h := n.hosts[i]
	done := int(psn.Sub(h.sq))
	if done >= h.top {
		n.t.Fatalf("host %d got feedback for packet %d of %d", i, done, h.top)
	}
	if s == rocev2.SyndromeACK {
		done++
	}
	for j, r := range n.hosts {
		if (i == 0 && j > 0 || i == 1 && j == 0) && r.got < done {
			n.t.Fatalf("host %d was told %d packets are done, host %d has %d", i, done, j, r.got)
		}
	}
	if done > h.una {
		h.una, h.nxt = done, max(h.nxt, done)
	}
	if s == rocev2.SyndromeNAKSequence {
		h.nxt = h.una
	}
	n.transmit(i)
}

// input gives the first packet on the link of host i to the switch.
func (n *replyNet) input(i int) {
	p := n.up[i][0]
	n.up[i] = n.up[i][1:]
	n.s.Input(n.now, &p, &n.out)
	if n.out.NeedVerify {
		p.Verified = true
		n.s.Input(n.now, &p, &n.out)
	}
	n.output()
}

func (n *replyNet) output() {
	for _, c := range n.out.Copies {
		to, sender, psn := int(c.Leg), n.frames[c.Frame], c.PSN
		n.carry(to, func() { n.receive(to, sender, psn, true) })
	}
	for _, p := range n.out.Probes {
		if p.Leg == 0 {
			n.t.Fatal("the member that replies go to is probed")
		}
		h := n.hosts[p.Leg]
		n.up[p.Leg] = append(n.up[p.Leg], Packet{Group: groupIP, Src: ipOf(string(rune('A' + int(p.Leg)))), DestQP: groupQPN, Op: rocev2.Acknowledge, PSN: h.rq.Add(int32(h.got - 1)), Syndrome: rocev2.SyndromeACK, MSN: rocev2.MSN(h.got)})
	}
	for _, f := range n.out.Feedback {
		n.carry(int(f.To), func() { n.answered(int(f.To), f.PSN, f.Syndrome) })
	}
}

func (n *replyNet) carry(to int, do func()) {
	for range 1 + n.rng(100)/97 {
		if n.rng(100) >= n.loss {
			n.down[to] = append(n.down[to], do)
		}
	}
}

// step moves one packet on a link with one.
func (n *replyNet) step() bool {
	k := n.rng(2 * len(n.hosts))
	for range 2 * len(n.hosts) {
		k = (k + 1) % (2 * len(n.hosts))
		i := k / 2
		switch {
		case k%2 == 0 && len(n.up[i]) > 0:
			if n.rng(100) < n.loss {
				n.up[i] = n.up[i][1:]
			} else {
				n.input(i)
			}
			return true
		case k%2 == 1 && len(n.down[i]) > 0:
			do := n.down[i][0]
			n.down[i] = n.down[i][1:]
			do()
			return true
		}
	}
	return false
}

// A source and its leader exchange data in both directions over links that lose packets, and
// the others reply in vain: every stream ends, and nobody is told that a packet is done that
// those who were to get it do not have.
func TestR107_BothDirections(t *testing.T) {
	for seed := range uint64(120) {
		n := &replyNet{t: t, s: New(Limits{}), rng: random(seed), loss: int(seed % 4 * 7)}
		spec := GroupSpec{IP: groupIP, GroupParams: GroupParams{QPN: groupQPN, PathMTU: 1024}, PSNProbe: time.Millisecond}
		if seed%2 == 1 {
			spec.Repair = RepairSpec{Bytes: 2000, Timeout: time.Millisecond, Tries: 3}
		}
		members := 2 + n.rng(4)
		spec.RepliesTo = 0
		for i := range members {
			h := &replyHost{sq: rocev2.PSN(n.rng(rocev2.PSNMask + 1)), rq: rocev2.PSN(1 + n.rng(rocev2.PSNMask)), total: n.rng(60)}
			n.hosts = append(n.hosts, h)
			m := MemberSpec{MemberRecord: MemberRecord{IP: ipOf(string(rune('A' + i))), QPN: 0x100, SQPSN: h.sq, RQPSN: h.rq}, Leg: LegID(i)}
			if i == 1 {
				m.Reply = ReplyForwarded
			} else if i > 1 {
				m.Reply = ReplyDiscarded
			}
			spec.Members, spec.Legs = append(spec.Members, m), append(spec.Legs, LegSpec{Port: Port(i)})
		}
		n.up, n.down = make([][]Packet, members), make([][]func(), members)
		if err := n.s.Apply(0, PutGroup{spec}, &n.out); err != nil {
			t.Fatal(err)
		}
		idle := 0
		for done := false; !done; {
			if n.step() {
				continue
			}
			if idle++; idle > 2000 {
				t.Fatalf("seed %d: it does not end", seed)
			}
			n.now += time.Millisecond
			if at, ok := n.s.NextDeadline(); ok && at <= n.now {
				n.s.Advance(n.now, &n.out)
				n.output()
			}
			done = true
			for i, h := range n.hosts {
				if h.una < h.total {
					h.nxt, done = h.una, false
					n.transmit(i)
				}
			}
		}
		if g := n.s.groups[0]; g.is(failed) {
			t.Fatalf("seed %d: the group has failed", seed)
		}
		for i, h := range n.hosts {
			if want := n.hosts[map[bool]int{true: 1}[i == 0]].total; h.got != want {
				t.Fatalf("seed %d: host %d has %d packets, want %d", seed, i, h.got, want)
			}
		}
	}
}
