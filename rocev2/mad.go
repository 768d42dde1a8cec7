// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import "encoding/binary"

// A management datagram (MAD) is a UD SEND ONLY to queue pair 1, with a datagram extended
// transport header (DETH) and 256 bytes (IBTA §9.3.2, §13.4). All other UD packets are
// refused.
//
//	BTH (12)  DETH: 0 Q_Key(32)  4 reserved(8)  5 source QP(24)  MAD (256)  ICRC (4)

// Lengths in bytes.
const (
	MADLen  = 256
	dethLen = 8
)

const (
	opUDSendOnly Opcode = 0x64
	qpnGSI       QPN    = 1          // the queue pair of the general services interface
	qkeyGSI      uint32 = 0x80010000 // IBTA §10.2.4
)

// isMAD reports whether b begins a MAD. AckReq is not looked at: hosts set it.
func isMAD(b BTH) bool { return b.Opcode() == opUDSendOnly && b.DestQP() == qpnGSI }

// decodeMAD checks the UDP payload p of a MAD.
func (f *Frame) decodeMAD(p []byte) Reason {
	switch {
	case len(p)+int(f.rest) != BTHLen+dethLen+MADLen+ICRCLen || BTH(p).Pad() != 0:
		return ReasonBadBTHLength
	case f.rest > 0:
		return ReasonSplitOther
	case BTH(p).TVer() != 0:
		return ReasonBadTVer
	case binary.BigEndian.Uint32(p[BTHLen:]) != qkeyGSI:
		return ReasonBadQKey
	}
	f.Kind = KindMAD
	f.payloadOff += BTHLen + dethLen
	return OK
}

// MAD returns the 256 bytes of a management datagram; nil if the frame is none.
func (f *Frame) MAD() []byte {
	if f.Kind != KindMAD {
		return nil
	}
	return f.buf[f.payloadOff : f.payloadOff+MADLen]
}

// VerifyMAD reports whether the ICRC of a management datagram is right. It is false if the
// frame is none.
func (f *Frame) VerifyMAD() bool {
	if f.Kind != KindMAD {
		return false
	}
	end := len(f.buf) - ICRCLen
	return icrc(f.buf[f.l3:end], int(f.l4-f.l3), f.v6) == binary.LittleEndian.Uint32(f.buf[end:])
}

// BuildMAD writes a management datagram of MADLen bytes from queue pair 1 to queue pair 1
// into b and returns its length in bytes. It returns 0 if b is too short, mad has another
// length, or the addresses are missing or of two families.
func BuildMAD(b []byte, p *Path, psn PSN, mad []byte) int {
	hl := p.HeaderLen()
	end := hl + BTHLen + dethLen + MADLen
	n := end + ICRCLen
	if len(b) < n || len(mad) != MADLen || !p.valid() {
		return 0
	}
	copy(b[end-MADLen:end], mad)
	p.putUDP(b, UDPPort, n-hl)
	k := Packet{Op: opUDSendOnly, DestQP: qpnGSI, PSN: psn, AckReq: true}
	k.putBTH(BTH(b[hl:hl+BTHLen]), 0)
	deth := b[hl+BTHLen : hl+BTHLen+dethLen]
	binary.BigEndian.PutUint32(deth, qkeyGSI)
	binary.BigEndian.PutUint32(deth[4:], uint32(qpnGSI))
	c := icrc(b[p.l2Len():end], p.ipLen(), !p.Dst.Is4())
	binary.LittleEndian.PutUint32(b[end:n], c)
	return n
}
