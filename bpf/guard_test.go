// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

const (
	inGroup4, inGroup6   = "10.77.3.4", "fd00:77::9"
	outside4, outside6   = "10.78.0.1", "fd00:78::1"
	offSource4, offSend4 = 14 + 12, 14 + 14 // offsets in an untagged frame: source of IPv4, sender of ARP
	offSource6           = 14 + 8
)

// from writes a source address into an untagged frame.
func from(f []byte, at int, addr string) []byte {
	copy(f[at:], netip.MustParseAddr(addr).AsSlice())
	return f
}

// old puts a tag of an EtherType before 802.1ad on a frame.
func old(f []byte, etherType uint16) []byte {
	return slices.Concat(f[:12], []byte{byte(etherType >> 8), byte(etherType), 0, 7}, f[12:])
}

// llc puts a frame into LLC of these bytes, its EtherType included where it is SNAP's.
func llc(f []byte, header ...byte) []byte {
	rest := f[12:]
	if header[0] != 0xAA {
		rest = f[14:]
	}
	n := len(header) + len(rest)
	return slices.Concat(f[:12], []byte{byte(n >> 8), byte(n)}, header, rest)
}

// tag puts n 802.1Q tags on a frame.
func tag(f []byte, n int) []byte {
	tags := slices.Repeat([]byte{0x81, 0, 0, 7}, n)
	return slices.Concat(f[:12], tags, f[12:])
}

// message6 is an ICMPv6 message of the given type, with only body after the first 4
// bytes, behind extension headers: their types, of 8 bytes each.
func message6(t *testing.T, icmpType byte, body []byte, extensions ...byte) []byte {
	chain := append(slices.Clone(extensions), byte(layers.IPProtocolICMPv6))
	var b []byte
	for _, next := range chain[1:] {
		b = append(b, next, 0, 0, 0, 0, 0, 0, 0)
	}
	b = append(append(b, icmpType, 0, 0, 0), body...)
	return frame(t, eth(layers.EthernetTypeIPv6), ip6(outside6, layers.IPProtocol(chain[0])), gopacket.Payload(b))
}

// nd is the body of neighbour discovery about these addresses, one after the other.
func nd(addrs ...string) []byte {
	b := make([]byte, 4)
	for _, a := range addrs {
		b = append(b, netip.MustParseAddr(a).AsSlice()...)
	}
	return b
}

// quote is the body of an error about a packet.
func quote(packet []byte) []byte { return append(make([]byte, 4), packet[14:]...) }

// error4 is an ICMP message of the given type about a packet.
func error4(t *testing.T, icmpType byte, packet []byte) []byte {
	b := append([]byte{icmpType, 0, 0, 0}, quote(packet)...)
	return frame(t, eth(layers.EthernetTypeIPv4), ip4(outside4, layers.IPProtocolICMPv4), gopacket.Payload(b))
}

// fragmented4 makes a frame a fragment, with flags and offset in field.
func fragmented4(f []byte, field uint16) []byte {
	binary.BigEndian.PutUint16(f[14+6:], field)
	return f
}

// Frames in the name of a group, each with a frame that differs in the address only and
// goes on to the kernel.
func guardCases(t *testing.T) (cases []steerCase) {
	add := func(name string, want Reason, bad, good []byte) {
		cases = append(cases, steerCase{name, bad, want, true}, steerCase{name + ", of another address", good, PassOther, true})
	}
	arpFrom := func(op uint16, addr string) []byte { return from(arp(t, op, outside4), offSend4, addr) }
	add("IPv4 source", DropGuardIPv4, from(udp4(t, outside4, 4791), offSource4, inGroup4), from(udp4(t, outside4, 4791), offSource4, outside4))
	add("IPv4 source, TCP", DropGuardIPv4, from(frame(t, eth(0x0800), ip4(outside4, 6), payload), offSource4, inGroup4), frame(t, eth(0x0800), ip4(outside4, 6), payload))
	add("IPv4 source with options", DropGuardIPv4, from(options4(t, outside4, 17), offSource4, inGroup4), options4(t, outside4, 17))
	add("IPv4 source, fragment", DropGuardIPv4, from(fragment4(t, outside4, 0, 100), offSource4, inGroup4), fragment4(t, outside4, 0, 100))
	add("IPv6 source", DropGuardIPv6, from(udp6(t, outside6, 4791), offSource6, inGroup6), udp6(t, outside6, 4791))
	add("IPv6 source with an extension header", DropGuardIPv6, from(extension6(t, outside6, 60), offSource6, inGroup6), extension6(t, outside6, 60))
	add("ARP request", DropGuardARP, arpFrom(1, inGroup4), arpFrom(1, outside4))
	add("ARP reply", DropGuardARP, arpFrom(2, inGroup4), arpFrom(2, outside4))
	add("InARP reply", DropGuardARP, arpFrom(9, inGroup4), arpFrom(9, outside4))
	rarp := func(f []byte) []byte { return set(set(f, 12, 0x80), 13, 0x35) }
	add("RARP", DropGuardARP, rarp(arpFrom(4, inGroup4)), rarp(arpFrom(4, outside4)))
	add("ARP with IEEE 802 hardware", DropGuardARP, set(arpFrom(2, inGroup4), 15, 6), set(arpFrom(2, outside4), 15, 6))
	add("advertisement", DropGuardND, message6(t, 136, nd(inGroup6)), message6(t, 136, nd(outside6)))
	add("redirect, target", DropGuardND, message6(t, 137, nd(inGroup6, outside6)), message6(t, 137, nd(outside6, outside6)))
	add("redirect, destination", DropGuardND, message6(t, 137, nd(outside6, inGroup6)), message6(t, 137, nd(outside6, outside6)))
	for _, e := range []byte{3, 4, 5, 11, 12} {
		add(fmt.Sprintf("ICMP type %d", e), DropGuardICMP, error4(t, e, udp4(t, inGroup4, 4791)), error4(t, e, udp4(t, outside4, 4791)))
	}
	for _, e := range []byte{1, 2, 3, 4, 100} {
		add(fmt.Sprintf("ICMPv6 type %d", e), DropGuardICMP, message6(t, e, quote(udp6(t, inGroup6, 4791))), message6(t, e, quote(udp6(t, outside6, 4791))))
	}
	return append(cases, hiddenCases(t)...)
}

// Forged addresses at the guard's greatest depth, and frames that it drops since their
// headers lie deeper.
func hiddenCases(t *testing.T) (cases []steerCase) {
	forged := from(udp4(t, outside4, 4791), offSource4, inGroup4)
	for n := 1; n <= 10; n++ {
		bad, good := DropGuardIPv4, PassOther
		if n > 2 {
			good = PassVLANDepth
		}
		if n > 8 {
			bad, good = DropGuardHidden, DropGuardHidden
		}
		cases = append(cases,
			steerCase{fmt.Sprintf("IPv4 source below %d tags", n), tag(forged, n), bad, true},
			steerCase{fmt.Sprintf("another source below %d tags", n), tag(udp4(t, outside4, 4791), n), good, true})
	}
	for n := 1; n <= 10; n++ {
		for _, extension := range []byte{0, 43, 51, 60, 135, 139, 140} {
			bad, good := DropGuardND, PassOther
			if n > 8 {
				bad, good = DropGuardHidden, DropGuardHidden
			}
			chain := slices.Repeat([]byte{extension}, n)
			name := fmt.Sprintf("advertisement behind %d of extension %d", n, extension)
			cases = append(cases, steerCase{name, message6(t, 136, nd(inGroup6), chain...), bad, true},
				steerCase{name + ", of another address", message6(t, 136, nd(outside6), chain...), good, true})
		}
	}
	advertisement := message6(t, 136, nd(inGroup6))
	snap := []byte{0xAA, 0xAA, 0x03, 0, 0, 0}
	for name, put := range map[string]func([]byte) []byte{
		"a tag of 9100":             func(f []byte) []byte { return old(f, 0x9100) },
		"a tag of 9200":             func(f []byte) []byte { return old(f, 0x9200) },
		"a tag of 9300":             func(f []byte) []byte { return old(f, 0x9300) },
		"a tag of 9100 in 802.1Q's": func(f []byte) []byte { return tag(old(f, 0x9100), 2) },
		"802.1Q's in one of 9100":   func(f []byte) []byte { return old(tag(f, 3), 0x9100) },
		"SNAP":                      func(f []byte) []byte { return llc(f, snap...) },
		"SNAP of 802.1H":            func(f []byte) []byte { return llc(f, 0xAA, 0xAA, 0x03, 0, 0, 0xF8) },
		"SNAP below 8 tags":         func(f []byte) []byte { return tag(llc(f, snap...), 8) },
	} {
		for _, c := range []struct {
			what      string
			bad, good []byte
			want      Reason
		}{
			{"IPv4 source", forged, udp4(t, outside4, 4791), DropGuardIPv4},
			{"IPv6 source", from(udp6(t, outside6, 4791), offSource6, inGroup6), udp6(t, outside6, 4791), DropGuardIPv6},
			{"ARP reply", from(arp(t, 2, outside4), offSend4, inGroup4), arp(t, 2, outside4), DropGuardARP},
			{"advertisement", advertisement, message6(t, 136, nd(outside6)), DropGuardND},
		} {
			good := put(c.good)
			fine := PassOther
			if name == "SNAP below 8 tags" {
				fine = PassVLANDepth
			}
			cases = append(cases, steerCase{c.what + " below " + name, put(c.bad), c.want, true}, steerCase{"another " + c.what + " below " + name, good, fine, true})
		}
	}
	return append(cases,
		steerCase{"IPv4 source in LLC", llc(forged, 0x06, 0x06, 0x03), DropGuardIPv4, true},
		steerCase{"another IPv4 source in LLC", llc(udp4(t, outside4, 4791), 0x06, 0x06, 0x03), PassOther, true},
		steerCase{"a spanning tree's frame", llc(forged, 0x42, 0x42, 0x03), PassOther, true},
		steerCase{"SNAP of another organization", llc(forged, 0xAA, 0xAA, 0x03, 0, 0, 0x0C), PassOther, true},
		steerCase{"IPv4 source below 9 tags of 9100", func() []byte {
			f := forged
			for range 9 {
				f = old(f, 0x9100)
			}
			return f
		}(), DropGuardHidden, true},
		steerCase{"a frame for a group below a tag of 9100", old(udp4(t, inGroup4, 4791), 0x9100), PassOther, true},
		steerCase{"a frame for a group in SNAP", llc(udp4(t, inGroup4, 4791), snap...), PassOther, true},
		steerCase{"ARP reply below 4 tags", tag(from(arp(t, 2, outside4), offSend4, inGroup4), 4), DropGuardARP, true},
		steerCase{"advertisement below 4 tags", tag(advertisement, 4), DropGuardND, true},
		steerCase{"IPv6 source below 8 tags", tag(from(udp6(t, outside6, 4791), offSource6, inGroup6), 8), DropGuardIPv6, true},
		steerCase{"advertisement in a first fragment", message6(t, 136, nd(inGroup6), 44), DropGuardND, true},
		steerCase{"advertisement behind a first fragment and options", message6(t, 136, nd(inGroup6), 60, 44, 60), DropGuardND, true},
		steerCase{"a later fragment", set(message6(t, 136, nd(inGroup6), 44), 14+40+3, 8), PassOther, true},
		steerCase{"advertisement that goes on in the next fragment", message6(t, 136, nd(inGroup6), 44)[:14+40+8+8], DropGuardHidden, true},
		steerCase{"options that go on in the next fragment", message6(t, 136, nd(inGroup6), 44, 60)[:14+40+8+1], DropGuardHidden, true},
		steerCase{"advertisement that is cut", advertisement[:14+40+8], PassOther, true},
		steerCase{"ICMP error whose quote is in the next fragment", fragmented4(error4(t, 5, udp4(t, inGroup4, 4791))[:14+20+8], 0x2000), DropGuardHidden, true},
		steerCase{"ICMP error in a first fragment", fragmented4(error4(t, 5, udp4(t, inGroup4, 4791)), 0x2000), DropGuardICMP, true},
		steerCase{"ICMP, a later fragment", fragmented4(error4(t, 5, udp4(t, inGroup4, 4791)), 0x0010), PassOther, true},
		steerCase{"ICMP error that is cut", error4(t, 5, udp4(t, inGroup4, 4791))[:14+20+8], PassOther, true},
		steerCase{"echo reply", frame(t, eth(0x0800), ip4(outside4, 1), payload), PassOther, true},
	)
}

// The guard's verdict about a frame names the sender's MAC address.
func TestOffender(t *testing.T) {
	p := loaded(t, false)
	f := from(udp4(t, outside4, 4791), offSource4, inGroup4)
	if _, err := p.program.Run(&ebpf.RunOptions{Data: f, Repeat: 1}); err != nil {
		t.Fatal(err)
	}
	if mac, err := p.LastOffender(DropGuardIPv4); err != nil || mac != [6]byte(macA) {
		t.Errorf("offender is %x (%v), want %s", mac, err, macA)
	}
	if mac, err := p.LastOffender(DropGuardIPv6); err != nil || mac != [6]byte{} {
		t.Errorf("nobody has sent IPv6, but the offender is %x (%v)", mac, err)
	}
}

// The check of the common bits never excludes an address of a prefix, and excludes all
// others if there is one prefix.
func TestCommonBits(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func(a netip.Addr) uint64 {
		if a.Is4() {
			return uint64(binary.NativeEndian.Uint32(a.AsSlice()))
		}
		return binary.NativeEndian.Uint64(a.AsSlice())
	}
	randomAddr := func(v4 bool) netip.Addr {
		var b [16]byte
		binary.BigEndian.PutUint64(b[:], random.Uint64())
		binary.BigEndian.PutUint64(b[8:], random.Uint64())
		if v4 {
			return netip.AddrFrom4([4]byte(b[:4]))
		}
		return netip.AddrFrom16(b)
	}
	inside := func(p netip.Prefix) netip.Addr {
		a, b := p.Addr().AsSlice(), randomAddr(p.Addr().Is4()).AsSlice()
		for i := range 8 * len(a) {
			if i >= p.Bits() {
				a[i/8] |= b[i/8] & (0x80 >> (i % 8))
			}
		}
		x, _ := netip.AddrFromSlice(a)
		return x
	}
	for range 2000 {
		var prefixes []netip.Prefix
		base := [2]netip.Addr{randomAddr(false), randomAddr(true)}
		for range 1 + random.IntN(4) {
			v4 := random.IntN(2) // 1: IPv4
			a := base[v4].AsSlice()
			a[1+random.IntN(3)] ^= byte(random.Uint32()) // near each other
			x, _ := netip.AddrFromSlice(a)
			p, err := x.Prefix(1 + random.IntN(8*len(a)))
			if err != nil {
				t.Fatal(err)
			}
			prefixes = append(prefixes, p)
		}
		first := 1 + random.IntN(len(prefixes)) // the others come by a reload
		c := commonBits(prefixes[:first])
		c.narrow(prefixes[first:])
		for _, p := range prefixes {
			a := inside(p)
			bits, mask := c.bits6, c.mask6
			if a.Is4() {
				bits, mask = uint64(c.bits4), uint64(c.mask4)
			}
			if (word(a)^bits)&mask != 0 {
				t.Fatalf("%s is in %s, of %v, but excluded", a, p, prefixes)
			}
			if other := randomAddr(a.Is4()); len(prefixes) == 1 && p.Bits() <= 64 && ((word(other)^bits)&mask == 0) != p.Contains(other) {
				t.Fatalf("%s and the only prefix %s: excluded is %v", other, p, p.Contains(other))
			}
		}
	}
}
