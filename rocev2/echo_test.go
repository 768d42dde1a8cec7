// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
)

// echoRequest is an echo request with the given number of bytes of data.
func echoRequest(p *Path, data int) []byte {
	b := make([]byte, 2000)
	n, at := echoLen+data, p.l2Len()+p.ipLen()
	kind, proto := byte(icmpEchoRequest), ProtoICMP
	if p.Dst.Is6() {
		kind, proto = icmpv6EchoRequest, ProtoICMPv6
	}
	p.putIP(b, proto, n)
	q := b[at : at+n]
	q[0] = kind
	binary.BigEndian.PutUint32(q[4:], 0x12345678) // identifier and sequence number
	for i := range data {
		q[echoLen+i] = byte(i + 1)
	}
	sum := Checksum(q, 0)
	if p.Dst.Is6() {
		sum = transportChecksum(p.Src, p.Dst, proto, q)
	}
	binary.BigEndian.PutUint16(q[2:4], sum)
	return b[:at+n]
}

func TestEchoReply(t *testing.T) {
	us, them := MAC{2, 0, 0, 0, 0, 1}, MAC{2, 0, 0, 0, 0, 9}
	for _, c := range []struct{ src, dst string }{{"10.0.0.9", "10.77.254.1"}, {"fd00::9", "fd00:77::1"}} {
		for _, data := range []int{0, 1, 56, 1000} {
			for _, tagged := range []bool{false, true} {
				path := Path{SrcMAC: them, DstMAC: us, Src: netip.MustParseAddr(c.src), Dst: netip.MustParseAddr(c.dst), Tagged: tagged, TCI: 0x6005, TOS: 0x48}
				request := echoRequest(&path, data)
				var f, g Frame
				if r := Decode(request, &f); r != OK {
					t.Fatal(r)
				}
				b := make([]byte, 2000)
				n, r := BuildEchoReply(b, &f, us)
				if r != OK || n != len(request) {
					t.Fatalf("%v, %d bytes of %d", r, n, len(request))
				}
				if r := Decode(b[:n], &g); r != OK {
					t.Fatal(r)
				}
				p, q := f.buf[f.l4:], g.buf[g.l4:]
				want := byte(icmpEchoReply)
				if g.v6 {
					want = icmpv6EchoReply
				}
				if g.Src() != path.Dst || g.Dst() != path.Src || g.Eth().Dst() != them || g.Eth().Src() != us || q[0] != want || !bytes.Equal(p[4:], q[4:]) || echoChecksum(&g, q) != 0 {
					t.Errorf("%s, %d bytes: reply %x to %x", c.dst, data, b[:n], request)
				}
				if tags, tci := g.VLAN(); (tags == 1) != tagged || tagged && tci != path.TCI {
					t.Errorf("%d tags, TCI %#x", tags, tci)
				}
				if n, r := BuildEchoReply(b[:len(request)-1], &f, us); n != 0 || r != OK {
					t.Errorf("too short a buffer: %d, %v", n, r)
				}
			}
		}
	}
}

func TestEchoRefusals(t *testing.T) {
	for _, c := range []struct{ src, dst string }{{"10.0.0.9", "10.77.254.1"}, {"fd00::9", "fd00:77::1"}} {
		path := Path{Src: netip.MustParseAddr(c.src), Dst: netip.MustParseAddr(c.dst)}
		at := path.l2Len() + path.ipLen()
		for name, change := range map[string]func([]byte) []byte{
			"corrupted":  func(b []byte) []byte { b[len(b)-1]++; return b },
			"no request": func(b []byte) []byte { b[at]++; b[at+2]--; return b },
			"code":       func(b []byte) []byte { b[at+1]++; b[at+3]--; return b },
			"short": func(b []byte) []byte {
				q := path
				q.putIP(b, map[bool]uint8{true: ProtoICMP, false: ProtoICMPv6}[path.Dst.Is4()], 7)
				return b[:at+7]
			},
		} {
			var f Frame
			if r := Decode(change(echoRequest(&path, 8)), &f); r != OK {
				t.Fatal(name, r)
			}
			if n, r := BuildEchoReply(make([]byte, 2000), &f, MAC{}); n != 0 || r != ReasonBadEcho {
				t.Errorf("%s: %d bytes, %v", name, n, r)
			}
		}
	}
	for _, src := range []string{"0.0.0.0", "224.0.0.1", "255.255.255.255"} {
		path := Path{Src: netip.MustParseAddr(src), Dst: netip.MustParseAddr("10.77.254.1")}
		var f Frame
		Decode(echoRequest(&path, 8), &f)
		if n, r := BuildEchoReply(make([]byte, 2000), &f, MAC{}); n != 0 || r != ReasonBadEcho {
			t.Errorf("from %s: %d bytes, %v", src, n, r)
		}
	}
}
