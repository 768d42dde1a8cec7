// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import "testing"

// sink keeps results alive.
var sink uint64

func TestHotPathAllocatesNothing(t *testing.T) {
	z := NewOperators(MaxShift)
	none := &Operators{}
	for name, p := range map[string]Path{"v4": v4Path(), "v6": v6Path()} {
		payload := make([]byte, 1024)
		k := Packet{Op: WriteOnlyImm, DestQP: 0x100, VA: 1 << 40, RKey: 9}
		b := mustBuild(t, &p, &k, payload)
		out := make([]byte, 2048)
		f := mustDecode(t, b)
		g := mustDecode(t, mustBuild(t, &p, &k, payload))
		req := make([]byte, 100)
		var a ARP
		var s NeighborSolicitation
		var ask *Frame
		if p.Dst.Is4() {
			ask = mustDecode(t, req[:BuildARP(req, &p, &ARP{Op: ARPRequest, SenderIP: p.Src, TargetIP: p.Dst})])
		} else {
			ask = mustDecode(t, req[:BuildNeighborSolicitation(req, &p, p.Dst)])
		}
		for what, fn := range map[string]func(){
			"Decode":             func() { var f Frame; sink += uint64(Decode(b, &f)) + uint64(f.Len()) },
			"Decode refused":     func() { var f Frame; sink += uint64(Decode(b[:80], &f)) },
			"accessors":          func() { sink += useAll(f) },
			"VerifyICRC":         func() { f.VerifyICRC() },
			"LegDelta":           func() { sink += uint64(LegDelta(p.Src, p.Dst, p.Dst, p.Src, 1, 2, 0)) },
			"incremental":        func() { fs := z.Fields(20, 1024); sink += uint64(fs.PSN(7) ^ fs.RETH(1, 2, 3, 4) ^ fs.Ext(16, 5)) },
			"incremental, Shift": func() { fs := none.Fields(20, 1024); sink += uint64(fs.PSN(7) ^ fs.RETH(1, 2, 3, 4)) },
			"HeaderDelta":        func() { d, _ := z.HeaderDelta(f, g); sink += uint64(d) },
			"SetECN":             func() { g.SetECN(CE) },
			"ChecksumUpdate64":   func() { sink += uint64(ChecksumUpdate64(1, 2, 3)) },
			"BuildPacket":        func() { sink += uint64(BuildPacket(out, &p, &k, payload)) },
			"BuildAck":           func() { sink += uint64(BuildAck(out, &p, 1, 2, SyndromeACK, 3, false)) },
			"BuildCNP":           func() { sink += uint64(BuildCNP(out, &p, 1)) },
			"BuildUDP":           func() { sink += uint64(BuildUDP(out, &p, 1, payload)) },
			"ARP and ND answered": func() {
				if DecodeARP(ask, &a) == OK {
					sink += uint64(BuildARPReply(out, ask, &a, switchMAC))
				} else if DecodeNeighborSolicitation(ask, &s) == OK {
					sink += uint64(BuildNeighborAdvertisement(out, ask, &s, switchMAC))
				} else {
					t.Error("neither ARP nor ND")
				}
			},
		} {
			if n := testing.AllocsPerRun(100, fn); n != 0 {
				t.Errorf("%s: %s allocates %v times", name, what, n)
			}
		}
	}
}
