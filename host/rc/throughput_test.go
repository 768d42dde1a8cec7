// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"bytes"
	"testing"
	"time"
)

// pair is a sender and a receiver joined without a link.
type pair struct {
	a, b     *QP
	out, ack Output
	data     []byte
	region   []byte
	rkey     uint32
	now      time.Duration
}

func newPair(t testing.TB, p Personality, pmtu, size int) *pair {
	mem := NewMemory(1)
	x := &pair{data: bytes.Repeat([]byte("gleam-rc"), (size+7)/8)[:size], region: make([]byte, size)}
	mr, err := mem.RegisterMR(x.region, 0x1000, RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	x.rkey = mr.RKey
	c := Config{Personality: p, PMTU: pmtu, LocalQPN: 0x11, DestQPN: 0x12, Timeout: time.Second, RetryCnt: 7, RNRRetry: 7, Memory: mem}
	x.a = mustNew(t, c)
	c.LocalQPN, c.DestQPN = 0x12, 0x11
	x.b = mustNew(t, c)
	return x
}

// advance lets the receiver send an ACK that waits for more packets.
func (x *pair) advance() {
	if at, ok := x.b.NextDeadline(); ok {
		x.now = max(x.now, at)
		x.b.Advance(x.now, &x.ack)
	}
}

// transfer moves one message and returns the packets it took.
func (x *pair) transfer(t testing.TB, op WROp) (packets int) {
	x.now += time.Microsecond
	if op != WRWrite {
		if err := x.b.PostRecv(RecvWR{Buf: x.region}); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.a.PostSend(WR{Op: op, Data: x.data, VA: 0x1000, RKey: x.rkey, Signaled: true}); err != nil {
		t.Fatal(err)
	}
	for {
		n := x.a.Transmit(x.now, &x.out, 64)
		if n == 0 {
			break
		}
		packets += n
		for i := range x.out.Packets {
			x.b.Input(x.now, &x.out.Packets[i], &x.ack)
		}
		x.out.Reset()
		x.advance()
		for i := range x.ack.Packets {
			x.a.Input(x.now, &x.ack.Packets[i], &x.out)
		}
		x.ack.Reset()
	}
	if x.a.sendQueued() != 0 {
		t.Fatal("the message was not completed")
	}
	x.out.Reset()
	return packets
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, p := range personalities {
		for _, op := range []WROp{WRWrite, WRWriteImm, WRSend} {
			x := newPair(t, p, 1024, 300*1024)
			x.transfer(t, op)
			if n := testing.AllocsPerRun(20, func() { x.transfer(t, op) }); n != 0 {
				t.Errorf("%v %v: %v allocations for a message", p, op, n)
			}
			if !bytes.Equal(x.region, x.data) {
				t.Errorf("%v %v: data differ", p, op)
			}
		}
	}
}

// One operation is one packet, sent, received and, where asked, acknowledged.
func BenchmarkTransferPerPacket(b *testing.B) {
	for _, pmtu := range []int{256, 1024, 4096} {
		for _, p := range personalities {
			b.Run(p.String()+"/"+map[int]string{256: "256", 1024: "1024", 4096: "4096"}[pmtu], func(b *testing.B) {
				x := newPair(b, p, pmtu, 1<<20)
				b.SetBytes(int64(pmtu))
				b.ReportAllocs()
				for n := 0; n < b.N; {
					n += x.transfer(b, WRWrite)
				}
			})
		}
	}
}
