// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package soft

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/rc/dcqcn"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// flood keeps WRITEs outstanding until the test ends.
func (p *pair) flood(t *testing.T) {
	t.Helper()
	const message = 64 << 10
	ctx, cancel := context.WithCancel(p.ctx)
	done := make(chan error, 1)
	go func() {
		posted := 0
		cs := make([]endpoint.Completion, 32)
		for {
			for ; posted < 32; posted++ {
				if _, err := p.qp[0].PostSend(endpoint.SendWR{
					Op: endpoint.Write, Local: endpoint.Segment{MR: p.send, Len: message}, RemoteAddr: p.recv.Addr(), RKey: p.recv.RKey(),
				}); err != nil {
					done <- err
					return
				}
			}
			n, err := p.qp[0].Poll(ctx, cs)
			for i := 0; i < n && err == nil; i++ {
				err = cs[i].Err()
			}
			if err != nil {
				done <- err
				return
			}
			posted -= n
		}
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the sender stopped: %v", err)
		}
	})
}

// window measures for d: the share of rate that passed the bottleneck, and the greatest
// length of its queue.
func (b *bottleneck) window(d time.Duration, rate float64) (used float64, peak int64) {
	b.peak.Store(0)
	from, at := b.bytes.Load(), time.Now()
	time.Sleep(d)
	return float64(b.bytes.Load()-from) * 8 / rate / time.Since(at).Seconds(), b.peak.Load()
}

// settle waits until the bottleneck, set to rate, is used and its queue bounded
// for half a second, and the sender's rate is near it.
func (p *pair) settle(t *testing.T, b *bottleneck, rate int64, bound int64) {
	t.Helper()
	b.rate.Store(rate)
	changed, machine := time.Now(), labtest.Watch()
	for {
		used, peak := b.window(500*time.Millisecond, float64(rate))
		own := p.qp[0].Stats().Rate
		took := time.Since(changed)
		if used > 0.6 && used < 1.1 && peak <= bound && own < 2*rate {
			t.Logf("bottleneck of %d Mbit/s: after %v it is used to %.2f, the queue came to %d KB, the sender's rate is %.1f Mbit/s",
				rate/1e6, took.Round(time.Millisecond), used, peak>>10, float64(own)/1e6)
			return
		}
		if took > 10*time.Second {
			machine.Timing(t, "bottleneck of %d bits/s: after %v it is used to %.2f, the queue came to %d bytes (want at most %d), the sender's rate is %d",
				rate, took, used, peak, bound, own)
		}
	}
}

// TestFollowsBottleneck uses real frames and a real queue with ECN marks. The sender
// converges to the bottleneck's rate and follows it down and up; the queue stays far
// below the length that the send window allows.
func TestFollowsBottleneck(t *testing.T) {
	for name, v6 := range map[string]bool{"ipv4": false, "ipv6": true} {
		t.Run(name, func(t *testing.T) {
			b := &bottleneck{}
			b.mark.Store(32 << 10)
			p := newPair(t, pairConfig{
				pathMTU: 1024, memory: 64 << 10, middle: b, v6: v6, qp: endpoint.QPConfig{Timeout: 19},
				device: Config{MaxUnacked: 2048, Congestion: &dcqcn.Config{LineRate: 200e6}},
			})
			if got := p.qp[0].Stats().Rate; got != 200e6 {
				t.Errorf("rate %d before anything was sent", got)
			}
			b.rate.Store(40e6)
			p.flood(t)
			const bound = 600 << 10 // the most of a send window's 2.2 MB
			p.settle(t, b, 40e6, bound)
			p.settle(t, b, 10e6, bound)
			p.settle(t, b, 40e6, bound)
			p.settle(t, b, 150e6, bound)
			s, r := p.qp[0].Stats(), p.qp[1].Stats()
			if s.CNPsReceived == 0 || s.CNPsReceived > r.CNPsSent || r.CEReceived < r.CNPsSent || s.Retransmitted > 0 || b.lost.Load() > 0 {
				t.Errorf("lost %d\nsender   %+v\nreceiver %+v", b.lost.Load(), s, r)
			}
			if d, e := p.dev[0].Stats(), p.dev[1].Stats(); d.CNPsReceived < s.CNPsReceived || e.CNPsSent < r.CNPsSent || e.CEReceived < r.CEReceived {
				t.Errorf("devices: %+v %+v", d, e)
			}
		})
	}
}

// TestFillsWindowWithoutCongestionControl shows that congestion control bounds the queue
// of TestFollowsBottleneck: without it, the queue holds a send window.
func TestFillsWindowWithoutCongestionControl(t *testing.T) {
	b := &bottleneck{}
	b.rate.Store(40e6)
	p := newPair(t, pairConfig{
		pathMTU: 1024, memory: 64 << 10, middle: b, qp: endpoint.QPConfig{Timeout: 19}, device: Config{MaxUnacked: 2048},
	})
	p.flood(t)
	for end := time.Now().Add(10 * time.Second); b.peak.Load() < 2<<20; {
		if time.Now().After(end) {
			t.Fatalf("the queue came to %d bytes only", b.peak.Load())
		}
		time.Sleep(time.Millisecond)
	}
	if s, r := p.qp[0].Stats(), p.qp[1].Stats(); s.Rate != 0 || s.CNPsReceived+r.CNPsSent+r.CEReceived != 0 {
		t.Errorf("sender %+v receiver %+v", s, r)
	}
}

// TestRateCap checks that a queue pair keeps to Config.Rate, within 5 % over a second.
func TestRateCap(t *testing.T) {
	for _, rate := range []int64{10e6, 100e6} {
		b := &bottleneck{}
		p := newPair(t, pairConfig{pathMTU: 1024, memory: 64 << 10, middle: b, qp: endpoint.QPConfig{Timeout: 20}, device: Config{Rate: rate}})
		p.flood(t)
		b.window(50*time.Millisecond, 1) // the first burst
		var used float64
		machine := labtest.Watch()
		for try := 0; try < 5; try++ { // other programs use this machine's processors too
			if used, _ = b.window(time.Second, float64(rate)); math.Abs(used-1) < 0.05 {
				break
			}
		}
		switch {
		case used >= 1.05:
			t.Errorf("%d bits/s: sent %.3f of it", rate, used)
		case used <= 0.95:
			machine.Timing(t, "%d bits/s: sent %.3f of it", rate, used)
		}
		if s := p.qp[0].Stats(); s.Rate != rate || s.Retransmitted != 0 {
			t.Errorf("%+v", s)
		}
	}
}

// TestC1_CNPOnTheWire checks that the CNP for a marked packet is that of the conformance
// vector (RC.md §1.4) with the test's addresses and a right ICRC; that data is ECT(0),
// and responses and CNPs are not ECN-capable.
func TestC1_CNPOnTheWire(t *testing.T) {
	for name, v6 := range map[string]bool{"ipv4": false, "ipv6": true} {
		t.Run(name, func(t *testing.T) {
			b := &bottleneck{keep: true}
			b.mark.Store(-1)
			p := newPair(t, pairConfig{
				pathMTU: 1024, memory: 8 << 10, middle: b, v6: v6, qp: endpoint.QPConfig{TrafficClass: 0x2B}, // DSCP 10, CE
				device: Config{Congestion: &dcqcn.Config{}},
			})
			p.transfer(t, []int{5000})
			cnps := b.taken(1, rocev2.CNP)
			if len(cnps) == 0 {
				t.Fatal("no CNP")
			}
			var f rocev2.Frame
			for _, got := range cnps {
				if r := rocev2.Decode(got, &f); r != rocev2.OK || !f.VerifyICRC() {
					t.Fatalf("%v, ICRC %v: %x", r, f.VerifyICRC(), got)
				}
				q := p.qp[1].(*qp)
				path := q.path
				path.TOS = 48 << 2
				if !v6 {
					path.ID = binary.BigEndian.Uint16(f.IPv4()[4:])
				}
				want := make([]byte, 128)
				if want = want[:rocev2.BuildCNP(want, &path, p.qp[0].Info().QPN)]; !bytes.Equal(got, want) {
					t.Errorf("CNP\n%x\nwant\n%x", got, want)
				}
				// From BTH on it equals the vector, but for the QPN.
				bth := []byte{0x81, 0x00, 0xff, 0xff, 0x40, 0, 0, 0, 0, 0, 0, 0}
				bth[5], bth[6], bth[7] = byte(f.BTH().DestQP()>>16), byte(f.BTH().DestQP()>>8), byte(f.BTH().DestQP())
				if tail := got[len(got)-32:]; !bytes.Equal(tail[:12], bth) || !bytes.Equal(tail[12:28], make([]byte, 16)) {
					t.Errorf("BTH and payload %x, want %x and zeros", tail[:28], bth)
				}
			}
			classes := func(from int, op rocev2.Opcode, want uint8) {
				frames := b.taken(from, op)
				if len(frames) == 0 {
					t.Errorf("no frame of opcode %#x", uint8(op))
				}
				for _, got := range frames {
					rocev2.Decode(got, &f)
					tc := f.ECN() | rocev2.ECN(got[15]&^3) // IPv4: TOS
					if v6 {
						tc = rocev2.ECN(f.IPv6().TrafficClass())
					}
					if uint8(tc) != want {
						t.Errorf("opcode %#x has traffic class %#x, want %#x", uint8(op), uint8(tc), want)
					}
				}
			}
			classes(0, rocev2.SendFirst, 0x2A)
			classes(0, rocev2.WriteMiddle, 0x2A)
			classes(1, rocev2.Acknowledge, 0x28)
			s, r := p.qp[0].Stats(), p.qp[1].Stats()
			if s.CNPsReceived != uint64(len(cnps)) || r.CEReceived != r.RxPackets || s.Rate >= DefaultLineRate {
				t.Errorf("%d CNPs\nsender   %+v\nreceiver %+v", len(cnps), s, r)
			}
		})
	}
}

// TestCongestionOffOnTheWire checks that without Config.Congestion the traffic class is
// as configured, ECN bits included, and that CE is counted but not answered.
func TestCongestionOffOnTheWire(t *testing.T) {
	b := &bottleneck{keep: true}
	b.mark.Store(-1)
	p := newPair(t, pairConfig{pathMTU: 1024, memory: 8 << 10, middle: b, qp: endpoint.QPConfig{TrafficClass: 0x2A}})
	p.transfer(t, []int{5000})
	for from, op := range map[int]rocev2.Opcode{0: rocev2.WriteMiddle, 1: rocev2.Acknowledge} {
		frames := b.taken(from, op)
		for _, f := range frames {
			if f[15] != 0x2A {
				t.Errorf("opcode %#x: TOS %#x", uint8(op), f[15])
			}
		}
		if len(frames) == 0 {
			t.Errorf("no frame of opcode %#x", uint8(op))
		}
	}
	s, r := p.qp[0].Stats(), p.qp[1].Stats()
	if len(b.taken(1, rocev2.CNP)) > 0 || r.CNPsSent+s.CNPsReceived > 0 || r.CEReceived != r.RxPackets || s.Rate != 0 {
		t.Errorf("sender   %+v\nreceiver %+v", s, r)
	}
}

// TestRateRecovers checks that injected CNPs and ACKs with BECN lower the rate, a burst
// of them once, and that the rate recovers. Those with a wrong ICRC, or for another queue
// pair, have no effect.
func TestRateRecovers(t *testing.T) {
	p := newPair(t, pairConfig{pathMTU: 1024, memory: 4096, device: Config{Congestion: &dcqcn.Config{
		LineRate: 100e6, AlphaTimer: 200 * time.Millisecond, IncreaseTimer: 50 * time.Millisecond, AI: 50e6, HAI: 50e6, F: 1,
	}}})
	a, b := p.qp[0].Info(), p.qp[1].Info()
	path := rocev2.Path{SrcMAC: p.dev[1].mac, DstMAC: p.dev[0].mac, Src: b.IP, Dst: a.IP}
	build := func(k rocev2.Packet) []byte {
		f := make([]byte, 128)
		var payload []byte
		if k.Op == rocev2.CNP {
			payload = make([]byte, 16)
		}
		return f[:rocev2.BuildPacket(f, &path, &k, payload)]
	}
	rate := func() int64 { return p.qp[0].Stats().Rate }
	cnp := build(rocev2.Packet{Op: rocev2.CNP, BECN: true, DestQP: a.QPN})
	bad := bytes.Clone(cnp)
	bad[len(bad)-1] ^= 1
	p.inject(t, 1, bad, build(rocev2.Packet{Op: rocev2.CNP, BECN: true, DestQP: a.QPN ^ 0x800}))
	until(t, p.dev[0], "refused", func(s Stats) bool { return s.RxBadICRC == 1 && s.RxNoQP == 1 })
	if got := rate(); got != 100e6 {
		t.Fatalf("rate %d after CNPs that are none of ours", got)
	}
	for name, frame := range map[string][]byte{
		"CNP": cnp, "ACK with BECN": build(rocev2.Packet{Op: rocev2.Acknowledge, BECN: true, DestQP: a.QPN, Syndrome: rocev2.SyndromeACK, PSN: a.SQPSN.Prev()}),
	} {
		was := p.dev[0].Stats()
		p.inject(t, 1, slices.Repeat([][]byte{frame}, 100)...)
		until(t, p.dev[0], name, func(s Stats) bool {
			return s.CNPsReceived+s.BECNReceived == was.CNPsReceived+was.BECNReceived+100
		})
		if got := rate(); got < 50e6 || got > 99e6 {
			t.Errorf("100 times %s: the rate is %d", name, got)
		}
		for end := time.Now().Add(5 * time.Second); rate() != 100e6; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: the rate is %d after 5 s", name, rate())
			}
		}
	}
	if s := p.qp[0].Stats(); s.CNPsReceived != 100 || s.BECNReceived != 100 {
		t.Errorf("%+v", s)
	}
	if s := p.dev[0].Stats(); s.CNPsReceived != 100 || s.BECNReceived != 100 {
		t.Errorf("%+v", s)
	}
	p.transfer(t, []int{4096})
}

func TestCongestionConfig(t *testing.T) {
	for _, c := range []struct {
		want string
		cfg  Config
	}{
		{"rate -1 bits/s", Config{Rate: -1}},
		{"rate 7 bits/s", Config{Rate: 7}},
		{"G is 2", Config{Congestion: &dcqcn.Config{G: 2}}},
		{"LineRate is 3", Config{Congestion: &dcqcn.Config{LineRate: 3}}},
	} {
		c.cfg.Interface = "eth0"
		if err := c.cfg.complete(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want something about %q", c.cfg, err, c.want)
		}
	}
	for _, c := range []struct {
		rate, line, want int64
	}{{0, 0, DefaultLineRate}, {5e6, 0, 5e6}, {0, 7e9, 7e9}} {
		given := &dcqcn.Config{LineRate: c.line}
		cfg := Config{Interface: "eth0", Rate: c.rate, Congestion: given}
		if err := cfg.complete(); err != nil || cfg.Congestion.LineRate != c.want || given.LineRate != c.line {
			t.Errorf("%+v: %v, line rate %d, want %d", c, err, cfg.Congestion.LineRate, c.want)
		}
	}
}
