// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// form is a frame of an attacker from src for a member, in a form that a guard may fail
// to parse.
type form struct {
	name    string
	make    func(a *attacker, src netip.Addr, to *rigHost) []byte
	counter string // the counter of the guard, if src is the group; "": after the rig's address family
	// A frame of the attacker's own address arrives, behind a bridge: else a guard that
	// drops every frame would pass the test.
	arrives bool
}

// straight is an ACK for a member's queue pair.
func straight(a *attacker, src netip.Addr, to *rigHost) []byte {
	return a.roce(a.path(src, to), rocev2.Packet{Op: rocev2.Acknowledge, DestQP: to.qp.Info().QPN, Syndrome: rocev2.SyndromeACK}, 0)
}

// tagged puts n tags on f, of the EtherType.
func tagged(f []byte, n int, etherType uint16) []byte {
	tag := binary.BigEndian.AppendUint16(nil, etherType)
	return slices.Concat(f[:12], bytes.Repeat(append(tag, 0, 7), n), f[12:])
}

// snapped puts f into LLC and SNAP.
func snapped(f []byte) []byte {
	return slices.Concat(binary.BigEndian.AppendUint16(slices.Clone(f[:12]), uint16(8+len(f)-14)), []byte{0xAA, 0xAA, 0x03, 0, 0, 0}, f[12:])
}

// extended puts an IPv4 option, or an IPv6 destination options header, into f.
func extended(f []byte) []byte {
	if f[offIP]>>4 == 4 {
		f = slices.Concat(f[:offIP+20], []byte{1, 1, 1, 0}, f[offIP+20:])
		f[offIP]++
		h := f[offIP : offIP+24]
		binary.BigEndian.PutUint16(h[2:], uint16(len(f)-offIP))
		copy(h[10:12], []byte{0, 0})
		binary.BigEndian.PutUint16(h[10:], ^sum16(h))
		return f
	}
	next := f[offIP+6]
	f = slices.Concat(f[:offIP+40], []byte{next, 0, 1, 4, 0, 0, 0, 0}, f[offIP+40:])
	f[offIP+6] = 60
	binary.BigEndian.PutUint16(f[offIP+4:], uint16(len(f)-offIP-40))
	return f
}

// claim is a message that claims an address: an unsolicited ARP reply or neighbour
// advertisement.
func claim(a *attacker, src netip.Addr, to *rigHost) []byte {
	b := make([]byte, 128)
	p := rocev2.Path{SrcMAC: rocev2.MAC(a.MAC), DstMAC: rocev2.MAC(to.MAC), Src: a.ip, Dst: to.ip}
	if src.Is4() {
		n := rocev2.BuildARP(b, &p, &rocev2.ARP{Op: rocev2.ARPReply, SenderMAC: p.SrcMAC, SenderIP: src, TargetMAC: p.DstMAC, TargetIP: to.ip})
		return b[:n]
	}
	// As of the attacker itself, but for the target.
	b = b[:rocev2.BuildUnsolicitedAdvertisement(b, &p, src)]
	copy(b[offIP+8:], a.ip.AsSlice())
	message := b[offIP+40:]
	copy(message[2:4], []byte{0, 0})
	binary.BigEndian.PutUint16(message[2:], ^sum16(b[offIP+8:offIP+40], message, []byte{0, 58, 0, byte(len(message))}))
	return b
}

// sum16 is the Internet checksum of these bytes, without the complement.
func sum16(parts ...[]byte) uint16 {
	sum := uint32(0)
	for _, b := range parts {
		for i := 0; i < len(b); i += 2 {
			sum += uint32(binary.BigEndian.Uint16(b[i:]))
		}
	}
	for sum > 0xFFFF {
		sum = sum&0xFFFF + sum>>16
	}
	return uint16(sum)
}

func guardForms() []form {
	list := []form{
		{name: "as it is", make: straight, arrives: true},
		{name: "an option", make: func(a *attacker, src netip.Addr, to *rigHost) []byte { return extended(straight(a, src, to)) }, arrives: true},
		{name: "says where the address is", make: claim, counter: "claim", arrives: true},
	}
	for n := 1; n <= 10; n++ {
		f := form{name: fmt.Sprintf("%d tags", n), arrives: n <= 8}
		f.make = func(a *attacker, src netip.Addr, to *rigHost) []byte { return tagged(straight(a, src, to), n, 0x8100) }
		if n > 8 {
			f.counter = "drop_guard_hidden"
		}
		list = append(list, f)
	}
	return append(list,
		form{name: "2 tags of 802.1ad", make: func(a *attacker, src netip.Addr, to *rigHost) []byte { return tagged(straight(a, src, to), 2, 0x88A8) }, arrives: true},
		form{name: "a tag of 9100", make: func(a *attacker, src netip.Addr, to *rigHost) []byte { return tagged(straight(a, src, to), 1, 0x9100) }, arrives: true},
		form{name: "a tag of 9100 below 2 of 802.1Q", make: func(a *attacker, src netip.Addr, to *rigHost) []byte {
			return tagged(tagged(straight(a, src, to), 1, 0x9100), 2, 0x8100)
		}, arrives: true},
		form{name: "SNAP", make: func(a *attacker, src netip.Addr, to *rigHost) []byte { return snapped(straight(a, src, to)) }, arrives: true},
		form{name: "a claim in SNAP", make: func(a *attacker, src netip.Addr, to *rigHost) []byte { return snapped(claim(a, src, to)) }, counter: "claim", arrives: true},
		form{name: "a claim below 3 tags", make: func(a *attacker, src netip.Addr, to *rigHost) []byte { return tagged(claim(a, src, to), 3, 0x8100) }, counter: "claim", arrives: true},
		form{name: "cut in the middle", make: func(a *attacker, src netip.Addr, to *rigHost) []byte { f := straight(a, src, to); return f[:len(f)-25] }},
	)
}

// Whatever form a frame in the group's name has, no host gets it; it moves one counter,
// and one warning names port and MAC address.
func TestGuardForms(t *testing.T) {
	inNetworks(t, 3, 1, func(t *testing.T, c rigConfig) {
		r := newRig(t, c)
		r.join()
		a, to := r.attacker(0), r.hosts[1]
		seen := newTap(t, to.Host)
		begin := r.groupMAC(to)
		for _, f := range guardForms() {
			t.Run(f.name, func(t *testing.T) {
				counter := f.counter
				switch {
				case counter == "claim" && c.v6:
					counter = "drop_guard_nd"
				case counter == "claim":
					counter = "drop_guard_arp"
				case counter == "":
					counter = "drop_guard_" + map[bool]string{false: "ipv4", true: "ipv6"}[c.v6]
				}
				if f.arrives && !c.star.NoBridge {
					own := f.make(a, a.ip, to)
					a.send(own)
					seen.expect("a frame of the attacker's own", func(c *captured) bool { return bytes.HasPrefix(c.raw, own[:12]) })
				}
				forged := f.make(a, r.group, to)
				before := a.xdp(counter)
				for range 5 {
					a.send(forged)
				}
				until(t, counter, func() bool { return a.xdp(counter) == before+5 })
				for x := seen.next(); x != nil; x = seen.next() {
					if bytes.Contains(x.raw, forged[len(forged)-18:]) { // bytes that no router changes
						t.Errorf("the member sees % x", x.raw)
					}
				}
			})
		}
		if mac := r.groupMAC(to); mac != begin {
			t.Errorf("a member takes %s for the group's MAC address; before the attacks it was %s", mac, begin)
		}
		r.saysOffence(t, a, "drop_guard_hidden")
		r.fill(0)
		r.write(0, 20_000)
		r.same(0)
	})
}

// groupMAC returns the group's MAC address in the neighbour table of h.
func (r *rig) groupMAC(h *rigHost) string {
	r.t.Helper()
	link, err := h.NS.Handle().LinkByName(h.Interface)
	if err != nil {
		r.t.Fatal(err)
	}
	list, err := h.NS.Handle().NeighList(link.Attrs().Index, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, n := range list {
		if ip, _ := netip.AddrFromSlice(n.IP); ip.Unmap() == r.group {
			return n.HardwareAddr.String()
		}
	}
	return ""
}

// saysOffence checks that one warning names the frames that the attacker's port has
// dropped for a reason.
func (r *rig) saysOffence(t *testing.T, a *attacker, reason string) {
	t.Helper()
	lines := func() (n int) {
		r.notes.Lock()
		defer r.notes.Unlock()
		for _, l := range r.notes.lines {
			if strings.HasPrefix(l, "true ") && strings.Contains(l, a.Port) && strings.Contains(l, a.MAC.String()) && strings.Contains(l, reason) {
				n++
			}
		}
		return n
	}
	until(t, "a warning about "+reason, func() bool { return lines() > 0 })
	time.Sleep(1500 * time.Millisecond) // another look of the guard's watch
	if n := lines(); n != 1 {
		t.Errorf("%d warnings about %s, want one", n, reason)
	}
}
