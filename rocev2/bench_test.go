// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import (
	"fmt"
	"testing"
)

func BenchmarkDecode(b *testing.B) {
	for name, p := range map[string]Path{"v4": v4Path(), "v6": v6Path()} {
		buf := mustBuild(b, &p, &Packet{Op: WriteFirst}, make([]byte, 1024))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var f Frame
			for b.Loop() {
				if Decode(buf, &f) != OK {
					b.Fatal("refused")
				}
			}
		})
	}
}

func BenchmarkFullICRC(b *testing.B) {
	for _, n := range []int{0, 64, 1024, 4096} {
		p := v4Path()
		f := mustDecode(b, mustBuild(b, &p, &Packet{Op: SendOnly}, make([]byte, n)))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(f.Len() - EthernetLen))
			for b.Loop() {
				if !f.VerifyICRC() {
					b.Fatal("wrong")
				}
			}
		})
	}
}

func BenchmarkIncrementalICRC(b *testing.B) {
	p := v4Path()
	z := NewOperators(MaxShift)
	leg := LegDelta(p.Src, p.Dst, p.Dst, p.Src, 0x10, 0x20, 0)
	var c uint32
	psn := PSN(0)
	run := func(name string, fn func()) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				fn()
			}
		})
	}
	run("leg+PSN", func() { // a MIDDLE: addresses, QPN and PSN
		psn = psn.Next()
		c ^= z.Fields(0, 1024).PSN(leg ^ DiffBTH2(psn, psn^0x155555, false))
	})
	run("leg+PSN+RETH", func() { // a FIRST: VA and R_Key too
		psn = psn.Next()
		fs := z.Fields(RETHLen, 1024)
		c ^= fs.PSN(leg^DiffBTH2(psn, psn^0x155555, false)) ^ fs.RETH(0x7f0000001000, 0x7fee00003000+uint64(psn), 1, uint32(psn))
	})
	run("AETH", func() { psn = psn.Next(); c ^= z.Fields(AETHLen, 0).Ext(0, Diff32(0, uint32(psn))) })
	none := &Operators{}
	run("leg+PSN without tables", func() {
		psn = psn.Next()
		c ^= none.Fields(0, 1024).PSN(leg ^ DiffBTH2(psn, psn^0x155555, false))
	})
	run("LegDelta", func() { c ^= LegDelta(p.Src, p.Dst, p.Dst, p.Src, 0x10, 0x20, 0) })
	old := mustDecode(b, mustBuild(b, &p, &Packet{Op: WriteFirst}, make([]byte, 1024)))
	changed := mustDecode(b, mustBuild(b, &p, &Packet{Op: WriteFirst, PSN: 5, RKey: 9}, make([]byte, 1024)))
	run("HeaderDelta", func() { d, _ := z.HeaderDelta(old, changed); c ^= d })
	run("NewOperator", func() { c ^= NewOperator(1052).Apply(c) })
	sink += uint64(c)
}

func BenchmarkNewOperatorsAll(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		NewOperators(MaxShift)
	}
}

func BenchmarkBuild(b *testing.B) {
	p := v4Path()
	buf := make([]byte, 2048)
	payload := make([]byte, 1024)
	k := Packet{Op: WriteOnly, DestQP: 0x100}
	for name, fn := range map[string]func() int{
		"ACK":       func() int { return BuildAck(buf, &p, 0x100, 5, SyndromeACK, 3, false) },
		"CNP":       func() int { return BuildCNP(buf, &p, 0x100) },
		"WRITE1024": func() int { return BuildPacket(buf, &p, &k, payload) },
		"UDP1024":   func() int { return BuildUDP(buf, &p, 9000, payload) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if fn() == 0 {
					b.Fatal("not built")
				}
			}
		})
	}
}
