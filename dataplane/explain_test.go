// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// fieldsOf shows all of a frame that a switch rewrites, and whether its ICRC is right.
func fieldsOf(t *testing.T, b []byte) string {
	t.Helper()
	var f rocev2.Frame
	if r := rocev2.Decode(b, &f); r != rocev2.OK {
		t.Fatalf("a frame does not decode: %v", r)
	}
	vid, tci := f.VLAN()
	return fmt.Sprintf("%v>%v vlan %v %x, %v>%v, BTH %x, ext %x, %d bytes, ICRC right %v", f.Eth().Src(), f.Eth().Dst(), vid, tci, f.Src(), f.Dst(), []byte(f.BTH()), f.L3()[f.L4Offset()-f.L3Offset()+rocev2.UDPLen+rocev2.BTHLen:][:f.Op.ExtLen()], f.PayloadLen(), f.VerifyICRC())
}

// TestExplainedFramesLeave explains random packets, and then gives them to the worker: the frames
// that leave have the fields that were said, at the ports that were said, and the counters count
// the reason that was said.
func TestExplainedFramesLeave(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		b := newBench(t, 4)
		b.spec.Window = mcast.Window{Base: 0x1000, Len: 1 << 20, RKey: 0x77}
		for i := range b.spec.Members {
			b.spec.Members[i].Window = mcast.Window{Base: uint64(i+1) << 32, Len: 1 << 20, RKey: uint32(i + 1)}
		}
		b.repair(t, []int64{0, 1 << 20}[seed%2])
		b.w.groups[0].legs[2].vlan = 7
		b.w.ports[3].down = seed%4 == 3
		for range 60 {
			b.explainOne(t, rng)
			if rng.IntN(4) == 0 {
				b.w.now += time.Duration(rng.IntN(200)) * time.Microsecond
			}
		}
	}
}

// explainOne explains a random packet, has the worker serve it, and compares.
func (b *bench) explainOne(t *testing.T, rng *rand.Rand) {
	t.Helper()
	st := b.status()
	from := rng.IntN(len(b.hosts))
	k := rocev2.Packet{MigReq: true, AckReq: rng.IntN(2) == 0}
	payload := make([]byte, 64)
	switch {
	case rng.IntN(2) == 0 && st.HasSource && int(st.Source) != from: // feedback
		m := &st.Members[from]
		k.Op, k.Syndrome = rocev2.Acknowledge, []rocev2.Syndrome{rocev2.SyndromeACK, rocev2.SyndromeACK, rocev2.SyndromeACK, rocev2.SyndromeNAKSequence, 0x2C}[rng.IntN(5)]
		k.PSN, payload, k.AckReq = m.Acked.Add(int32(1000*(from-int(st.Source))+rng.IntN(4))), nil, false
		if rng.IntN(12) == 0 {
			k.Op, k.Syndrome, k.PSN, payload = rocev2.CNP, 0, 0, rocev2.CNPPayload
		}
	default:
		if rng.IntN(5) != 0 {
			from = 0
		}
		k.Op = []rocev2.Opcode{rocev2.SendOnly, rocev2.WriteOnly, rocev2.WriteOnly, rocev2.SendOnlyInv, rocev2.ReadRequest}[rng.IntN(5)*rng.IntN(5)/4]
		if k.PSN = 0; from == 0 {
			k.PSN = st.Nxt.Add(int32(rng.IntN(5) - 3))
		}
		k.VA, k.RKey, k.DMALen = 0x1000+uint64(rng.IntN(1<<10)), 0x77, 64
		if k.Op == rocev2.ReadRequest {
			payload = nil
		}
	}
	var copied GroupCopy
	b.w.copyGroup(&copied)
	copied.makePorts()
	copied.now = b.w.now
	e := ExplainedPacket{Port: -1, AnyQPN: true, KnownPSN: true, KnownPayload: true, Packet: mcast.Packet{
		Src: b.hosts[from].IPv4, Op: k.Op, AckReq: k.AckReq, BECN: k.BECN, PSN: k.PSN, Payload: uint16(len(payload)), VA: k.VA, RKey: k.RKey, DMALen: k.DMALen,
		Syndrome: k.Syndrome, Verified: true,
	}}
	if !k.Op.Is(rocev2.OpRETH) {
		e.VA, e.DMALen = 0, 0
	}
	if !k.Op.Is(rocev2.OpRETH | rocev2.OpIETH) {
		e.RKey = 0
	}
	x := copied.Explain(&e)
	drops := b.w.count.drops()
	d := b.take(from, &k, payload)
	b.w.servePacket(from, d)
	want := make([][]string, len(b.w.ports))
	stored := make([]int, len(b.w.ports)) // frames whose bytes are not said
	for i := range x.Frames {
		f := &x.Frames[i]
		if f.Lost != "" {
			continue
		}
		if f.Bytes == nil {
			stored[f.Port]++
			continue
		}
		want[f.Port] = append(want[f.Port], fieldsOf(t, f.Bytes))
	}
	for i, frames := range b.staged() {
		var got []string
		for _, f := range frames {
			got = append(got, fieldsOf(t, f))
		}
		if len(got) != len(want[i])+stored[i] {
			t.Fatalf("%v of %d with PSN %x: %d frames leave by port %d, %d and %d of the store are said:\n%v", k.Op.Name(), from, uint32(k.PSN), len(got), i, len(want[i]), stored[i], x.Steps)
		}
		for _, w := range want[i] {
			if !slices.Contains(got, w) {
				t.Fatalf("%v of %d with PSN %x: said is\n%s\nby port %d leave\n%v\n%v", k.Op.Name(), from, uint32(k.PSN), w, i, got, x.Steps)
			}
		}
	}
	for name, n := range b.w.count.drops() {
		if n != drops[name] && name != x.Reason.String() && name != dropPortDown.String() {
			t.Fatalf("%v of %d with PSN %x: counted as %s, said is %s: %v", k.Op.Name(), from, uint32(k.PSN), name, x.Reason, x.Steps)
		}
	}
}

// TestExplainedSourceGuard explains packets that come by other ports than their senders'.
func TestExplainedSourceGuard(t *testing.T) {
	b := newBench(t, 3)
	for _, c := range []struct {
		port int
		want string
	}{{-1, ""}, {0, ""}, {1, "source_guard"}} {
		var copied GroupCopy
		b.w.copyGroup(&copied)
		copied.makePorts()
		x := copied.Explain(&ExplainedPacket{Port: c.port, AnyQPN: true, Packet: mcast.Packet{Src: b.hosts[0].IPv4, Op: rocev2.SendOnly, Verified: true}})
		if x.Refused != c.want || len(x.Steps) == 0 || (c.want == "") != (len(x.Frames) == 2) {
			t.Errorf("port %d: refused for %q, %d frames, %v", c.port, x.Refused, len(x.Frames), x.Steps)
		}
	}
}

// BenchmarkCopyGroup measures how long the worker serves nothing for an explanation.
func BenchmarkCopyGroup(b *testing.B) {
	for _, hosts := range []int{4, 16} {
		b.Run(fmt.Sprint(hosts), func(b *testing.B) {
			s := newBench(b, hosts)
			s.send(0, 64)
			for b.Loop() {
				var c GroupCopy
				s.w.copyGroup(&c)
			}
		})
	}
}
