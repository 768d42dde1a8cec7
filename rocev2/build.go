// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import (
	"encoding/binary"
	"net/netip"
)

// Path has the fields of the headers below BTH. Src and Dst must be of one family.
type Path struct {
	SrcMAC, DstMAC MAC
	Tagged         bool   // true: the frame has one VLAN tag
	TCI            uint16 // its tag control information
	TPID           uint16 // its EtherType; 0 means EtherTypeVLAN
	Src, Dst       netip.Addr
	TTL            uint8  // the TTL or hop limit; 0 means 64
	TOS            uint8  // the TOS or traffic class: DSCP and ECN
	ID             uint16 // IPv4 identification; don't-fragment is always set
	FlowLabel      uint32 // IPv6, 20 bits
	SrcPort        uint16 // UDP
}

// DefaultTTL is the TTL of a Path whose TTL is 0.
const DefaultTTL = 64

// HeaderLen returns the bytes of Ethernet, VLAN, IP and UDP headers.
func (p *Path) HeaderLen() int { return p.l2Len() + p.ipLen() + UDPLen }

func (p *Path) l2Len() int {
	if p.Tagged {
		return EthernetLen + VLANLen
	}
	return EthernetLen
}

func (p *Path) ipLen() int {
	if p.Dst.Is4() {
		return IPv4Len
	}
	return IPv6Len
}

// valid reports whether p's addresses can be those of an IP packet.
func (p *Path) valid() bool {
	return p.Src.IsValid() && p.Dst.IsValid() && p.Src.Is4() == p.Dst.Is4()
}

func (p *Path) ttl() uint8 {
	if p.TTL == 0 {
		return DefaultTTL
	}
	return p.TTL
}

// putEthernet writes Ethernet and VLAN headers for EtherType et.
func (p *Path) putEthernet(b []byte, et uint16) {
	e := Ethernet(b)
	e.SetDst(p.DstMAC)
	e.SetSrc(p.SrcMAC)
	if p.Tagged {
		e.SetEtherType(p.TPID)
		if p.TPID == 0 {
			e.SetEtherType(EtherTypeVLAN)
		}
		v := VLAN(b[EthernetLen : EthernetLen+VLANLen])
		v.SetTCI(p.TCI)
		v.SetEtherType(et)
		return
	}
	e.SetEtherType(et)
}

// putIP writes Ethernet, VLAN and IP headers for n bytes of protocol proto.
func (p *Path) putIP(b []byte, proto uint8, n int) {
	o := p.l2Len()
	if p.Dst.Is4() {
		p.putEthernet(b, EtherTypeIPv4)
		h := IPv4(b[o : o+IPv4Len])
		h[0] = 0x45
		h.SetTOS(p.TOS)
		binary.BigEndian.PutUint16(h[2:4], uint16(IPv4Len+n))
		h.SetID(p.ID)
		binary.BigEndian.PutUint16(h[6:8], ipv4DF)
		h.SetTTL(p.ttl())
		h[9] = proto
		h.SetSrc(p.Src)
		h.SetDst(p.Dst)
		h.UpdateChecksum()
		return
	}
	p.putEthernet(b, EtherTypeIPv6)
	h := IPv6(b[o : o+IPv6Len])
	binary.BigEndian.PutUint32(h[0:4], 6<<28|uint32(p.TOS)<<20|p.FlowLabel&0xFFFFF)
	binary.BigEndian.PutUint16(h[4:6], uint16(n))
	h[6] = proto
	h.SetHopLimit(p.ttl())
	h.SetSrc(p.Src)
	h.SetDst(p.Dst)
}

// putUDP writes all headers up to UDP, for n bytes of UDP payload, with
// checksum 0.
func (p *Path) putUDP(b []byte, dstPort uint16, n int) {
	p.putIP(b, ProtoUDP, UDPLen+n)
	o := p.l2Len() + p.ipLen()
	u := UDP(b[o : o+UDPLen])
	u.SetSrcPort(p.SrcPort)
	u.SetDstPort(dstPort)
	u.SetLen(UDPLen + n)
	u.SetChecksum(0)
}

// maxUDPPayload is the longest payload of one IPv4 packet without options.
const maxUDPPayload = 65535 - IPv4Len - UDPLen

// BuildUDP writes a UDP datagram with its checksum into b and returns its length in
// bytes; 0 if b is too short, the payload too long for UDP, or the addresses are missing
// or of two families. The payload may lie in b at its final position, or outside of b.
func BuildUDP(b []byte, p *Path, dstPort uint16, payload []byte) int {
	hl := p.HeaderLen()
	n := hl + len(payload)
	if len(b) < n || len(payload) > maxUDPPayload || !p.valid() {
		return 0
	}
	copy(b[hl:n], payload)
	p.putUDP(b, dstPort, len(payload))
	o := hl - UDPLen
	c := transportChecksum(p.Src, p.Dst, ProtoUDP, b[o:n])
	if c == 0 {
		c = 0xFFFF // 0 would mean no checksum (RFC 768)
	}
	UDP(b[o:hl]).SetChecksum(c)
	return n
}

// Packet has the fields of BTH and of its extension headers. Fields of headers that Op
// does not have are ignored.
type Packet struct {
	Op                       Opcode
	SE, MigReq, AckReq, BECN bool
	PKey                     uint16 // 0, which is never valid, means DefaultPKey
	DestQP                   QPN
	PSN                      PSN

	VA      uint64 // RETH, AtomicETH
	RKey    uint32 // RETH, AtomicETH, IETH
	DMALen  uint32 // RETH
	Imm     uint32 // ImmDt
	SwapAdd uint64 // AtomicETH
	Compare uint64 // AtomicETH
	Flush   uint32 // FETH

	Syndrome Syndrome // AETH
	MSN      MSN      // AETH
}

// PacketLen returns the length in bytes of BuildPacket's frame for payload bytes of
// payload.
func PacketLen(p *Path, op Opcode, payload int) int {
	return p.HeaderLen() + BTHLen + op.ExtLen() + (payload+3)&^3 + ICRCLen
}

// BuildPacket writes a whole RoCEv2 frame with pad, lengths, checksums and
// ICRC into b and returns its length in bytes. It returns 0 if b is too short,
// the opcode unknown, the payload not of a length that Decode would accept, or
// the addresses are missing or of two families.
//
// The UDP checksum is 0. The frame is not padded to MinFrameLen. The payload may lie in b
// at its final position, or outside of b.
func BuildPacket(b []byte, p *Path, k *Packet, payload []byte) int {
	n := PacketLen(p, k.Op, len(payload))
	if len(b) < n || n-p.HeaderLen() > maxUDPPayload || !p.valid() || !payloadLenOK(k.Op, len(payload)) {
		return 0
	}
	hl := p.HeaderLen()
	data := hl + BTHLen + k.Op.ExtLen()
	end := n - ICRCLen
	copy(b[data:], payload)
	clear(b[data+len(payload) : end])
	p.putUDP(b, UDPPort, n-hl)
	k.putBTH(BTH(b[hl:hl+BTHLen]), end-data-len(payload))
	k.putExt(b[hl+BTHLen : data])
	c := icrc(b[p.l2Len():end], p.ipLen(), !p.Dst.Is4())
	binary.LittleEndian.PutUint32(b[end:n], c)
	return n
}

// payloadLenOK reports whether a packet of op may carry n bytes.
func payloadLenOK(op Opcode, n int) bool {
	switch fl := op.Flags(); {
	case fl&OpKnown == 0:
		return false
	case fl&OpPayload == 0:
		return n == 0
	case op == CNP:
		return n == cnpPayloadLen
	case op == AtomicAck || op == AtomicWrite:
		return n == atomicPayloadLen
	}
	return true
}

func (k *Packet) putBTH(b BTH, pad int) {
	clear(b)
	b.SetOpcode(k.Op)
	b.SetSE(k.SE)
	b.SetMigReq(k.MigReq)
	b.SetPad(pad)
	b.SetPKey(k.PKey)
	if k.PKey == 0 {
		b.SetPKey(DefaultPKey)
	}
	b.SetBECN(k.BECN)
	b.SetDestQP(k.DestQP)
	b.SetAckReq(k.AckReq)
	b.SetPSN(k.PSN)
}

// putExt writes the extension headers in the order of IBTA §9.2 into b, which
// has exactly their length.
func (k *Packet) putExt(b []byte) {
	fl := k.Op.Flags()
	if fl&OpFETH != 0 {
		binary.BigEndian.PutUint32(b, k.Flush)
		b = b[FETHLen:]
	}
	if fl&OpRETH != 0 {
		r := RETH(b[:RETHLen])
		r.SetVA(k.VA)
		r.SetRKey(k.RKey)
		r.SetDMALen(k.DMALen)
		b = b[RETHLen:]
	}
	if fl&OpAETH != 0 {
		AETH(b).Set(k.Syndrome, k.MSN)
		b = b[AETHLen:]
	}
	if fl&OpImm != 0 {
		ImmDt(b).SetData(k.Imm)
		b = b[ImmDtLen:]
	}
	if fl&OpIETH != 0 {
		IETH(b).SetRKey(k.RKey)
		b = b[IETHLen:]
	}
	if fl&OpAtomicETH != 0 {
		a := AtomicETH(b[:AtomicETHLen])
		a.SetVA(k.VA)
		a.SetRKey(k.RKey)
		a.SetSwapAdd(k.SwapAdd)
		a.SetCompare(k.Compare)
	}
}

// BuildAck writes an acknowledgement, whose kind (ACK, RNR NAK or NAK) is that of s. It
// returns as BuildPacket does.
func BuildAck(b []byte, p *Path, dest QPN, psn PSN, s Syndrome, msn MSN, becn bool) int {
	return BuildPacket(b, p, &Packet{Op: Acknowledge, DestQP: dest, PSN: psn, Syndrome: s, MSN: msn, BECN: becn}, nil)
}

// CNPPayload is the payload of a CNP, 16 reserved bytes (RC.md §7). It is only read.
var CNPPayload = make([]byte, cnpPayloadLen)

// BuildCNP writes a congestion notification packet (annex A17.9.3): BECN set,
// PSN 0, 16 reserved bytes. It returns as BuildPacket does.
func BuildCNP(b []byte, p *Path, dest QPN) int {
	return BuildPacket(b, p, &Packet{Op: CNP, DestQP: dest, BECN: true}, CNPPayload)
}
