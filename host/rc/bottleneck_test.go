// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"bytes"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/host/rc/dcqcn"
)

// virtualPath is a sender that always has something to send, a queue that drains at a
// rate and marks what finds it above a threshold, and a receiver. The clock is its own.
type virtualPath struct {
	t         *testing.T
	qp        [2]*QP
	now       time.Duration
	rate      float64 // bit/s
	mark      int     // bytes
	queue     []Packet
	free      time.Duration // the link has sent what went before
	bytes     int
	delivered int // bytes
	longest   int
	out       Output
}

// follow serves the receiver with what the link has sent by now, and the sender with
// what comes back, to the end of d. It returns the share of the link that was used.
func (v *virtualPath) follow(d time.Duration) float64 {
	const tick = 50 * time.Microsecond
	v.delivered, v.longest = 0, 0
	for end := v.now + d; v.now < end; v.now += tick {
		for i, q := range v.qp {
			if at, ok := q.NextDeadline(); ok && at <= v.now {
				q.Advance(v.now, &v.out)
				v.carry(i)
			}
		}
		for n := 7; n == 7; {
			n = v.qp[0].Transmit(v.now, &v.out, 7)
			v.carry(0)
		}
		v.longest = max(v.longest, v.bytes)
		if len(v.queue) == 0 {
			v.free = max(v.free, v.now)
		}
		for len(v.queue) > 0 && v.free <= v.now {
			p := v.queue[0]
			v.queue, v.bytes = v.queue[1:], v.bytes-wireLen
			v.free += time.Duration(wireLen * 8 / v.rate * 1e9)
			v.delivered += wireLen
			v.qp[1].Input(v.now, &p, &v.out)
			v.carry(1)
		}
	}
	return float64(v.delivered) * 8 / (v.rate * d.Seconds())
}

// carry takes what a queue pair sends to the queue, or back to the sender.
func (v *virtualPath) carry(from int) {
	ps := append([]Packet(nil), v.out.Packets...)
	for i := range ps {
		ps[i].Payload = bytes.Clone(ps[i].Payload)
	}
	v.out.Reset()
	for _, p := range ps {
		if from == 0 {
			p.CE = v.bytes > v.mark
			v.queue, v.bytes = append(v.queue, p), v.bytes+wireLen
			continue
		}
		v.qp[0].Input(v.now, &p, &v.out)
		v.carry(0)
	}
}

// TestFollowsBottleneckInVirtualTime is host/endpoint/soft's TestFollowsBottleneck without
// a clock: the same rates one after the other, the same mark and window. The sender
// settles at each, with a bounded queue, and sends nothing twice.
func TestFollowsBottleneckInVirtualTime(t *testing.T) {
	mem := NewMemory(1)
	mr, err := mem.RegisterMR(make([]byte, 2<<20), iova, RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	v := &virtualPath{t: t, mark: 32 << 10}
	for i := range v.qp {
		c := pacedConfig()
		c.MaxUnacked, c.Memory, c.Congestion = 2048, mem, &dcqcn.Config{LineRate: 200e6}
		if i == 1 {
			c.LocalQPN, c.DestQPN = c.DestQPN, c.LocalQPN
		}
		v.qp[i] = mustNew(t, c)
	}
	data := make([]byte, 2<<20)
	for range 100 {
		if err := v.qp[0].PostSend(WR{Op: WRWrite, Data: data, VA: iova, RKey: mr.RKey}); err != nil {
			t.Fatal(err)
		}
	}
	for _, rate := range []float64{40e6, 10e6, 40e6, 150e6} {
		v.rate = rate
		v.follow(2 * time.Second)
		used := v.follow(2 * time.Second)
		t.Logf("%.0f Mbit/s: %.2f of it used, the queue came to %d bytes, rate %d", rate/1e6, used, v.longest, v.qp[0].Rate(v.now))
		if used < 0.7 || used > 1.01 || v.longest > 600<<10 {
			t.Errorf("%.0f Mbit/s: %.2f of it used, the queue came to %d bytes; want 0.7 to 1, 600 KiB", rate/1e6, used, v.longest)
		}
	}
	s, r := v.qp[0].Stats(), v.qp[1].Stats()
	if s.CNPs == 0 || s.CNPs > r.CNPsSent || r.CEReceived < r.CNPsSent || s.Retransmitted > 0 {
		t.Errorf("sender %+v\nreceiver %+v", s, r)
	}
}
