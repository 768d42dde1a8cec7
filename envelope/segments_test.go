// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"net/netip"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

func genRecords(v6 bool) *rapid.Generator[[]MemberRecord] {
	return rapid.Custom(func(t *rapid.T) []MemberRecord {
		n := rapid.IntRange(0, 40).Draw(t, "n")
		size := 4
		if v6 {
			size = 16
		}
		common := rapid.IntRange(0, size).Draw(t, "common")
		base := rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "base")
		psn := func(label string) func() rocev2.PSN {
			one := rapid.Bool().Draw(t, label+" common")
			v := rapid.Uint32Range(0, rocev2.PSNMask)
			first := v.Draw(t, label)
			return func() rocev2.PSN {
				if one {
					return rocev2.PSN(first)
				}
				return rocev2.PSN(v.Draw(t, label))
			}
		}
		sq, rq := psn("sq"), psn("rq")
		windows := rapid.SampledFrom([]int{0, 1, 100}).Draw(t, "windows")
		receive := rapid.SampledFrom([]int{0, 30, 101}).Draw(t, "receive only")
		var ms []MemberRecord
		for range n {
			ip := append([]byte(nil), base...)
			copy(ip[common:], rapid.SliceOfN(rapid.Byte(), size-common, size-common).Draw(t, "ip"))
			a, _ := netip.AddrFromSlice(ip)
			m := MemberRecord{IP: a, QPN: rocev2.QPN(rapid.Uint32Range(0, rocev2.PSNMask).Draw(t, "qpn")), SQPSN: sq(), RQPSN: rq()}
			if rapid.IntRange(0, 100).Draw(t, "window?") < windows {
				m.Window = mcast.Window{Base: rapid.Uint64().Draw(t, "base"), Len: rapid.Uint64().Draw(t, "len"), RKey: rapid.Uint32().Draw(t, "rkey")}
			}
			m.ReceiveOnly = rapid.IntRange(0, 100).Draw(t, "receive only?") < receive
			ms = append(ms, m)
		}
		return ms
	})
}

// TestRoundTrip: what is encoded decodes to the same, in every form of the
// record section, and its size is what the cutter into segments counted.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v6 := rapid.Bool().Draw(t, "v6")
		ms := genRecords(v6).Draw(t, "members")
		m := examples()["Register"]
		if v6 {
			m = examples()["Register-v6"]
		}
		b := m.Body.(*Register).GroupBody
		b.Members = ms
		b.DeadAfter = time.Duration(rapid.Int64Min(0).Draw(t, "dead"))
		m.Body = &Register{b}
		m.Type = TypeRegister
		enc, err := Append([]byte("front"), &m, testKeys, 7)
		if err != nil {
			t.Fatal(err)
		}
		enc = enc[len("front"):]
		got, err := Open(enc, testKeys, false)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, m) {
			t.Fatalf("decoded %+v, want %+v", got.Body, m.Body)
		}
		s := section{v6: v6}
		for i := range ms {
			s = s.add(&ms[0], &ms[i])
		}
		if want := headerLen(v6) + b.size() + s.size() + MACLen; len(enc) != want {
			t.Fatalf("%d bytes, the cutter counts %d", len(enc), want)
		}
	})
}

// TestSegmentsFit: segments are in order, complete, and as large as they may be.
func TestSegmentsFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reg := sample(1, 2)
		reg.Members = genRecords(false).Draw(t, "members")
		mtu := rapid.IntRange(200, 1500).Draw(t, "mtu")
		segs, err := reg.Segments(mtu)
		if err != nil {
			t.Fatal(err)
		}
		var all []MemberRecord
		for i, s := range segs {
			all = append(all, s.Members...)
			m := Message{Header{Total: uint16(len(segs)), Seq: uint16(i), Group: reg.Group, ReplyTo: masterAddr}, s}
			b, err := Append(nil, &m, testKeys, 7)
			if err != nil {
				t.Fatal(err)
			}
			if 20+8+len(b) > mtu {
				t.Fatalf("segment %d is a packet of %d bytes, MTU %d", i, 28+len(b), mtu)
			}
		}
		if !reflect.DeepEqual(all, reg.Members) {
			t.Fatal("members differ")
		}
	})
	if _, err := ptr(sample(1, 2)).Segments(100); err == nil {
		t.Error("members fit into 100 bytes")
	}
}

// TestCapacity counts how many members fit into one packet of 1500 bytes; the
// table is in docs/PROTOCOL.md. The paper's figure is 183, of 7 bytes each.
func TestCapacity(t *testing.T) {
	type form struct {
		name                  string
		v6, prefix, psns, win bool
		want                  int
	}
	for _, f := range []form{
		{"IPv4, any addresses, common PSNs", false, false, false, false, 194},
		{"IPv4, one /24, common PSNs", false, true, false, false, 254}, // all hosts of it
		{"IPv4, any addresses, all PSNs distinct", false, false, true, false, 105},
		{"IPv4, one /24, all PSNs distinct", false, true, true, false, 136},
		{"IPv4, any addresses, common PSNs, windows", false, false, false, true, 49},
		{"IPv4, any addresses, all PSNs distinct, windows", false, false, true, true, 40},
		{"IPv6, any addresses, common PSNs", true, false, false, false, 69},
		{"IPv6, one /64, common PSNs", true, true, false, false, 118},
		{"IPv6, one /64, all PSNs distinct", true, true, true, false, 77},
	} {
		most := 0
		for n := 2; n <= 400 && !(f.prefix && !f.v6 && n > 254); n++ {
			segs, err := capacityReg(n, f.v6, f.prefix, f.psns, f.win).Segments(1500)
			if err != nil {
				t.Fatal(err)
			}
			if len(segs) == 1 {
				most = n
			}
		}
		if most != f.want {
			t.Errorf("%s: %d members, documented %d", f.name, most, f.want)
		}
		t.Logf("%s: %d members", f.name, most)
	}
	// The requirement, through to the bytes and back.
	reg := capacityReg(183, false, false, false, false)
	segs, _ := reg.Segments(1500)
	m := Message{Header{Type: TypeRegister, KeyID: 7, Total: 1, Group: reg.Group, ReplyTo: masterAddr}, segs[0]}
	b, err := Append(nil, &m, testKeys, 7)
	if err != nil || len(segs) != 1 || 28+len(b) > 1500 {
		t.Fatalf("183 members: %d segments, packet of %d bytes, %v", len(segs), 28+len(b), err)
	}
	if got, err := Open(b, testKeys, false); err != nil || !reflect.DeepEqual(got.Body.(*Register).Members, reg.Members) {
		t.Fatalf("183 members do not come back: %v", err)
	}
}

func capacityReg(n int, v6, prefix, psns, win bool) *Registration {
	r := sample(1, 2)
	r.Members = nil
	if v6 {
		r.Group = netip.MustParseAddr("fd00:9::1")
	}
	rnd := random(n)
	for i := range n {
		x := rnd.next()
		a := [16]byte{0xFD, 14: byte(i >> 8), 15: byte(i + 1)}
		if !prefix { // differ in the first byte
			a[0], a[12] = byte(2*i)|0xE1, byte(10+i%100)
			a[13], a[8] = byte(x), byte(x>>8)
		} else if !v6 {
			a[12], a[13], a[14] = 10, 1, 2
		}
		if prefix && v6 {
			a[8] = byte(i) // the /64 is common, no more
		}
		ip := netip.AddrFrom16(a)
		if !v6 {
			ip = netip.AddrFrom4([4]byte(a[12:]))
		}
		m := MemberRecord{IP: ip, QPN: rocev2.QPN(x>>40) | 0x10, SQPSN: 1, RQPSN: 2}
		if psns {
			m.SQPSN, m.RQPSN = rocev2.PSN(rnd.next()>>40), rocev2.PSN(rnd.next()>>40)
		}
		if win {
			m.Window = mcast.Window{Base: x, Len: 1, RKey: uint32(x)}
		}
		r.Members = append(r.Members, m)
	}
	if win {
		r.Window = mcast.Window{Base: 1, Len: 1, RKey: 1}
	}
	return &r
}
