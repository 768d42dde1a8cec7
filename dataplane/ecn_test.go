// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"bytes"
	"math"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// The share of marked frames follows the depth: none to kmin, all above kmax,
// and a straight line to pmax between.
func TestMarkingFollowsTheDepth(t *testing.T) {
	const n = 100_000
	for _, c := range []struct {
		ecn   config.ECN
		depth int
		want  float64
	}{
		{config.ECN{KMin: 1000, KMax: 2000, PMax: 0.2}, 0, 0},
		{config.ECN{KMin: 1000, KMax: 2000, PMax: 0.2}, 1000, 0},
		{config.ECN{KMin: 1000, KMax: 2000, PMax: 0.2}, 1250, 0.05},
		{config.ECN{KMin: 1000, KMax: 2000, PMax: 0.2}, 1500, 0.1},
		{config.ECN{KMin: 1000, KMax: 2000, PMax: 0.2}, 2000, 0.2},
		{config.ECN{KMin: 1000, KMax: 2000, PMax: 0.2}, 2001, 1},
		{config.ECN{KMin: 0, KMax: 1 << 30, PMax: 1}, 1 << 29, 0.5},
		{config.ECN{KMin: 0, KMax: 1 << 30, PMax: 1}, 1 << 30, 1},
		{config.ECN{KMin: 1000, KMax: 2000, PMax: 0}, 2000, 0},
		{config.ECN{KMin: 1000, KMax: 2000, PMax: 0}, 2001, 1},
		{config.ECN{KMin: 1000, KMax: 1000, PMax: 0.5}, 1000, 0},
		{config.ECN{KMin: 1000, KMax: 1000, PMax: 0.5}, 1001, 1},
		{config.ECN{}, 1 << 30, 0},
	} {
		m := newMarker(c.ecn, 7)
		again := newMarker(c.ecn, 7)
		got := 0
		for range n {
			yes := m.mark(c.depth)
			if yes {
				got++
			}
			if again.mark(c.depth) != yes {
				t.Fatalf("%+v: the same seed does not draw the same", c)
			}
		}
		tolerance := 4 * math.Sqrt(c.want*(1-c.want)/n) // four standard deviations
		if share := float64(got) / n; math.Abs(share-c.want) > tolerance {
			t.Errorf("%+v: %v marked", c, share)
		}
	}
	a, b := newMarker(config.ECN{}, 1), newMarker(config.ECN{}, 2)
	if a.draw() == b.draw() {
		t.Error("two seeds draw alike")
	}
}

// The numbers are those of splitmix64, as its author's code prints them for seed 0.
func TestMarkerDrawsSplitmix64(t *testing.T) {
	m := newMarker(config.ECN{}, 0)
	for i, want := range []uint64{0xE220A839, 0x6E789E6A, 0x06C45D18, 0xF88BB8A8} {
		if got := m.draw(); got != want {
			t.Errorf("number %d is %08x, want %08x", i, got, want)
		}
	}
}

// Of a packet of any other kind than ECT nothing changes; of ECT, the ECN field
// becomes CE and nothing else but the IPv4 checksum, which stays right, or wrong
// by as much. The ICRC stays valid (conformance check 5).
func TestMarkChangesTheECNFieldOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v6 := rapid.Bool().Draw(t, "v6")
		in := rocev2.Path{
			Src: netip.MustParseAddr("10.1.2.3"), Dst: netip.MustParseAddr("10.77.254.1"), SrcPort: 0xC123,
			TOS: rapid.Byte().Draw(t, "tos"), ID: rapid.Uint16().Draw(t, "id"), TTL: rapid.ByteRange(1, 255).Draw(t, "ttl"),
			FlowLabel: rapid.Uint32Range(0, 0xFFFFF).Draw(t, "flow"),
		}
		if v6 {
			in.Src, in.Dst = netip.MustParseAddr("fd77::3"), netip.MustParseAddr("fd77::6c65:1")
		}
		buf := make([]byte, 2048)
		n := rocev2.BuildPacket(buf, &in, &rocev2.Packet{Op: rocev2.SendOnly, DestQP: 1}, rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(t, "payload"))
		l3 := buf[rocev2.EthernetLen:n]
		before := bytes.Clone(l3)
		p := &egress{ring: txRing{bytes: 5000}, ecn: newMarker(config.ECN{KMin: 100, KMax: 200, PMax: 1}, 1)}
		p.mark(l3)
		want, marked := in, uint64(0)
		if e := in.TOS & 3; e == 1 || e == 2 {
			want.TOS |= 3
			marked = 1
		}
		expect := make([]byte, 2048)
		rocev2.BuildPacket(expect, &want, &rocev2.Packet{Op: rocev2.SendOnly, DestQP: 1}, l3[n-rocev2.EthernetLen:])
		head := rocev2.IPv4Len
		if v6 {
			head = rocev2.IPv6Len
		}
		if !v6 {
			copy(expect[rocev2.EthernetLen+2:], before[2:4]) // total length: expect has no payload
			rocev2.IPv4(expect[rocev2.EthernetLen:]).UpdateChecksum()
		} else {
			copy(expect[rocev2.EthernetLen+4:], before[4:6])
		}
		if !bytes.Equal(l3[:head], expect[rocev2.EthernetLen:][:head]) || !bytes.Equal(l3[head:], before[head:]) || p.ceMarked != marked {
			t.Fatalf("marked %d\n got %x\nwant %x\n was %x", p.ceMarked, l3[:head], expect[rocev2.EthernetLen:][:head], before[:head])
		}
		var f rocev2.Frame
		if r := rocev2.Decode(buf[:n], &f); r != rocev2.OK || !f.VerifyICRC() {
			t.Fatalf("decode %v, ICRC right: %v", r, f.VerifyICRC())
		}
	})
}

// Each copy is marked by its own port's queue, rewritten or forwarded, whichever
// is made first and in whichever frame; the packet itself is not.
func TestMarkIsTheCopys(t *testing.T) {
	for _, kind := range []mcast.LegKind{mcast.Connected, mcast.Forwarded} {
		for _, ecn := range []rocev2.ECN{rocev2.NotECT, rocev2.ECT0, rocev2.ECT1, rocev2.CE} {
			for congested := range 2 {
				w := bareWorker(t, 2)
				p := w.ports[congested]
				p.ring.bytes, p.ecn = 5000, newMarker(config.ECN{KMin: 100, KMax: 200, PMax: 1}, 1)
				group := netip.MustParseAddr("10.9.9.9")
				w.groups[0] = groupTable{ip: group, qpn: 0x4711}
				for i := range 2 {
					w.groups[0].legs = append(w.groups[0].legs, leg{kind: kind, port: i, mac: rocev2.MAC{2, 7, byte(i)}, ip: rocev2.KeyOf(netip.MustParseAddr("10.0.0.7")), qpn: 9})
				}
				addr, _ := w.pool.TakeOne()
				addr += 256
				in := rocev2.Path{Src: netip.MustParseAddr("10.0.0.1"), Dst: group, TOS: 0x68 | uint8(ecn)}
				n := rocev2.BuildPacket(w.umem.Data(addr, 2048), &in, &rocev2.Packet{Op: rocev2.SendOnly, DestQP: 0x4711}, []byte("abcd"))
				if r := rocev2.Decode(w.umem.Data(addr, uint32(n)), &w.frame); r != rocev2.OK {
					t.Fatal(r)
				}
				d := xsk.Desc{Addr: addr, Len: uint32(n)}
				w.copy(&mcast.Copy{Leg: 0, PSN: 3}, &w.frame, []xsk.Desc{d}, false)
				if got := w.frame.IPv4().ECN(); got != ecn {
					t.Errorf("kind %v: the packet itself has ECN %d, had %d", kind, got, ecn)
				}
				w.copy(&mcast.Copy{Leg: 1, PSN: 3}, &w.frame, []xsk.Desc{d}, true)
				for i, p := range w.ports {
					want, marked := ecn, uint64(0)
					if i == congested && (ecn == rocev2.ECT0 || ecn == rocev2.ECT1) {
						want, marked = rocev2.CE, 1
					}
					var f rocev2.Frame
					if r := rocev2.Decode(w.umem.Data(p.staged[0].Addr, p.staged[0].Len), &f); r != rocev2.OK || f.IPv4().TOS() != 0x68|uint8(want) || p.ceMarked != marked {
						t.Errorf("kind %v, port %d, congested %d, ECN %d: %v, TOS %#x, %d marked", kind, i, congested, ecn, r, f.IPv4().TOS(), p.ceMarked)
					}
					if h := f.IPv4(); rocev2.Checksum(h[:h.HeaderLen()], 0) != 0 {
						t.Errorf("kind %v, port %d: the IPv4 checksum is wrong", kind, i)
					}
				}
			}
		}
	}
}
