// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import (
	"encoding/binary"
	"net/netip"
)

// ARPLen is the length in bytes of an ARP packet for Ethernet and IPv4.
const ARPLen = 28

// ARP operations (RFC 826).
const (
	ARPRequest uint16 = 1
	ARPReply   uint16 = 2
)

// ARP is an ARP packet for Ethernet and IPv4 (RFC 826).
type ARP struct {
	Op        uint16
	SenderMAC MAC
	SenderIP  netip.Addr // 0.0.0.0 in a probe (RFC 5227)
	TargetMAC MAC
	TargetIP  netip.Addr
}

// arpPrefix is hardware type Ethernet, protocol IPv4, and their lengths.
const arpPrefix = 0x0001_0800_0604

// BroadcastMAC is the Ethernet broadcast address.
var BroadcastMAC = MAC{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}

// DecodeARP reads the ARP packet of frame f, and checks that it is for
// Ethernet and IPv4. It returns ReasonBadARP if it is not.
func DecodeARP(f *Frame, a *ARP) Reason {
	*a = ARP{}
	if f.Kind != KindARP {
		return ReasonBadARP
	}
	p := f.buf[f.l3:]
	if binary.BigEndian.Uint64(p[0:8])>>16 != arpPrefix {
		return ReasonBadARP
	}
	op := binary.BigEndian.Uint16(p[6:8])
	if op != ARPRequest && op != ARPReply {
		return ReasonBadARP
	}
	a.Op = op
	a.SenderMAC = MAC(p[8:14])
	a.SenderIP = netip.AddrFrom4([4]byte(p[14:18]))
	a.TargetMAC = MAC(p[18:24])
	a.TargetIP = netip.AddrFrom4([4]byte(p[24:28]))
	return OK
}

// BuildARP writes an ARP frame into b and returns its length in bytes; 0 if b
// is too short or an address is not IPv4. Of p only the MACs and the VLAN tag
// count.
func BuildARP(b []byte, p *Path, a *ARP) int {
	o := p.l2Len()
	n := o + ARPLen
	if len(b) < n || !a.SenderIP.Is4() || !a.TargetIP.Is4() {
		return 0
	}
	p.putEthernet(b, EtherTypeARP)
	q := b[o:n]
	binary.BigEndian.PutUint64(q[0:8], arpPrefix<<16|uint64(a.Op))
	copy(q[8:14], a.SenderMAC[:])
	s, t := a.SenderIP.As4(), a.TargetIP.As4()
	copy(q[14:18], s[:])
	copy(q[18:24], a.TargetMAC[:])
	copy(q[24:28], t[:])
	return n
}

// BuildARPReply writes into b the reply of mac to request a, which arrived in frame f,
// with f's VLAN tag. It returns as BuildARP does, and 0 if f has two tags.
func BuildARPReply(b []byte, f *Frame, a *ARP, mac MAC) int {
	p := Path{SrcMAC: mac, DstMAC: a.SenderMAC}
	if !p.tagLike(f) {
		return 0
	}
	return BuildARP(b, &p, &ARP{Op: ARPReply, SenderMAC: mac, SenderIP: a.TargetIP, TargetMAC: a.SenderMAC, TargetIP: a.SenderIP})
}

// tagLike copies the VLAN tag of f; it returns false if f has two.
func (p *Path) tagLike(f *Frame) bool {
	n, tci := f.VLAN()
	if n == 1 {
		p.Tagged, p.TCI, p.TPID = true, tci, f.Eth().EtherType()
	}
	return n < 2
}
