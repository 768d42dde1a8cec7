// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/statetable"
)

// counted prints the counters that differ.
func counted(before, after Stats) string {
	var s strings.Builder
	b, a := reflect.ValueOf(before), reflect.ValueOf(after)
	for i := range a.NumField() {
		if d := a.Field(i).Uint() - b.Field(i).Uint(); d != 0 {
			fmt.Fprintf(&s, "%s+%d ", a.Type().Field(i).Name, int64(d))
		}
	}
	if s.Len() == 0 {
		return ""
	}
	return strings.TrimSpace(s.String()) + "\n"
}

// requesting prints what a requester knows.
func requesting(q *QP, now time.Duration) string {
	r := &q.requester
	s := fmt.Sprintf("%v una=%d nxt=%d sent=%d retries=%d rnr=%d since-ackreq=%d", q.state, r.una, r.nxt, r.sent, r.retries, r.rnrRetries, r.sinceAckReq)
	if r.startedRetry {
		s += " going-back"
	}
	if at, ok := q.NextDeadline(); ok {
		s += fmt.Sprintf(" deadline=%v", at-now)
	}
	return s
}

const tableNow = time.Second

func tableQP(t *testing.T, p Personality, change func(*Config)) *QP {
	t.Helper()
	mem := NewMemory(1)
	if _, err := mem.RegisterMR(make([]byte, 1024), 0x1000, RemoteWrite); err != nil {
		t.Fatal(err)
	}
	cfg := Config{
		Personality: p, PMTU: 256, LocalQPN: 0x11, DestQPN: 0x12, SQPSN: 0xfffffe, RQPSN: 0xfffffe, Timeout: time.Millisecond,
		RetryCnt: 2, RNRRetry: 2, MinRNRTimer: 12, MaxUnacked: 6, AckReqEvery: 2, SendDepth: 4, RecvDepth: 3, Memory: mem,
	}
	if change != nil {
		change(&cfg)
	}
	q, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func answer(psn int64, s rocev2.Syndrome) *Packet {
	return &Packet{Op: rocev2.Acknowledge, DestQP: 0x11, PSN: rocev2.PSN(0xfffffe+uint64(psn)) & rocev2.PSNMask, Syndrome: s}
}

// TestRequesterTable: each answer to each packet, and the timers, for requesters of each
// kind in each situation that they can be in. Packet 0 is a message, 1 to 3 another, 4 and
// 5 a third that asks for no completion; PSNs pass 0 at packet 2.
func TestRequesterTable(t *testing.T) {
	s := statetable.New(t, "requester")
	syndromes := []struct {
		name string
		s    rocev2.Syndrome
	}{
		{"ACK", 0x1f}, {"RNR", 0x2c}, {"NAK60", 0x60}, {"NAK61", 0x61}, {"NAK62", 0x62}, {"NAK63", 0x63}, {"NAK64", 0x64}, {"NAK7f", 0x7f}, {"reserved", 0x40}, {"reserved80", 0x80},
	}
	transmit := func(n int) func(*QP, *Output) { return func(q *QP, out *Output) { q.Transmit(tableNow, out, n) } }
	input := func(p *Packet) func(*QP, *Output) { return func(q *QP, out *Output) { q.Input(tableNow, p, out) } }
	expire := func(q *QP, out *Output) {
		at, _ := q.NextDeadline()
		q.Advance(at, out)
	}
	situations := []struct {
		name  string
		cfg   func(*Config)
		steps []func(*QP, *Output)
	}{
		{"nothing sent", nil, nil},
		{"one packet sent", nil, []func(*QP, *Output){transmit(1)}},
		{"a message sent in part", nil, []func(*QP, *Output){transmit(3)}},
		{"all sent", nil, []func(*QP, *Output){transmit(9)}},
		{"all sent, no timer", func(c *Config) { c.Timeout = 0 }, []func(*QP, *Output){transmit(9)}},
		{"the window is closed", func(c *Config) { c.MaxUnacked, c.AckReqEvery = 3, 3 }, []func(*QP, *Output){transmit(9)}},
		{"part acknowledged", nil, []func(*QP, *Output){transmit(9), input(answer(2, 0x1f))}},
		{"all acknowledged", nil, []func(*QP, *Output){transmit(9), input(answer(5, 0x1f))}},
		{"gone back", nil, []func(*QP, *Output){transmit(9), input(answer(2, 0x60))}},
		{"gone back and on", nil, []func(*QP, *Output){transmit(9), input(answer(2, 0x60)), transmit(2)}},
		{"waiting for the receiver", nil, []func(*QP, *Output){transmit(3), input(answer(1, 0x2c))}},
		{"waited for the receiver", nil, []func(*QP, *Output){transmit(9), input(answer(1, 0x2c)), expire}},
		{"timed out", nil, []func(*QP, *Output){transmit(9), expire}},
		{"timed out, and sent again", nil, []func(*QP, *Output){transmit(9), expire, transmit(9)}},
		{"no retries left", nil, []func(*QP, *Output){transmit(9), expire, transmit(9), expire, transmit(9)}},
		{"no RNR retries left", nil, []func(*QP, *Output){transmit(9), input(answer(1, 0x2c)), expire, transmit(9), input(answer(1, 0x2c)), expire, transmit(9)}},
		{"no retries configured", func(c *Config) { c.RetryCnt, c.RNRRetry = 0, 0 }, []func(*QP, *Output){transmit(9)}},
		{"retries without end", func(c *Config) { c.RetryCnt, c.RNRRetry = 7, 7 }, []func(*QP, *Output){transmit(9)}},
		{"acknowledged ahead", nil, []func(*QP, *Output){transmit(3), input(answer(5, 0x1f))}},
		{"acknowledged ahead in a message", nil, []func(*QP, *Output){transmit(2), input(answer(2, 0x1f))}},
		{"acknowledged beyond what was sent", nil, []func(*QP, *Output){transmit(2), input(answer(3, 0x1f)), transmit(1)}},
	}
	for _, p := range []Personality{RXE, Strict} {
		for _, x := range situations {
			situation := fmt.Sprintf("%v: %s", p, x.name)
			try := func(name string, event func(*QP, *Output)) {
				q := tableQP(t, p, x.cfg)
				for i, size := range []int{1, 600, 300} {
					wr := WR{ID: uint64(i + 1), Data: bytes.Repeat([]byte{'d'}, size), Signaled: i < 2, Solicited: true}
					if i == 1 {
						wr.Op = WRWrite
					}
					if err := q.PostSend(wr); err != nil {
						t.Fatal(err)
					}
				}
				if err := q.PostRecv(RecvWR{ID: 9}); err != nil {
					t.Fatal(err)
				}
				var out Output
				for _, step := range x.steps {
					step(q, &out)
				}
				if name == "" {
					s.Situation(situation, requesting(q, tableNow))
					return
				}
				out.Reset()
				before := q.Stats()
				event(q, &out)
				result := requesting(q, tableNow) + "\n" + counted(before, q.Stats())
				if len(out.Packets)+len(out.Completions) > 0 {
					result += show(&out)
				}
				out.Reset()
				before = q.Stats()
				_ = q.PostSend(WR{ID: 4, Op: WRSendImm, Imm: 7})
				q.Transmit(tableNow, &out, 2)
				s.Event(name, result, "then "+show(&out)+counted(before, q.Stats())+requesting(q, tableNow))
			}
			try("", nil)
			for _, y := range syndromes {
				for psn := int64(-2); psn < 8; psn++ {
					try(fmt.Sprintf("%s %d", y.name, psn), input(answer(psn, y.s)))
				}
			}
			try("transmit", transmit(2))
			try("deadline", expire)
			try("before the deadline", func(q *QP, out *Output) {
				if at, ok := q.NextDeadline(); ok {
					q.Advance(at-1, out)
				}
			})
			try("deadline, all", func(q *QP, out *Output) { q.Advance(tableNow+time.Hour, out) })
			try("fail", func(q *QP, out *Output) { q.Fail(out); q.Fail(out) })
			try("CNP", input(&Packet{Op: rocev2.CNP, DestQP: 0x11}))
			try("ACK 0 with BECN", input(&Packet{Op: rocev2.Acknowledge, DestQP: 0x11, PSN: 0xfffffe, Syndrome: 0x1f, BECN: true}))
			try("READ_RESP_ONLY", input(&Packet{Op: rocev2.ReadRespOnly, DestQP: 0x11}))
			try("another QP's ACK 0", input(&Packet{Op: rocev2.Acknowledge, DestQP: 0x12, PSN: 0xfffffe, Syndrome: 0x1f}))
		}
	}
	s.End()
}

// responding prints what a responder knows.
func responding(q *QP) string {
	r := &q.responder
	return fmt.Sprintf("%v epsn=%06x rxe-ack=%06x msn=%d nak=%d message=%d got=%d off=%d left=%d recvs=%d", q.state, r.ePSN, r.ackPSN, r.msn, r.nakState, r.inMessage, r.placed, r.mrOffset, r.bytesLeft, r.recvQueue.count)
}

// TestResponderTable: each request, of each length at the borders, expected, late or early,
// for responders of each kind in each situation that they can be in.
func TestResponderTable(t *testing.T) {
	s := statetable.New(t, "responder")
	ops := []rocev2.Opcode{
		rocev2.SendFirst, rocev2.SendMiddle, rocev2.SendLast, rocev2.SendLastImm, rocev2.SendLastInv, rocev2.SendOnly, rocev2.SendOnlyImm, rocev2.SendOnlyInv,
		rocev2.WriteFirst, rocev2.WriteMiddle, rocev2.WriteLast, rocev2.WriteLastImm, rocev2.WriteOnly, rocev2.WriteOnlyImm,
		rocev2.ReadRequest, rocev2.CompareSwap, rocev2.FetchAdd, rocev2.Flush, rocev2.AtomicWrite,
	}
	request := func(q *QP, op rocev2.Opcode, d, n int, ask bool) *Packet {
		p := &Packet{Op: op, DestQP: 0x11, PSN: q.ExpectedPSN().Add(int32(d)), Payload: bytes.Repeat([]byte{'x'}, n), AckReq: ask, VA: 0x1000, DMALen: uint32(n), Imm: 5, InvKey: 1, Solicited: true}
		for key := range q.cfg.Memory.byKey {
			p.RKey = key
		}
		if op == rocev2.WriteFirst {
			p.DMALen = 600
		}
		return p
	}
	in := func(op rocev2.Opcode, d, n int) func(*QP, *Output) {
		return func(q *QP, out *Output) { q.Input(tableNow, request(q, op, d, n, false), out) }
	}
	recv := func(size int) func(*QP, *Output) {
		return func(q *QP, _ *Output) {
			if err := q.PostRecv(RecvWR{ID: uint64(size), Buf: make([]byte, size)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	credits := func(c *Config) { c.Credits = true }
	situations := []struct {
		name  string
		cfg   func(*Config)
		steps []func(*QP, *Output)
	}{
		{"new, no receive", nil, nil},
		{"two receives", credits, []func(*QP, *Output){recv(512), recv(256)}},
		{"receives of a packet, and none", nil, []func(*QP, *Output){recv(256), recv(0)}},
		{"in a SEND", nil, []func(*QP, *Output){recv(600), recv(0), in(rocev2.SendFirst, 0, 256)}},
		{"in a SEND that fills its receive", nil, []func(*QP, *Output){recv(512), in(rocev2.SendFirst, 0, 256), in(rocev2.SendMiddle, 0, 256)}},
		{"in a WRITE", nil, []func(*QP, *Output){recv(0), in(rocev2.WriteFirst, 0, 256)}},
		{"at the end of a WRITE, no receive", nil, []func(*QP, *Output){in(rocev2.WriteFirst, 0, 256), in(rocev2.WriteMiddle, 0, 256)}},
		{"a gap", nil, []func(*QP, *Output){recv(600), in(rocev2.SendOnly, 1, 9)}},
		{"a gap after a message", nil, []func(*QP, *Output){recv(600), recv(600), in(rocev2.SendOnly, 0, 9), in(rocev2.SendOnly, 1, 9)}},
		{"not ready, then a receive", nil, []func(*QP, *Output){in(rocev2.SendOnly, 0, 9), recv(600)}},
	}
	for _, p := range []Personality{RXE, Strict} {
		for _, x := range situations {
			situation := fmt.Sprintf("%v: %s", p, x.name)
			try := func(name string, event func(*QP) *Packet) {
				q := tableQP(t, p, x.cfg)
				var out Output
				for _, step := range x.steps {
					step(q, &out)
				}
				if name == "" {
					s.Situation(situation, responding(q))
					return
				}
				out.Reset()
				before := q.Stats()
				q.Input(tableNow, event(q), &out)
				result := responding(q) + "\n" + counted(before, q.Stats())
				if len(out.Packets)+len(out.Completions) > 0 {
					result += show(&out)
				}
				s.Event(name, result, "")
			}
			try("", nil)
			for _, op := range ops {
				for _, n := range []int{0, 1, 88, 256, 257} {
					try(fmt.Sprintf("%s %d", opcodeName(op), n), func(q *QP) *Packet { return request(q, op, 0, n, n != 88) })
				}
				for _, d := range []int{-2, -1, 1, 2} {
					try(fmt.Sprintf("%s at %+d", opcodeName(op), d), func(q *QP) *Packet { return request(q, op, d, 256, d != -2) })
				}
			}
			try("WRITE_ONLY with CE", func(q *QP) *Packet {
				r := request(q, rocev2.WriteOnly, 0, 1, true)
				r.CE = true
				return r
			})
			for _, w := range []struct {
				name string
				to   func(*Packet)
			}{
				{"below the region", func(p *Packet) { p.VA-- }},
				{"at its end", func(p *Packet) { p.VA += 1024 - 256 }},
				{"beyond its end", func(p *Packet) { p.VA += 1024 - 255 }},
				{"behind it", func(p *Packet) { p.VA += 1024 }},
				{"far behind it", func(p *Packet) { p.VA += 1025 }},
				{"under another key", func(p *Packet) { p.RKey++ }},
				{"of less than it says", func(p *Packet) { p.DMALen = 257 }},
				{"of more than it says", func(p *Packet) { p.DMALen = 255 }},
				{"of nothing, with bytes", func(p *Packet) { p.DMALen = 0 }},
				{"of 2 GiB", func(p *Packet) { p.DMALen = MaxMessage }},
				{"of more than 2 GiB", func(p *Packet) { p.DMALen = MaxMessage + 1 }},
				{"as a middle, of more than 2 GiB", func(p *Packet) { p.Op, p.DMALen = rocev2.WriteMiddle, MaxMessage+1 }},
			} {
				try("WRITE_ONLY "+w.name, func(q *QP) *Packet {
					r := request(q, rocev2.WriteOnly, 0, 256, true)
					w.to(r)
					return r
				})
			}
		}
	}
	s.End()
}
