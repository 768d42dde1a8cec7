// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import "encoding/binary"

// DefaultPKey is the default partition with full membership, which RoCE uses.
const DefaultPKey uint16 = 0xFFFF

// BTH is a base transport header, BTHLen bytes (IBTA §9.2).
//
//	0 opcode  1 SE|M|Pad(2)|TVer(4)  2 P_Key  4 FECN|BECN|reserved(6)
//	5 DestQP(24)  8 AckReq|reserved(7)  9 PSN(24)
type BTH []byte

// Opcode returns the opcode.
func (b BTH) Opcode() Opcode { return Opcode(b[0]) }

// SE reports the solicited event bit.
func (b BTH) SE() bool { return b[1]&0x80 != 0 }

// MigReq reports the migration state bit M.
func (b BTH) MigReq() bool { return b[1]&0x40 != 0 }

// Pad returns the number of pad bytes after the payload, 0..3.
func (b BTH) Pad() int { return int(b[1] >> 4 & 3) }

// TVer returns the transport header version, which must be 0.
func (b BTH) TVer() uint8 { return b[1] & 0x0F }

// PKey returns the partition key.
func (b BTH) PKey() uint16 { return binary.BigEndian.Uint16(b[2:4]) }

// FECN reports the forward congestion bit.
func (b BTH) FECN() bool { return b[4]&0x80 != 0 }

// BECN reports the backward congestion bit.
func (b BTH) BECN() bool { return b[4]&0x40 != 0 }

// DestQP returns the destination queue pair number.
func (b BTH) DestQP() QPN { return QPN(binary.BigEndian.Uint32(b[4:8]) & PSNMask) }

// AckReq reports whether the sender asks for an acknowledgement.
func (b BTH) AckReq() bool { return b[8]&0x80 != 0 }

// PSN returns the packet sequence number.
func (b BTH) PSN() PSN { return PSN(binary.BigEndian.Uint32(b[8:12]) & PSNMask) }

// SetOpcode sets the opcode. It must not change the extension headers.
func (b BTH) SetOpcode(o Opcode) { b[0] = byte(o) }

// SetSE sets the solicited event bit.
func (b BTH) SetSE(v bool) { setBit(&b[1], 0x80, v) }

// SetMigReq sets the migration state bit.
func (b BTH) SetMigReq(v bool) { setBit(&b[1], 0x40, v) }

// SetPad sets the pad count, 0..3.
func (b BTH) SetPad(n int) { b[1] = b[1]&^0x30 | byte(n&3)<<4 }

// SetPKey sets the partition key.
func (b BTH) SetPKey(k uint16) { binary.BigEndian.PutUint16(b[2:4], k) }

// SetFECN sets the forward congestion bit. The ICRC does not cover it.
func (b BTH) SetFECN(v bool) { setBit(&b[4], 0x80, v) }

// SetBECN sets the backward congestion bit. The ICRC does not cover it.
func (b BTH) SetBECN(v bool) { setBit(&b[4], 0x40, v) }

// SetDestQP sets the destination queue pair number, keeping FECN and BECN.
func (b BTH) SetDestQP(q QPN) {
	b[5], b[6], b[7] = byte(q>>16), byte(q>>8), byte(q)
}

// SetAckReq sets the acknowledge request bit.
func (b BTH) SetAckReq(v bool) { setBit(&b[8], 0x80, v) }

// SetPSN sets the packet sequence number, keeping AckReq.
func (b BTH) SetPSN(p PSN) {
	b[9], b[10], b[11] = byte(p>>16), byte(p>>8), byte(p)
}

func setBit(b *byte, mask byte, v bool) {
	if v {
		*b |= mask
	} else {
		*b &^= mask
	}
}
