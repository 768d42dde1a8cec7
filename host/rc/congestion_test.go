// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gleam-rdma/gleam/host/rc/dcqcn"
	"github.com/gleam-rdma/gleam/rocev2"
)

// wireLen is what a 1024-byte MIDDLE counts for the rate with FrameOverhead 42.
const wireLen = 42 + 12 + 1024 + 4

func pacedConfig() Config {
	c := goodConfig()
	c.Timeout, c.FrameOverhead, c.MaxUnacked = time.Hour, 42, 1<<20
	return c
}

// sendFor runs a sender with more to send than it can for d, as a driver does,
// and returns the packets sent. at is called before each.
func sendFor(t *testing.T, q *QP, from, d time.Duration) (sent int, at time.Duration) {
	t.Helper()
	var out Output
	for now := from; ; {
		n := q.Transmit(now, &out, 7)
		out.Reset()
		sent += n
		if n == 7 {
			continue
		}
		next, ok := q.NextDeadline()
		if !ok || next <= now {
			t.Fatalf("at %v, held back: NextDeadline gives %v %v", now, next, ok)
		}
		if next > from+d {
			return sent, now
		}
		now = next
		q.Advance(now, &out)
	}
}

// TestMaxRate: requests keep to the rate within 1 %, retransmissions included, and
// NextDeadline says when the next may go.
func TestMaxRate(t *testing.T) {
	for _, rate := range []int64{1e6, 10e6, 100e6, 1e9} {
		c := pacedConfig()
		c.MaxRate = rate
		q := mustNew(t, c)
		if err := q.PostSend(WR{Data: make([]byte, 200<<20)}); err != nil {
			t.Fatal(err)
		}
		var out Output
		for phase, now := 0, time.Duration(0); phase < 2; phase++ {
			sent, _ := sendFor(t, q, now, time.Second)
			if got := float64(sent) * wireLen * 8; math.Abs(got-float64(rate)) > float64(rate)/100+2*wireLen*8 {
				t.Errorf("phase %d: %.0f bits in a second at %d bits/s", phase, got, rate)
			}
			now += time.Second
			// The second time over all of it is sent again.
			q.Input(now, &Packet{Op: rocev2.Acknowledge, DestQP: c.LocalQPN, Syndrome: rocev2.SyndromeNAKSequence}, &out)
			if again := q.Stats().Retransmitted; phase == 1 && again == 0 {
				t.Error("nothing was sent again")
			}
		}
		if got := q.Rate(3 * time.Second); got != rate {
			t.Errorf("Rate %d, want %d", got, rate)
		}
	}
}

// TestWindowIsNoDeadline: a sender that waits for an ACK, not for its pacer, has
// no deadline of the pacer's.
func TestWindowIsNoDeadline(t *testing.T) {
	c := pacedConfig()
	c.MaxRate, c.MaxUnacked, c.Timeout = 1e9, 4, 0
	q := mustNew(t, c)
	if err := q.PostSend(WR{Data: make([]byte, 1<<20)}); err != nil {
		t.Fatal(err)
	}
	var out Output
	q.Transmit(0, &out, 1) // a new pacer has credit for one
	if at, ok := q.NextDeadline(); ok {
		t.Errorf("deadline at %v before the pacer was in the way", at)
	}
	if n := q.Transmit(0, &out, 64); n != 0 {
		t.Fatalf("%d packets without credit", n)
	}
	if at, ok := q.NextDeadline(); !ok || at != wireLen*8 { // at 1 Gbit/s
		t.Errorf("deadline %v %v", at, ok)
	}
	if n := q.Transmit(time.Second, &out, 64); n != 3 {
		t.Errorf("%d packets: want the rest of the window", n)
	}
	if at, ok := q.NextDeadline(); ok {
		t.Errorf("deadline at %v with the window shut", at)
	}
	q.Fail(&out)
	if _, ok := q.NextDeadline(); ok {
		t.Error("a deadline in the error state")
	}
}

// TestSlowSenderAsksForAcks: at a rate at which AckReqEvery packets take longer
// than the timeout, ACKs are asked for more often, and nothing times out.
func TestSlowSenderAsksForAcks(t *testing.T) {
	for _, p := range personalities {
		b := newBed(t, plan{
			personality: [2]Personality{p, p}, pmtu: 256, window: 128, seed: 1,
			ops: []WROp{WRWrite, WRWrite, WRWrite}, sizes: []int{slotSize, slotSize, slotSize},
			unsignaled: make([]bool, 3), recvDelay: make([]int, 3),
			congestion: &dcqcn.Config{LineRate: 1e6}, // 2.4 ms a packet; the timeout is 2 ms
		})
		b.run()
		if s := b.qp[0].Stats(); s.Timeouts != 0 || s.Retransmitted != 0 || s.PacketsSent != 96 || b.now < 200*time.Millisecond {
			t.Errorf("%v: at %v %+v", p, b.now, s)
		}
	}
}

// TestCNPForCE: a request with CE is answered with a CNP, at most one in each
// interval, duplicates and packets out of order included; ACKs never are.
func TestCNPForCE(t *testing.T) {
	c := goodConfig()
	c.Congestion = &dcqcn.Config{LineRate: 1e9}
	for _, p := range personalities {
		c.Personality = p
		q := mustNew(t, c)
		var out Output
		at := func(us int, k Packet) []Packet {
			out.Reset()
			k.DestQP = c.LocalQPN
			q.Input(time.Duration(us)*time.Microsecond, &k, &out)
			return out.Packets
		}
		want := Packet{Op: rocev2.CNP, DestQP: c.DestQPN, BECN: true, Payload: make([]byte, 16)}
		write := Packet{Op: rocev2.WriteOnly, AckReq: true, CE: true}
		if got := at(0, write); len(got) != 2 || !reflect.DeepEqual(got[0], want) || got[1].Op != rocev2.Acknowledge {
			t.Errorf("first: %+v", got)
		}
		for _, k := range []struct {
			us   int
			psn  rocev2.PSN
			ce   bool
			cnps int
		}{{10, 1, true, 0}, {49, 2, true, 0}, {50, 3, true, 1}, {200, 4, false, 0}, {201, 4, true, 1 /* a duplicate */}, {300, 9, true, 1 /* a gap */}} {
			write.PSN, write.CE = k.psn, k.ce
			cnps := 0
			for _, got := range at(k.us, write) {
				if got.Op == rocev2.CNP {
					cnps++
				}
			}
			if cnps != k.cnps {
				t.Errorf("at %d µs, PSN %d: %d CNPs, want %d", k.us, k.psn, cnps, k.cnps)
			}
		}
		if got := at(1000, Packet{Op: rocev2.Acknowledge, CE: true}); len(got) != 0 {
			t.Errorf("an ACK with CE: %+v", got)
		}
		if s := q.Stats(); s.CEReceived != 6 || s.CNPsSent != 4 {
			t.Errorf("%+v", s)
		}
	}
}

// TestSlowsDown: CNPs and ACKs with BECN cut the rate that Transmit keeps to; other
// ACKs, and CNPs for another queue pair, do not.
func TestSlowsDown(t *testing.T) {
	c := pacedConfig()
	c.Congestion = &dcqcn.Config{LineRate: 1e9}
	q := mustNew(t, c)
	if err := q.PostSend(WR{Data: make([]byte, 1<<30)}); err != nil {
		t.Fatal(err)
	}
	var out Output
	now := time.Second
	send := func() (bits float64) {
		sent, _ := sendFor(t, q, now, 500*time.Microsecond)
		return float64(sent) * wireLen * 8 / 500e-6
	}
	send() // with what it may send because it was idle
	now += 500 * time.Microsecond
	for _, k := range []struct {
		p    Packet
		want int64
	}{
		{Packet{Op: rocev2.Acknowledge, DestQP: c.LocalQPN, Syndrome: rocev2.SyndromeACK}, 1e9},
		{Packet{Op: rocev2.CNP, DestQP: c.LocalQPN + 1, BECN: true}, 1e9},
		{Packet{Op: rocev2.CNP, DestQP: c.LocalQPN, BECN: true}, 500e6},
		{Packet{Op: rocev2.CNP, DestQP: c.LocalQPN, BECN: true}, 500e6}, // the same congestion
		{Packet{Op: rocev2.Acknowledge, DestQP: c.LocalQPN, Syndrome: rocev2.SyndromeACK, BECN: true}, 500e6},
	} {
		q.Input(now, &k.p, &out)
		if got := q.Rate(now); got != k.want {
			t.Errorf("%v: rate %d, want %d", k.p.Op, got, k.want)
		}
	}
	if got := send(); got < 450e6 || got > 550e6 {
		t.Errorf("sent at %.0f bits/s: want 500e6", got)
	}
	now += 2 * time.Millisecond // the rate has risen to 7/8 of the line rate
	q.Input(now, &Packet{Op: rocev2.Acknowledge, DestQP: c.LocalQPN, Syndrome: rocev2.SyndromeACK, BECN: true}, &out)
	if got := q.Rate(now); got != 437_500_000 {
		t.Errorf("after an ACK with BECN the rate is %d", got)
	}
	if s := q.Stats(); s.CNPs != 2 || s.BECNs != 2 {
		t.Errorf("%+v", s)
	}
}

// TestCongestionOff: without Config.Congestion CE, CNPs and BECN are counted and
// nothing else, whether or not there is a MaxRate.
func TestCongestionOff(t *testing.T) {
	for _, rate := range []int64{0, 1e9} {
		c := goodConfig()
		c.MaxRate = rate
		q := mustNew(t, c)
		var out Output
		q.Input(0, &Packet{Op: rocev2.WriteOnly, DestQP: c.LocalQPN, CE: true}, &out)
		q.Input(0, &Packet{Op: rocev2.CNP, DestQP: c.LocalQPN, BECN: true}, &out)
		q.Input(0, &Packet{Op: rocev2.Acknowledge, DestQP: c.LocalQPN, BECN: true}, &out)
		if s := q.Stats(); len(out.Packets) > 0 || s.CEReceived != 1 || s.CNPs != 1 || s.BECNs != 1 || s.CNPsSent != 0 || q.Rate(0) != rate {
			t.Errorf("sent %+v, rate %d, %+v", out.Packets, q.Rate(0), s)
		}
	}
}

// TestMaxRateBoundsLineRate: with both, the lower one holds, whatever else was
// configured for the higher.
func TestMaxRateBoundsLineRate(t *testing.T) {
	for _, k := range []struct{ line, cap, want int64 }{{1e9, 100e6, 100e6}, {100e6, 1e9, 100e6}, {0, 50e6, 50e6}} {
		c := goodConfig()
		d := dcqcn.Config{LineRate: k.line, MinRate: min(k.line, 70e6), AI: k.line / 2, HAI: k.line}
		before := d
		c.Congestion, c.MaxRate = &d, k.cap
		q := mustNew(t, c)
		if got := q.Rate(0); got != k.want || d != before {
			t.Errorf("%+v: rate %d; the caller's %+v", k, got, d)
		}
		if got := q.Config().Congestion; got == &d || got.LineRate != k.want || got.MinRate > k.want || got.AI > k.want {
			t.Errorf("completed to %+v", got)
		}
	}
}

// TestCongestedTransfer: whatever is lost, repeated, reordered and marked,
// everything arrives as without congestion control, if more slowly.
func TestCongestedTransfer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		p.faults.mark = rapid.Float64Range(0, 0.5).Draw(t, "mark")
		p.congestion = &dcqcn.Config{LineRate: rapid.SampledFrom([]int64{1e6, 20e6, 1e9, 10e9}).Draw(t, "line")}
		newBed(t, p).run()
	})
	p := plan{pmtu: 256, window: 128, seed: 3, congestion: &dcqcn.Config{LineRate: 100e6}, faults: faults{mark: 0.2}}
	for range 20 {
		p.ops, p.sizes = append(p.ops, WRWrite), append(p.sizes, slotSize)
		p.unsignaled, p.recvDelay = append(p.unsignaled, false), append(p.recvDelay, 0)
	}
	b := newBed(t, p)
	b.run()
	s, r := b.qp[0].Stats(), b.qp[1].Stats()
	if r.CNPsSent == 0 || s.CNPs != r.CNPsSent || r.CEReceived < r.CNPsSent || b.qp[0].Rate(b.now) >= 90e6 {
		t.Errorf("rate %d\nsender %+v\nreceiver %+v", b.qp[0].Rate(b.now), s, r)
	}
}

// TestPacingChangesNoPacket: what is sent at all, and in what order, does not
// depend on congestion control, as long as nothing takes long.
func TestPacingChangesNoPacket(t *testing.T) {
	send := func(c Config) string {
		q := mustNew(t, c)
		if err := q.PostSend(WR{Op: WRWriteImm, Data: bytes.Repeat([]byte{7}, 100_000), VA: 5, RKey: 6, Imm: 7, Signaled: true}); err != nil {
			t.Fatal(err)
		}
		var out Output
		var all []string
		for now := time.Second; len(all) < 98; now += time.Microsecond {
			q.Transmit(now, &out, 10)
			for _, p := range out.Packets {
				p.Payload = p.Payload[:len(p.Payload)>>9] // enough to tell lengths by
				all = append(all, fmt.Sprintf("%+v", p))
			}
			out.Reset()
		}
		return fmt.Sprint(all)
	}
	c := goodConfig()
	c.Timeout = time.Hour
	plain := send(c)
	c.Congestion = &dcqcn.Config{LineRate: 10e9}
	if got := send(c); got != plain {
		t.Errorf("without\n%s\nwith\n%s", plain, got)
	}
}

// TestPacedStateGoesOn: a paced QP restored in mid-transfer goes on like the
// original.
func TestPacedStateGoesOn(t *testing.T) {
	c := pacedConfig()
	c.Congestion = &dcqcn.Config{LineRate: 100e6}
	wr := WR{ID: 1, Data: make([]byte, 1<<20)}
	a, b := mustNew(t, c), mustNew(t, c)
	if err := a.PostSend(wr); err != nil {
		t.Fatal(err)
	}
	var oa, ob Output
	ce := Packet{Op: rocev2.WriteOnly, DestQP: c.LocalQPN, CE: true}
	a.Transmit(stateNow, &oa, 1000)
	a.Input(stateNow, &Packet{Op: rocev2.CNP, DestQP: c.LocalQPN}, &oa)
	a.Input(stateNow, &ce, &oa)
	enc := a.AppendState(nil, stateNow)
	for n := range enc {
		if _, err := mustNew(t, c).SetState(enc[:n], stateNow, statePosted); err == nil {
			t.Fatalf("SetState took %d bytes of %d", n, len(enc))
		}
	}
	if _, err := b.SetState(enc, stateNow, Posted{Send: func(uint64) WR { return wr }, Recv: statePosted.Recv}); err != nil {
		t.Fatal(err)
	}
	oa.Reset()
	ce.PSN = 1
	for now := stateNow; now < stateNow+30*time.Millisecond; now += 10 * time.Microsecond {
		a.Input(now, &ce, &oa)
		b.Input(now, &ce, &ob)
		a.Transmit(now, &oa, 64)
		b.Transmit(now, &ob, 64)
		at, okA := a.NextDeadline()
		bt, okB := b.NextDeadline()
		if at != bt || okA != okB || a.Rate(now) != b.Rate(now) {
			t.Fatalf("at %v: deadlines %v %v, rates %d %d", now, at, bt, a.Rate(now), b.Rate(now))
		}
	}
	if len(oa.Packets) < 100 || !reflect.DeepEqual(oa, ob) {
		t.Errorf("the original sent %d packets, the restored one %d", len(oa.Packets), len(ob.Packets))
	}
}

// TestPacedAllocatesNothing: neither pacing nor CNPs allocate.
func TestPacedAllocatesNothing(t *testing.T) {
	for _, p := range personalities {
		x := newPair(t, p, 1024, 300*1024)
		for _, q := range []**QP{&x.a, &x.b} {
			c := (*q).Config()
			c.Congestion = &dcqcn.Config{LineRate: 1e9}
			*q = mustNew(t, c)
		}
		var cnps int
		transfer := func() {
			if err := x.a.PostSend(WR{Op: WRWrite, Data: x.data, VA: 0x1000, RKey: x.rkey, Signaled: true}); err != nil {
				t.Fatal(err)
			}
			for x.a.sendQueued() > 0 {
				if x.a.Transmit(x.now, &x.out, 64) == 0 {
					at, ok := x.a.NextDeadline()
					if !ok {
						t.Fatal("no deadline")
					}
					x.now = at
				}
				for i := range x.out.Packets {
					x.out.Packets[i].CE = i%8 == 0
					x.b.Input(x.now, &x.out.Packets[i], &x.ack)
				}
				x.out.Reset()
				x.advance()
				for i := range x.ack.Packets {
					if x.ack.Packets[i].Op == rocev2.CNP {
						cnps++
					}
					x.a.Input(x.now, &x.ack.Packets[i], &x.out)
				}
				x.ack.Reset()
			}
			x.out.Reset()
		}
		transfer()
		if n := testing.AllocsPerRun(10, transfer); n != 0 {
			t.Errorf("%v: %v allocations for a message", p, n)
		}
		if cnps == 0 {
			t.Error("no CNP was sent")
		}
	}
}
