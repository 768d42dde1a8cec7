// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// TestLengthOnly sends the same messages with bytes and without, over a link that loses
// packets: the packets and the completions are the same.
func TestLengthOnly(t *testing.T) {
	for _, personality := range []Personality{RXE, Strict} {
		for _, lost := range []uint32{0, 5, 20} {
			t.Run(fmt.Sprintf("%v, %d %% lost", personality, lost), func(t *testing.T) {
				with := lossyTransfer(t, personality, lost, func(n int) (WR, RecvWR) {
					return WR{Data: make([]byte, n)}, RecvWR{Buf: make([]byte, n)}
				})
				without := lossyTransfer(t, personality, lost, func(n int) (WR, RecvWR) {
					return WR{Length: n}, RecvWR{Length: n}
				})
				if with != without {
					t.Errorf("with bytes:\n%swithout:\n%s", with, without)
				}
			})
		}
	}
}

// lossyTransfer moves messages of several lengths and returns what happened. Of 100 packets
// about lost are lost.
func lossyTransfer(t *testing.T, personality Personality, lost uint32, make func(n int) (WR, RecvWR)) (log string) {
	c := Config{Personality: personality, PMTU: 1024, LocalQPN: 0x11, DestQPN: 0x12, Timeout: time.Millisecond, RetryCnt: 7, RNRRetry: 7}
	a := mustNew(t, c)
	c.LocalQPN, c.DestQPN = 0x12, 0x11
	b := mustNew(t, c)
	lengths := []int{0, 1, 1024, 1025, 100_000}
	for i, n := range lengths {
		wr, recv := make(n)
		wr.ID, wr.Signaled, recv.ID = uint64(i), true, uint64(i)
		if err := errors.Join(a.PostSend(wr), b.PostRecv(recv)); err != nil {
			t.Fatal(err)
		}
	}
	var out, ack Output
	sent, done := uint32(0), 0
	for now := time.Duration(0); done < len(lengths); now += time.Millisecond {
		if now > time.Second {
			t.Fatalf("%d of %d messages are done; so far:\n%s", done, len(lengths), log)
		}
		a.Advance(now, &out)
		for a.Transmit(now, &out, 16) > 0 {
			for i := range out.Packets {
				p := &out.Packets[i]
				log += fmt.Sprintf("%v %v %v %d\n", p.Op, p.PSN, p.AckReq, p.PayloadLen())
				if sent++; sent*2654435761>>16%100 >= lost {
					b.Input(now, p, &ack)
				}
			}
			out.Reset()
			for i := range ack.Packets {
				a.Input(now, &ack.Packets[i], &out)
			}
			for _, x := range append(ack.Completions, out.Completions...) {
				log += fmt.Sprintf("%+v\n", x)
				if !x.Recv() {
					done++
				}
			}
			out.Completions = out.Completions[:0]
			ack.Reset()
		}
	}
	return log + fmt.Sprintf("%+v\n%+v\n", a.Stats(), b.Stats())
}

func TestLengthBesideDataIsRefused(t *testing.T) {
	q := mustNew(t, Config{PMTU: 1024, LocalQPN: 0x11, DestQPN: 0x12})
	for _, wr := range []WR{{Data: []byte{1}, Length: 1}, {Length: -1}, {Length: MaxMessage + 1}} {
		if err := q.PostSend(wr); err == nil {
			t.Errorf("Length %d beside %d bytes of Data: accepted", wr.Length, len(wr.Data))
		}
	}
	if err := q.PostSend(WR{Length: MaxMessage}); err != nil {
		t.Error(err)
	}
}

func TestCompletionsOfReceives(t *testing.T) {
	for op := range numWCOps {
		if c := (Completion{Op: op}); c.Recv() != (op == WCRecv || op == WCRecvRDMAWithImm) {
			t.Errorf("%v is of a receive: %t", op, c.Recv())
		}
	}
}
