// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"bytes"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// bareWorker returns a worker with UMEM and tables, and ports without sockets:
// enough to make copies.
func bareWorker(t *testing.T, ports int) *worker {
	t.Helper()
	umem, err := xsk.NewUmem(64, 4096)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { umem.Close() })
	w := &worker{
		frameSupply: frameSupply{umem: umem, pool: xsk.NewPool(umem)},
		forwarding:  forwarding{core: newCore(mcast.Limits{Groups: 4}), groups: make([]groupTable, 4), ops: rocev2.NewOperators(2048)},
		scratch:     scratch{chains: newChains()},
		retained:    newRetention(umem),
		meters:      newMeters(4),
	}
	for i := range ports {
		w.ports = append(w.ports, &port{
			portIdentity: portIdentity{mac: rocev2.MAC{2, 0, 0, 0, 1, byte(i)}, ifindex: i + 1, multiBuffer: true},
			linkState:    linkState{mtu: 9000}, egress: egress{stageLimit: 64},
		})
	}
	return w
}

// receiveFrame puts a frame into the UMEM as the kernel does: after 256 bytes.
func (w *worker) receiveFrame(t *rapid.T, build func(b []byte) int) xsk.Desc {
	addr, ok := w.pool.TakeOne()
	if !ok {
		t.Fatal("no free frame")
	}
	addr += 256
	n := build(w.umem.Data(addr, uint32(w.umem.Room(addr))))
	if n == 0 {
		t.Fatal("the builder refused")
	}
	if r := rocev2.Decode(w.umem.Data(addr, uint32(n)), &w.frame); r != rocev2.OK {
		t.Fatalf("decode: %v", r)
	}
	return xsk.Desc{Addr: addr, Len: uint32(n)}
}

var requests = []rocev2.Opcode{
	rocev2.SendFirst, rocev2.SendMiddle, rocev2.SendLast, rocev2.SendLastImm, rocev2.SendOnly, rocev2.SendOnlyImm,
	rocev2.WriteFirst, rocev2.WriteMiddle, rocev2.WriteLast, rocev2.WriteLastImm, rocev2.WriteOnly, rocev2.WriteOnlyImm,
	rocev2.SendLastInv, rocev2.SendOnlyInv,
}

// A copy is the packet that the sender would have built for that member itself,
// with a right ICRC if and only if the received one was right (conformance
// checks 6, 7, 8, 10, 11).
func TestCopyIsWhatTheSenderWouldHaveBuilt(t *testing.T) {
	w := bareWorker(t, 2)
	rapid.Check(t, func(t *rapid.T) {
		v6 := rapid.Bool().Draw(t, "v6")
		addr := func(name string) netip.Addr {
			if v6 {
				return netip.AddrFrom16([16]byte(append([]byte{0xfd, 0x77}, rapid.SliceOfN(rapid.Byte(), 14, 14).Draw(t, name)...)))
			}
			return netip.AddrFrom4([4]byte(append([]byte{10}, rapid.SliceOfN(rapid.Byte(), 3, 3).Draw(t, name)...)))
		}
		u24 := rapid.Uint32Range(0, rocev2.PSNMask)
		group, src, dst := addr("group"), addr("src"), addr("dst")
		in := rocev2.Path{
			Src: src, Dst: group, SrcMAC: rocev2.MAC{2, 9}, DstMAC: w.ports[0].mac, SrcPort: rapid.Uint16().Draw(t, "sport"),
			TOS: rapid.Byte().Draw(t, "tos"), ID: rapid.Uint16().Draw(t, "id"), TTL: rapid.ByteRange(1, 255).Draw(t, "ttl"),
			Tagged: rapid.Bool().Draw(t, "tagged"), TCI: rapid.Uint16().Draw(t, "tci"), FlowLabel: rapid.Uint32Range(0, 0xFFFFF).Draw(t, "flow"),
		}
		k := rocev2.Packet{
			Op: rapid.SampledFrom(requests).Draw(t, "op"), DestQP: 0x4711, PSN: rocev2.PSN(u24.Draw(t, "psn")),
			AckReq: rapid.Bool().Draw(t, "ackreq"), SE: rapid.Bool().Draw(t, "se"), MigReq: rapid.Bool().Draw(t, "m"),
			VA: rapid.Uint64().Draw(t, "va"), RKey: rapid.Uint32().Draw(t, "rkey"), DMALen: rapid.Uint32().Draw(t, "dmalen"),
			Imm: rapid.Uint32().Draw(t, "imm"), PKey: rapid.Uint16().Draw(t, "pkey"), BECN: rapid.Bool().Draw(t, "becn"),
		}
		payload := rapid.SliceOfN(rapid.Byte(), 0, 1024).Draw(t, "payload")
		damage := rapid.Bool().Draw(t, "damage") && len(payload) > 0
		udpSum := rapid.Uint16().Draw(t, "udpsum")
		d := w.receiveFrame(t, func(b []byte) int { return rocev2.BuildPacket(b, &in, &k, payload) })
		w.frame.UDP().SetChecksum(udpSum)
		if damage {
			w.frame.Payload()[0] ^= 0x10
		}

		l := leg{
			kind: mcast.Connected, port: 1, mac: rocev2.MAC{2, 7}, ip: rocev2.KeyOf(dst), qpn: rocev2.QPN(u24.Draw(t, "qpn")),
			vlan: rapid.SampledFrom([]uint16{0, 1, 4094}).Draw(t, "vlan"),
		}
		w.groups[0] = groupTable{ip: group, qpn: 0x4711, legs: []leg{l}}
		c := mcast.Copy{PSN: rocev2.PSN(u24.Draw(t, "newpsn")), VA: rapid.Uint64().Draw(t, "newva"), RKey: rapid.Uint32().Draw(t, "newkey")}
		if k.Op.Is(rocev2.OpRETH) && rapid.Bool().Draw(t, "reth") {
			c.Flags = mcast.SetRETH
		}
		if k.Op.Is(rocev2.OpIETH) && rapid.Bool().Draw(t, "ieth") {
			c.Flags = mcast.SetIETH
		}
		last := rapid.Bool().Draw(t, "last")
		free := w.pool.Len()
		if used := w.copy(&c, &w.frame, []xsk.Desc{d}, last); used != last {
			t.Fatalf("copy returned %v, last is %v", used, last)
		}

		want := k
		want.DestQP, want.PSN = l.qpn, c.PSN
		if c.Flags&mcast.SetRETH != 0 {
			want.VA, want.RKey = c.VA, c.RKey
		}
		if c.Flags&mcast.SetIETH != 0 {
			want.RKey = c.RKey
		}
		tci := uint16(0)
		if in.Tagged {
			tci = in.TCI &^ 0x0FFF
		}
		out := in
		out.Src, out.Dst, out.SrcMAC, out.DstMAC = group, dst, w.ports[1].mac, l.mac
		out.Tagged, out.TCI = l.vlan != 0, tci|l.vlan
		expect := make([]byte, 2048)
		n := rocev2.BuildPacket(expect, &out, &want, payload)
		if damage { // the ICRC stays that of the undamaged packet: wrong
			expect[n-rocev2.ICRCLen-(len(payload)+3)&^3] ^= 0x10
		}
		p := w.ports[1]
		if len(p.staged) != 1 {
			t.Fatalf("%d frames staged", len(p.staged))
		}
		got := w.umem.Data(p.staged[0].Addr, p.staged[0].Len)
		if len(got) < minFrame || !bytes.Equal(got[:n], expect[:n]) {
			t.Fatalf("copy differs\n got %x\nwant %x", got[:n], expect[:n])
		}
		var f rocev2.Frame
		if r := rocev2.Decode(got, &f); r != rocev2.OK || f.VerifyICRC() == damage {
			t.Fatalf("decode of the copy: %v, ICRC right: %v, damaged: %v", r, f.VerifyICRC(), damage)
		}
		w.pool.GiveOne(p.staged[0].Addr)
		if !last {
			w.pool.GiveOne(d.Addr)
		}
		p.staged = p.staged[:0]
		if w.pool.Len() != free+1 {
			t.Fatalf("%d free frames, want %d", w.pool.Len(), free+1)
		}
	})
}

// A forwarded leg gets the packet as it is, under another Ethernet header.
func TestForwardedLegKeepsThePacket(t *testing.T) {
	w := bareWorker(t, 2)
	rapid.Check(t, func(t *rapid.T) {
		in := rocev2.Path{Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.9.9.9"), Tagged: rapid.Bool().Draw(t, "tagged")}
		k := rocev2.Packet{Op: rocev2.WriteOnly, DestQP: 0x4711, PSN: 5, VA: 1, RKey: 2, DMALen: 3}
		d := w.receiveFrame(t, func(b []byte) int { return rocev2.BuildPacket(b, &in, &k, []byte{1, 2, 3}) })
		before := bytes.Clone(w.frame.L3())
		w.groups[0] = groupTable{ip: in.Dst, qpn: 0x4711, legs: []leg{{kind: mcast.Forwarded, port: 1, neighbour: 9}}}
		for _, other := range []neighbour{{}, {id: 8, mac: rocev2.MAC{2, 8}}} { // while it is down nothing leaves
			w.ports[1].neighbour, w.count.drop[dropNeighbourDown] = other, 0
			if w.copy(&mcast.Copy{PSN: 5}, &w.frame, []xsk.Desc{d}, true) || len(w.ports[1].staged) != 0 || w.count.drop[dropNeighbourDown] != 1 {
				t.Fatalf("%d frames leave for neighbour 9 by the port of neighbour %d; drops %v", len(w.ports[1].staged), other.id, w.count.drops())
			}
		}
		w.ports[1].neighbour = neighbour{id: 9, mac: rocev2.MAC{2, 8}}
		w.copy(&mcast.Copy{PSN: 5}, &w.frame, []xsk.Desc{d}, true)
		p := w.ports[1]
		var f rocev2.Frame
		if r := rocev2.Decode(w.umem.Data(p.staged[0].Addr, p.staged[0].Len), &f); r != rocev2.OK || !bytes.Equal(f.L3(), before) {
			t.Fatalf("decode %v, packet %x, want %x", r, f.L3(), before)
		}
		if f.Eth().Dst() != (rocev2.MAC{2, 8}) || f.Eth().Src() != p.mac {
			t.Fatalf("Ethernet header %x", []byte(f.Eth()))
		}
		w.pool.GiveOne(p.staged[0].Addr)
		p.staged = p.staged[:0]
	})
}
