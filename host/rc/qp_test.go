// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gleam-rdma/gleam/host/rc/dcqcn"
	"github.com/gleam-rdma/gleam/rocev2"
)

func goodConfig() Config {
	return Config{PMTU: 1024, LocalQPN: 0x11, DestQPN: 0x12, Timeout: time.Millisecond, RetryCnt: 7, RNRRetry: 7}
}

func mustNew(t testing.TB, c Config) *QP {
	t.Helper()
	q, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestNewRefusesBadConfig(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		set        func(*Config)
	}{
		{"personality", "Personality is Personality(9)", func(c *Config) { c.Personality = 9 }},
		{"PMTU", "PMTU is 1500", func(c *Config) { c.PMTU = 1500 }},
		{"GSI QPN", "LocalQPN is 0x1", func(c *Config) { c.LocalQPN = 1 }},
		{"multicast QPN", "DestQPN is 0xffffff", func(c *Config) { c.DestQPN = 0xFFFFFF }},
		{"SQPSN", "SQPSN is 0x1000000", func(c *Config) { c.SQPSN = 1 << 24 }},
		{"RQPSN", "RQPSN is 0x1000000", func(c *Config) { c.RQPSN = 1 << 24 }},
		{"timeout", "Timeout is -1ns", func(c *Config) { c.Timeout = -1 }},
		{"retry", "RetryCnt is 8", func(c *Config) { c.RetryCnt = 8 }},
		{"rnr retry", "RNRRetry is 8", func(c *Config) { c.RNRRetry = 8 }},
		{"rnr timer", "MinRNRTimer is 32", func(c *Config) { c.MinRNRTimer = 32 }},
		{"window", "MaxUnacked is -1", func(c *Config) { c.MaxUnacked = -1; c.AckReqEvery = 1 }},
		{"ack request", "AckReqEvery is 129", func(c *Config) { c.AckReqEvery = 129 }},
		{"send depth", "SendDepth is -1", func(c *Config) { c.SendDepth = -1 }},
		{"receive depth", "RecvDepth is 1048577", func(c *Config) { c.RecvDepth = 1<<20 + 1 }},
		{"rate", "MaxRate is -1", func(c *Config) { c.MaxRate = -1 }},
		{"slow rate", "LineRate is 5", func(c *Config) { c.MaxRate = 5 }},
		{"no line rate", "LineRate is 0", func(c *Config) { c.Congestion = &dcqcn.Config{} }},
		{"congestion", "G is 7", func(c *Config) { c.Congestion = &dcqcn.Config{LineRate: 1e9, G: 7} }},
		{"overhead", "FrameOverhead is -1", func(c *Config) { c.FrameOverhead = -1 }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := goodConfig()
			tc.set(&c)
			if _, err := New(c); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one that says %q", err, tc.want)
			}
		})
	}
	c := goodConfig()
	c.PMTU, c.RetryCnt = 3, 9
	if _, err := New(c); err == nil || !strings.Contains(err.Error(), "PMTU") || !strings.Contains(err.Error(), "RetryCnt") {
		t.Errorf("error %v does not name both faults", err)
	}
}

func TestDefaults(t *testing.T) {
	c := mustNew(t, goodConfig()).Config()
	if c.MaxUnacked != 128 || c.AckReqEvery != 66 || c.SendDepth != 128 || c.RecvDepth != 128 {
		t.Errorf("RXE defaults: %+v", c)
	}
	strict := goodConfig()
	strict.Personality = Strict
	if c := mustNew(t, strict).Config(); c.AckReqEvery != 16 {
		t.Errorf("Strict asks for an ACK every %d packets, want 16", c.AckReqEvery)
	}
}

func TestMemory(t *testing.T) {
	m := NewMemory(42)
	a, err := m.RegisterMR(make([]byte, 16), 0x1000, RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	top, err := m.RegisterMR(make([]byte, 16), ^uint64(0)-15, RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	readOnly, err := m.RegisterMR(make([]byte, 16), 0x1000, RemoteRead)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name   string
		rkey   uint32
		va     uint64
		length uint32
		ok     bool
	}{
		{"all", a.RKey, 0x1000, 16, true},
		{"tail", a.RKey, 0x100f, 1, true},
		{"before", a.RKey, 0xfff, 1, false},
		{"behind", a.RKey, 0x1010, 1, false},
		{"over the end", a.RKey, 0x100f, 2, false},
		{"too long", a.RKey, 0x1000, 1 << 31, false},
		{"address wraps", a.RKey, ^uint64(0), 0x1002, false},
		{"end of the address space", top.RKey, ^uint64(0) - 15, 16, true},
		{"end of the address space, over", top.RKey, ^uint64(0) - 14, 16, false},
		{"no such key", a.RKey + 1, 0x1000, 1, false},
		{"no right", readOnly.RKey, 0x1000, 1, false},
	} {
		if got := m.writable(tc.rkey, tc.va, tc.length) != nil; got != tc.ok {
			t.Errorf("%s: writable %v, want %v", tc.name, got, tc.ok)
		}
	}
	again := NewMemory(42)
	if b, _ := again.RegisterMR(make([]byte, 1), 0, RemoteWrite); b.RKey != a.RKey {
		t.Errorf("the same seed gave R_Keys %#x and %#x", a.RKey, b.RKey)
	}
	if err := m.Deregister(a.RKey); err != nil {
		t.Error(err)
	}
	if err := m.Deregister(a.RKey); !errors.Is(err, ErrNoRegion) {
		t.Errorf("second deregistration: %v", err)
	}
	for name, reg := range map[string]func() (*MR, error){
		"empty":  func() (*MR, error) { return m.RegisterMR(nil, 0, RemoteWrite) },
		"wraps":  func() (*MR, error) { return m.RegisterMR(make([]byte, 17), ^uint64(0)-15, RemoteWrite) },
		"access": func() (*MR, error) { return m.RegisterMR(make([]byte, 1), 0, 8) },
	} {
		if _, err := reg(); err == nil {
			t.Errorf("%s: registered", name)
		}
	}
}

func TestPostErrors(t *testing.T) {
	c := goodConfig()
	c.SendDepth, c.RecvDepth = 1, 1
	q := mustNew(t, c)
	if err := q.PostSend(WR{Op: 77}); err == nil || !strings.Contains(err.Error(), "WROp(77)") {
		t.Errorf("unknown operation: %v", err)
	}
	if err := q.PostSend(WR{}); err != nil {
		t.Error(err)
	}
	if err := q.PostSend(WR{}); !errors.Is(err, ErrQueueFull) {
		t.Errorf("second WR: %v", err)
	}
	if err := q.PostRecv(RecvWR{}); err != nil {
		t.Error(err)
	}
	if err := q.PostRecv(RecvWR{}); !errors.Is(err, ErrQueueFull) {
		t.Errorf("second receive: %v", err)
	}
	if q.sendQueued() != 1 || q.recvQueued() != 1 {
		t.Errorf("queued %d and %d, want 1 and 1", q.sendQueued(), q.recvQueued())
	}
	var out Output
	q.Fail(&out)
	q.Fail(&out)
	if len(out.Completions) != 2 {
		t.Errorf("flushed %v", out.Completions)
	}
	if err := q.PostSend(WR{}); !errors.Is(err, ErrState) {
		t.Errorf("after Fail: %v", err)
	}
}

// transmissions counts how often a packet is sent into silence, up to limit.
func transmissions(t *testing.T, c Config, limit int) (n int, last Status) {
	q := mustNew(t, c)
	if err := q.PostSend(WR{}); err != nil {
		t.Fatal(err)
	}
	var out Output
	for n < limit && q.State() == RTS {
		q.Transmit(0, &out, 10)
		n += len(out.Packets)
		out.Reset()
		at, ok := q.NextDeadline()
		if !ok {
			t.Fatal("no deadline with a packet unacknowledged")
		}
		q.Advance(at, &out)
		for _, c := range out.Completions {
			last = c.Status
		}
	}
	return n, last
}

// retry_cnt 6 means seven transmissions, then completion error 12; 7 means
// forever on rxe (rxe notes, Requester recovery).
func TestRetryCount(t *testing.T) {
	for _, tc := range []struct {
		p     Personality
		retry uint8
		want  int
	}{{RXE, 0, 1}, {RXE, 6, 7}, {RXE, 7, 100}, {Strict, 6, 7}, {Strict, 7, 8}} {
		c := goodConfig()
		c.Personality, c.RetryCnt = tc.p, tc.retry
		n, status := transmissions(t, c, 100)
		if n != tc.want || (tc.want < 100) != (status == RetryExcErr) {
			t.Errorf("%v, retry_cnt %d: %d transmissions, then %v; want %d", tc.p, tc.retry, n, status, tc.want)
		}
	}
}

// rxe asks for an ACK on the last packet of a message and on every 66th.
func TestAckReqOnEvery66thPacket(t *testing.T) {
	c := goodConfig()
	c.PMTU = 256
	q := mustNew(t, c)
	if err := q.PostSend(WR{Data: make([]byte, 256*400)}); err != nil {
		t.Fatal(err)
	}
	var asked []rocev2.PSN
	var out Output
	for q.Transmit(0, &out, 1000) > 0 {
		for _, p := range out.Packets {
			if p.AckReq {
				asked = append(asked, p.PSN)
			}
		}
		if unacked := len(out.Packets); unacked > 128 {
			t.Fatalf("%d packets without an ACK", unacked)
		}
		ack := Packet{Op: rocev2.Acknowledge, DestQP: 0x11, PSN: out.Packets[len(out.Packets)-1].PSN, Syndrome: rocev2.SyndromeACK}
		out.Reset()
		q.Input(0, &ack, &out)
		out.Reset()
	}
	want := []rocev2.PSN{65, 131, 197, 263, 329, 395, 399}
	if len(asked) != len(want) {
		t.Fatalf("asked at %v, want %v", asked, want)
	}
	for i := range want {
		if asked[i] != want[i] {
			t.Fatalf("asked at %v, want %v", asked, want)
		}
	}
}

// Whatever arrives, in whatever order, nothing panics, una of a Strict QP stays
// within what was sent, and every WR completes at most once, in order.
func TestAnyInputIsSurvived(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mem := NewMemory(3)
		mr, _ := mem.RegisterMR(make([]byte, 1024), 0x1000, RemoteWrite)
		c := Config{
			Personality: rapid.SampledFrom(personalities).Draw(t, "personality"), PMTU: 256, LocalQPN: 0x11, DestQPN: 0x12, Memory: mem,
			SQPSN: 0xfffffa, RQPSN: 0xfffffa, Timeout: time.Millisecond, RetryCnt: 7, RNRRetry: 7, SendDepth: 4, RecvDepth: 2,
			MaxUnacked: rapid.SampledFrom([]int{1, 4, 128}).Draw(t, "window"),
		}
		q, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		var out Output
		var now time.Duration
		var posted, done uint64
		near := rapid.Custom(func(t *rapid.T) rocev2.PSN {
			if rapid.IntRange(0, 9).Draw(t, "far") == 0 {
				return rocev2.PSN(rapid.Uint32().Draw(t, "psn")) // 32 bits: a careless driver
			}
			return rocev2.PSN(0xfffffa).Add(rapid.Int32Range(-4, 20).Draw(t, "d"))
		})
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0:
				wr := WR{ID: posted, Op: WROp(rapid.IntRange(0, int(numWROps)-1).Draw(t, "op")), Data: make([]byte, rapid.IntRange(0, 900).Draw(t, "size")), Signaled: true}
				if q.PostSend(wr) == nil {
					posted++
				}
			case 1:
				_ = q.PostRecv(RecvWR{Buf: make([]byte, rapid.SampledFrom([]int{0, 256, 1000}).Draw(t, "buf"))})
			case 2:
				q.Transmit(now, &out, rapid.IntRange(0, 5).Draw(t, "budget"))
			case 3:
				now += time.Duration(rapid.IntRange(0, 2000).Draw(t, "us")) * time.Microsecond
				q.Advance(now, &out)
			case 4:
				p := Packet{Op: rocev2.Acknowledge, DestQP: 0x11, PSN: near.Draw(t, "psn"), Syndrome: rocev2.Syndrome(rapid.SampledFrom([]int{0x1f, 0x1f, 0, 0x60, 0x60, 0x21, 0x61, 0x40, 0x7f, 0xff}).Draw(t, "syndrome"))}
				q.Input(now, &p, &out)
			default:
				p := Packet{
					Op: rocev2.Opcode(rapid.Uint8Range(0, 0x20).Draw(t, "opcode")), DestQP: 0x11, PSN: near.Draw(t, "psn"), AckReq: rapid.Bool().Draw(t, "ackreq"),
					VA: 0x1000 + uint64(rapid.IntRange(-1, 1025).Draw(t, "va")), RKey: mr.RKey, DMALen: rapid.SampledFrom([]uint32{0, 1, 256, 257, 600, 1 << 31, 1<<32 - 1}).Draw(t, "dmalen"),
					Payload: make([]byte, rapid.SampledFrom([]int{0, 1, 88, 255, 256, 257, 5000}).Draw(t, "len")),
				}
				q.Input(now, &p, &out)
			}
			for i := range out.Completions {
				if c := &out.Completions[i]; !c.Recv() {
					if c.ID != done {
						t.Fatalf("WR %d completed, expected %d", c.ID, done)
					}
					done++
				}
			}
			out.Reset()
			if r := &q.requester; c.Personality == Strict && r.una > r.nxt || r.nxt > r.sent || r.sent > r.nextPost {
				t.Fatalf("una %d, nxt %d, sent %d, tail %d", r.una, r.nxt, r.sent, r.nextPost)
			}
			if q.State() == RTS && done+uint64(q.sendQueued()) != posted || q.State() == Error && done != posted {
				t.Fatalf("%v: posted %d, completed %d, queued %d", q.State(), posted, done, q.sendQueued())
			}
		}
	})
}
