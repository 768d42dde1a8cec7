// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// cut puts a packet into frames of the UMEM in pieces that end at the given
// offsets and at its end, each 256 bytes into its frame, as the kernel does.
func (w *worker) cut(packet []byte, at ...int) (ds []xsk.Desc) {
	from := 0
	for _, end := range append(at, len(packet)) {
		addr, ok := w.pool.TakeOne()
		if !ok {
			panic("no free frame")
		}
		addr += 256
		n := uint32(copy(w.umem.Data(addr, uint32(w.umem.Room(addr))), packet[from:end]))
		ds = append(ds, xsk.Desc{Addr: addr, Len: n, Options: xsk.PktContd})
		from = end
	}
	ds[len(ds)-1].Options = 0
	return ds
}

// join is the packet in ds.
func (w *worker) join(ds []xsk.Desc) (packet []byte) {
	for _, d := range ds {
		packet = append(packet, w.umem.Data(d.Addr, d.Len)...)
	}
	return packet
}

// A copy of a packet in several buffers is the packet that the sender would have
// built for that member itself, wherever the packet and its ICRC are cut, with a
// right ICRC if and only if the received one was right.
func TestCopyOfAChain(t *testing.T) {
	w := bareWorker(t, 2)
	rapid.Check(t, func(t *rapid.T) {
		free := w.pool.Len()
		v6, forwarded := rapid.Bool().Draw(t, "v6"), rapid.Bool().Draw(t, "forwarded")
		src, dst, group := netip.MustParseAddr("10.1.2.3"), netip.MustParseAddr("10.1.9.8"), netip.MustParseAddr("10.77.254.1")
		if v6 {
			src, dst, group = netip.MustParseAddr("fd77::3"), netip.MustParseAddr("fd77::8"), netip.MustParseAddr("fd77::6c65:1")
		}
		in := rocev2.Path{
			Src: src, Dst: group, SrcMAC: rocev2.MAC{2, 9}, DstMAC: w.ports[0].mac, SrcPort: 0xC001, TTL: 9,
			Tagged: rapid.Bool().Draw(t, "tagged"), TCI: rapid.Uint16().Draw(t, "tci"),
		}
		k := rocev2.Packet{
			Op: rapid.SampledFrom(requests).Draw(t, "op"), DestQP: 0x4711, PSN: 7,
			AckReq: rapid.Bool().Draw(t, "ackreq"), VA: rapid.Uint64().Draw(t, "va"), RKey: 5, DMALen: 77, Imm: 3,
		}
		payload := rapid.SliceOfN(rapid.Byte(), 32, 4096).Draw(t, "payload")
		packet := make([]byte, 5000)
		packet = packet[:rocev2.BuildPacket(packet, &in, &k, payload)]
		damage := rapid.Bool().Draw(t, "damage")
		if damage {
			packet[len(packet)-8] ^= 0x10
		}
		var f rocev2.Frame
		if r := rocev2.Decode(packet, &f); r != rocev2.OK {
			t.Fatal(r)
		}
		headers := len(packet) - f.Tail() - rocev2.ICRCLen
		cuts := rapid.SliceOfNDistinct(rapid.OneOf(rapid.IntRange(headers, len(packet)-1), rapid.IntRange(len(packet)-5, len(packet)-1)), 1, 6, rapid.ID).Draw(t, "cuts")
		slices.Sort(cuts)
		if cuts[0] > 3840 {
			cuts[0] = 3840
		}
		ds := w.decode(w.cut(packet, cuts...))
		if len(ds) != len(cuts)+1 {
			t.Fatalf("%d buffers of %d were decoded; drops %v", len(ds), len(cuts)+1, w.count.drops())
		}

		l := leg{port: 1, mac: rocev2.MAC{2, 7}, ip: rocev2.KeyOf(dst), qpn: 0x99, vlan: rapid.SampledFrom([]uint16{0, 1, 4094}).Draw(t, "vlan")}
		c := mcast.Copy{PSN: 0xABCDEF, VA: rapid.Uint64().Draw(t, "newva"), RKey: rapid.Uint32().Draw(t, "newkey")}
		want, out := k, in
		switch {
		case forwarded:
			l.kind, l.neighbour, c.PSN = mcast.Forwarded, 9, k.PSN
			w.ports[1].neighbour = neighbour{id: 9, mac: l.mac}
		case k.Op.Is(rocev2.OpRETH):
			c.Flags = mcast.SetRETH
			want.VA, want.RKey = c.VA, c.RKey
		case k.Op.Is(rocev2.OpIETH):
			c.Flags = mcast.SetIETH
			want.RKey = c.RKey
		}
		if !k.AckReq && rapid.Bool().Draw(t, "ask") {
			c.Flags |= mcast.SetAckReq
			want.AckReq = true
		}
		want.PSN = c.PSN
		if !forwarded {
			want.DestQP, out.Src, out.Dst = l.qpn, group, dst
		}
		tci := uint16(0)
		if in.Tagged {
			tci = in.TCI &^ 0x0FFF
		}
		out.SrcMAC, out.DstMAC, out.Tagged, out.TCI = w.ports[1].mac, l.mac, l.vlan != 0, tci|l.vlan
		expect := make([]byte, 5000)
		expect = expect[:rocev2.BuildPacket(expect, &out, &want, payload)]
		if damage {
			expect[len(expect)-8] ^= 0x10
		}
		w.groups[0] = groupTable{ip: group, qpn: 0x4711, legs: []leg{l}}
		before := w.join(ds)
		p := w.ports[1]
		for range 2 { // the second time in place
			last := len(p.staged) > 0
			if used := w.copy(&c, &w.frame, ds, last); used != last {
				t.Fatalf("copy returned %v, last is %v", used, last)
			}
			if !last && !bytes.Equal(w.join(ds), before) {
				t.Fatal("the received packet was changed")
			}
		}
		sent := p.staged
		p.staged = p.staged[:0]
		for range 2 {
			n := xsk.ChainLen(sent)
			if got := w.join(sent[:n]); n != len(ds) || !bytes.Equal(got, expect) {
				t.Fatalf("%d buffers of %d; copy differs\n got %x\nwant %x", n, len(ds), got, expect)
			}
			w.freeFrames(sent[:n])
			sent = sent[n:]
		}
		if rocev2.Decode(expect, &f); f.VerifyICRC() == damage {
			t.Fatalf("ICRC right: %v, damaged: %v", f.VerifyICRC(), damage)
		}
		if len(sent) != 0 || w.pool.Len() != free {
			t.Fatalf("%d free frames, want %d", w.pool.Len(), free)
		}
	})
}
