// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// FuzzInput gives a queue pair with work under way any packets: nothing panics,
// memory outside of its region stays as it is, and a receive is used once.
func FuzzInput(f *testing.F) {
	f.Add([]byte{byte(rocev2.WriteOnly), 0, 0, 0, 16, 0, 0, 8, byte(rocev2.Acknowledge), 0, 1, 0x1F, 0, 0, 0, 0}, byte(RXE))
	f.Add([]byte{byte(rocev2.SendFirst), 0, 0, 0, 64, 0, 0, 64, byte(rocev2.SendLast), 1, 0, 0, 5, 0, 0, 5}, byte(Strict))
	f.Add([]byte{byte(rocev2.WriteFirst), 0, 0, 0, 200, 0, 0, 255, byte(rocev2.WriteMiddle), 1, 0, 0, 0, 0, 0, 255}, byte(Strict))
	f.Add([]byte{byte(rocev2.WriteMiddle), 1, 0, 0, 0, 0, 0, 255, byte(rocev2.WriteFirst), 0, 8, 0, 200, 0, 0, 255, byte(rocev2.Acknowledge), 3, 0, 0x60, 0, 0, 0, 0}, byte(ConnectXRepeat))
	f.Fuzz(func(t *testing.T, b []byte, personality byte) {
		const guard = 32
		buf := make([]byte, 256+2*guard)
		mem := NewMemory(1)
		mr, err := mem.RegisterMR(buf[guard:len(buf)-guard:len(buf)-guard], 0x1000, RemoteWrite)
		if err != nil {
			t.Fatal(err)
		}
		cfg := Config{PMTU: 256, LocalQPN: 0x11, DestQPN: 0x22, SQPSN: 0xFFFFF0, RQPSN: 0xFFFFFE, Timeout: time.Millisecond, RetryCnt: 3, RNRRetry: 3, Memory: mem}
		cfg.Personality = Personality(personality) % numPersonalities
		q, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		var out Output
		for i := range 4 {
			_ = q.PostRecv(RecvWR{ID: uint64(i), Buf: make([]byte, 300)})
			_ = q.PostSend(WR{ID: uint64(i), Op: WRWrite, Data: make([]byte, 700), VA: 1, RKey: 2, Signaled: true})
		}
		used := make(map[Completion]int)
		now := time.Duration(0)
		for ; len(b) >= 8; b = b[8:] {
			now += time.Duration(b[6]) << 12
			p := Packet{
				Op: rocev2.Opcode(b[0]), AckReq: b[2]&1 != 0, BECN: b[2]&2 != 0, CE: b[2]&4 != 0, DestQP: 0x11,
				PSN: (0xFFFFFE + rocev2.PSN(b[1])) & rocev2.PSNMask, Syndrome: rocev2.Syndrome(b[3]), MSN: rocev2.MSN(b[1]),
				VA: 0x1000 + uint64(b[5]), RKey: mr.RKey, DMALen: uint32(b[4]) << (b[2] >> 6), InvKey: uint32(b[3]), Payload: make([]byte, int(b[7])),
			}
			if p.Op == rocev2.Acknowledge {
				p.PSN = (0xFFFFF0 + rocev2.PSN(b[1])) & rocev2.PSNMask
			}
			if b[2]&8 != 0 {
				p.Payload = make([]byte, 256)
			}
			for i := range p.Payload {
				p.Payload[i] = 0xEE
			}
			q.Input(now, &p, &out)
			q.Transmit(now, &out, 64)
			q.Advance(now, &out)
			for _, c := range out.Completions {
				used[Completion{ID: c.ID, Op: c.Op}]++
			}
			out.Reset()
		}
		for c, n := range used {
			if n > 1 {
				t.Fatalf("%d completions of %+v", n, c)
			}
		}
		for i := range guard {
			if buf[i] != 0 || buf[len(buf)-1-i] != 0 {
				t.Fatal("memory outside of the region was written")
			}
		}
	})
}
