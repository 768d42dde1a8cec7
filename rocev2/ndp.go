// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import (
	"encoding/binary"
	"net/netip"
)

// ICMPv6 types of neighbour discovery (RFC 4861 §4.3, §4.4).
const (
	icmpNeighborSolicitation  = 135
	icmpNeighborAdvertisement = 136
)

// Neighbour discovery options, in units of 8 bytes with a 2-byte head.
const (
	optSourceLLA = 1
	optTargetLLA = 2
)

// ndLen is the length in bytes of a solicitation or an advertisement without
// options, ndOptLen that of an Ethernet link-layer address option.
const (
	ndLen    = 24
	ndOptLen = 8
)

// ndHopLimit is the hop limit that every neighbour discovery message must have on
// arrival, so that none can come from off-link (RFC 4861 §7.1.1).
const ndHopLimit = 255

// NeighborSolicitation is a message of RFC 4861 §4.3.
type NeighborSolicitation struct {
	Src, Dst netip.Addr // Src is :: in duplicate address detection
	Target   netip.Addr
	SrcLLA   MAC  // source link-layer address option
	HasLLA   bool // true: the message has the option
}

// IsNeighborSolicitation reports whether frame f has the ICMPv6 type of a neighbour
// solicitation. It checks nothing else.
func IsNeighborSolicitation(f *Frame) bool {
	return f.Kind == KindICMPv6 && len(f.buf) > int(f.l4) && f.buf[f.l4] == icmpNeighborSolicitation
}

// DecodeNeighborSolicitation reads the neighbour solicitation in frame f with
// all the checks of RFC 4861 §7.1.1. It returns ReasonBadND or
// ReasonICMPv6Checksum if it must not be answered.
func DecodeNeighborSolicitation(f *Frame, s *NeighborSolicitation) Reason {
	*s = NeighborSolicitation{}
	if f.Kind != KindICMPv6 {
		return ReasonBadND
	}
	p := f.buf[f.l4:]
	if len(p) < ndLen || p[0] != icmpNeighborSolicitation || p[1] != 0 || f.IPv6().HopLimit() != ndHopLimit {
		return ReasonBadND
	}
	src, dst := f.Src(), f.Dst()
	if transportChecksum(src, dst, ProtoICMPv6, p) != 0 {
		return ReasonICMPv6Checksum
	}
	target := netip.AddrFrom16([16]byte(p[8:24]))
	if target.IsMulticast() || target.IsUnspecified() {
		return ReasonBadND
	}
	lla, has, ok := linkLayerOption(p[ndLen:], optSourceLLA)
	if !ok {
		return ReasonBadND
	}
	if src.IsUnspecified() && (has || dst != SolicitedNode(target)) {
		return ReasonBadND
	}
	*s = NeighborSolicitation{Src: src, Dst: dst, Target: target, SrcLLA: lla, HasLLA: has}
	return OK
}

// NeighborAdvertisement is a message of RFC 4861 §4.4.
type NeighborAdvertisement struct {
	Target   netip.Addr
	MAC      MAC  // target link-layer address option, or the frame's source without one
	Override bool // true: the target itself answers; a proxy leaves the flag out (RFC 4861 §7.2.8)
}

// DecodeNeighborAdvertisement reads the neighbour advertisement in frame f with all the
// checks of RFC 4861 §7.1.2. It returns ReasonBadND or ReasonICMPv6Checksum if it has no
// effect.
func DecodeNeighborAdvertisement(f *Frame, a *NeighborAdvertisement) Reason {
	*a = NeighborAdvertisement{}
	if f.Kind != KindICMPv6 || f.rest != 0 {
		return ReasonBadND
	}
	p := f.buf[f.l4:]
	if len(p) < ndLen || p[0] != icmpNeighborAdvertisement || p[1] != 0 || f.IPv6().HopLimit() != ndHopLimit {
		return ReasonBadND
	}
	if transportChecksum(f.Src(), f.Dst(), ProtoICMPv6, p) != 0 {
		return ReasonICMPv6Checksum
	}
	target := netip.AddrFrom16([16]byte(p[8:24]))
	lla, has, ok := linkLayerOption(p[ndLen:], optTargetLLA)
	if !ok || target.IsMulticast() {
		return ReasonBadND
	}
	if !has {
		lla = f.Eth().Src()
	}
	*a = NeighborAdvertisement{Target: target, MAC: lla, Override: binary.BigEndian.Uint32(p[4:8])&naOverride != 0}
	return OK
}

// linkLayerOption finds option kind in opts; ok is false if opts is malformed.
func linkLayerOption(opts []byte, kind byte) (m MAC, has, ok bool) {
	for len(opts) > 0 {
		if len(opts) < 2 {
			return MAC{}, false, false
		}
		n := int(opts[1]) * 8
		if n == 0 || n > len(opts) {
			return MAC{}, false, false
		}
		if opts[0] == kind && n == ndOptLen {
			m, has = MAC(opts[2:8]), true
		}
		opts = opts[n:]
	}
	return m, has, true
}

// SolicitedNode returns the solicited-node multicast address of a, an IPv6
// address (RFC 4291 §2.7.1).
func SolicitedNode(a netip.Addr) netip.Addr {
	b := a.As16()
	return netip.AddrFrom16([16]byte{0: 0xFF, 1: 0x02, 11: 1, 12: 0xFF, 13: b[13], 14: b[14], 15: b[15]})
}

// MulticastMAC returns the Ethernet address of IPv6 multicast address a (RFC
// 2464 §7).
func MulticastMAC(a netip.Addr) MAC {
	b := a.As16()
	return MAC{0x33, 0x33, b[12], b[13], b[14], b[15]}
}

// buildND writes an ND message with one link-layer address option.
func buildND(b []byte, p *Path, typ byte, flags uint32, target netip.Addr, opt byte, lla MAC) int {
	o := p.l2Len() + IPv6Len
	n := o + ndLen + ndOptLen
	if len(b) < n || !p.valid() || p.Dst.Is4() || !target.Is6() {
		return 0
	}
	p.TTL, p.TOS, p.FlowLabel = ndHopLimit, 0, 0
	p.putIP(b, ProtoICMPv6, n-o)
	q := b[o:n]
	clear(q)
	q[0] = typ
	binary.BigEndian.PutUint32(q[4:8], flags)
	t := target.As16()
	copy(q[8:24], t[:])
	q[24], q[25] = opt, 1
	copy(q[26:32], lla[:])
	binary.BigEndian.PutUint16(q[2:4], transportChecksum(p.Src, p.Dst, ProtoICMPv6, q))
	return n
}

// Flags of a neighbour advertisement (RFC 4861 §4.4).
const (
	naSolicited = 1 << 30
	naOverride  = 1 << 29
)

// BuildNeighborAdvertisement writes into b the advertisement of mac in answer to
// solicitation s, which arrived in frame f, with f's VLAN tag. It returns its length in
// bytes, or 0 if b is too short or f has two tags. Duplicate address detection, whose
// source is ::, is answered to all nodes (RFC 4861 §7.2.4).
func BuildNeighborAdvertisement(b []byte, f *Frame, s *NeighborSolicitation, mac MAC) int {
	p := Path{SrcMAC: mac, Src: s.Target, Dst: s.Src}
	if !p.tagLike(f) {
		return 0
	}
	flags := uint32(naSolicited | naOverride)
	switch {
	case s.Src.IsUnspecified():
		p.Dst = netip.IPv6LinkLocalAllNodes()
		p.DstMAC = MulticastMAC(p.Dst)
		flags = naOverride
	case s.HasLLA:
		p.DstMAC = s.SrcLLA
	default:
		p.DstMAC = f.Eth().Src()
	}
	return buildND(b, &p, icmpNeighborAdvertisement, flags, s.Target, optTargetLLA, mac)
}

// BuildUnsolicitedAdvertisement writes into b the advertisement to all nodes that target
// is now at the source MAC of p; it overrides their entries (RFC 4861 §7.2.6). It returns
// its length in bytes; 0 if b is too short or target is not IPv6. Of p only SrcMAC and
// the VLAN tag count.
func BuildUnsolicitedAdvertisement(b []byte, p *Path, target netip.Addr) int {
	q := *p
	q.Src, q.Dst = target, netip.IPv6LinkLocalAllNodes()
	q.DstMAC = MulticastMAC(q.Dst)
	return buildND(b, &q, icmpNeighborAdvertisement, naOverride, target, optTargetLLA, p.SrcMAC)
}

// BuildNeighborSolicitation writes a multicast solicitation for target from
// src at mac, in the VLAN of p, into b. It returns its length in bytes; 0 if b
// is too short or an address is not IPv6. Of p only SrcMAC, Src and the VLAN
// tag count.
func BuildNeighborSolicitation(b []byte, p *Path, target netip.Addr) int {
	if !target.Is6() {
		return 0
	}
	q := *p
	q.Dst = SolicitedNode(target)
	q.DstMAC = MulticastMAC(q.Dst)
	return buildND(b, &q, icmpNeighborSolicitation, 0, target, optSourceLLA, p.SrcMAC)
}
