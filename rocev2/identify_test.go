// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
)

// A switch answers an identification with its label and its port's MAC address, and repeats
// the nonce; a host that returns the data as they are is told from it.
func TestIdentification(t *testing.T) {
	us, them := MAC{2, 0, 0, 0, 0, 1}, MAC{2, 0, 0, 0, 0, 9}
	nonce := Nonce{1, 2, 3, 15: 9}
	for _, c := range []struct{ src, dst string }{{"10.0.0.9", "10.77.254.1"}, {"fd00::9", "fd00:77::1"}} {
		for _, tagged := range []bool{false, true} {
			path := Path{SrcMAC: them, DstMAC: us, Src: netip.MustParseAddr(c.src), Dst: netip.MustParseAddr(c.dst), Tagged: tagged, TCI: 5}
			request := make([]byte, IdentifyRequestLen)
			request = request[:BuildIdentifyRequest(request, &path, nonce)]
			var f, g Frame
			if r := Decode(request, &f); r != OK || len(request) == 0 {
				t.Fatal(r)
			}
			if x, ok := DecodeIdentification(&f); ok {
				t.Errorf("%s: a request is read as the answer %+v", c.dst, x)
			}
			b := make([]byte, 200)
			n, r := BuildEchoReply(b, &f, us)
			if r != OK || n != len(request) || Decode(b[:n], &g) != OK {
				t.Fatalf("%s: %v, %d bytes", c.dst, r, n)
			}
			if x, ok := DecodeIdentification(&g); !ok || x != (Identification{Nonce: nonce, Switch: true, MAC: us}) {
				t.Errorf("%s: %+v, %v", c.dst, x, ok)
			}
			// A host's answer.
			q := b[g.l4:n]
			copy(q[echoLen:], f.buf[f.l4+echoLen:])
			back := Path{Src: path.Dst, Dst: path.Src}
			putEchoChecksum(&back, q)
			if x, ok := DecodeIdentification(&g); !ok || x.Switch || x.Nonce != nonce {
				t.Errorf("%s: a host's answer: %+v, %v", c.dst, x, ok)
			}
			kind, whole := g.Kind, g.buf
			for name, change := range map[string]func(){
				"a wrong checksum": func() { q[len(q)-1]++ },
				"another label":    func() { q[echoLen]++; putEchoChecksum(&back, q) },
				"another code":     func() { q[1] = 1; putEchoChecksum(&back, q) },
				"a longer answer":  func() { g.buf = b[:n+2] },
				"another protocol": func() { g.Kind = KindUDP },
				"a part":           func() { g.rest = 1 },
			} {
				was := slices.Clone(b)
				change()
				if x, ok := DecodeIdentification(&g); ok {
					t.Errorf("%s: %s is read as %+v", c.dst, name, x)
				}
				copy(b, was)
				g.Kind, g.buf, g.rest = kind, whole, 0
			}
			if n := BuildIdentifyRequest(b[:len(request)-1], &path, nonce); n != 0 {
				t.Errorf("%s: %d bytes in a buffer that is too short", c.dst, n)
			}
		}
	}
	if n := BuildIdentifyRequest(make([]byte, 200), &Path{Src: netip.MustParseAddr("10.0.0.9"), Dst: netip.MustParseAddr("fd00::1")}, nonce); n != 0 {
		t.Errorf("%d bytes with addresses of two families", n)
	}
}

// An advertisement says whose MAC address it is, and whether the target itself or a proxy has
// sent it; a changed one is refused.
func TestNeighborAdvertisement(t *testing.T) {
	target, from := netip.MustParseAddr("fd00:77::1"), netip.MustParseAddr("fd00::9")
	us := MAC{2, 0, 0, 0, 0, 1}
	for _, c := range []struct {
		flags uint32
		own   bool
	}{{naSolicited | naOverride, true}, {naSolicited, false}} {
		b := make([]byte, 200)
		path := Path{SrcMAC: MAC{2, 0, 0, 0, 0, 7}, Src: target, Dst: from}
		b = b[:buildND(b, &path, icmpNeighborAdvertisement, c.flags, target, optTargetLLA, us)]
		var f Frame
		var a NeighborAdvertisement
		if r := Decode(b, &f); r != OK {
			t.Fatal(r)
		}
		if r := DecodeNeighborAdvertisement(&f, &a); r != OK || a != (NeighborAdvertisement{Target: target, MAC: us, Override: c.own}) {
			t.Errorf("%v, %+v", r, a)
		}
		if r := DecodeNeighborSolicitation(&f, &NeighborSolicitation{}); r == OK {
			t.Error("an advertisement is read as a solicitation")
		}
		f.IPv6().SetHopLimit(64)
		if r := DecodeNeighborAdvertisement(&f, &a); r != ReasonBadND {
			t.Errorf("from another network: %v", r)
		}
		f.IPv6().SetHopLimit(ndHopLimit)
		b[len(b)-1]++
		if r := DecodeNeighborAdvertisement(&f, &a); r != ReasonICMPv6Checksum {
			t.Errorf("changed: %v", r)
		}
		b[len(b)-1]--
		at := len(b) - ndOptLen + 1
		b[at] = 0 // an option without length
		binary.BigEndian.PutUint16(b[f.l4+2:], 0)
		binary.BigEndian.PutUint16(b[f.l4+2:], transportChecksum(f.Src(), f.Dst(), ProtoICMPv6, b[f.l4:]))
		if r := DecodeNeighborAdvertisement(&f, &a); r != ReasonBadND {
			t.Errorf("a malformed option: %v", r)
		}
	}
}
