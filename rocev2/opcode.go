// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

// Opcode is the BTH opcode, 8 bits. Only the RC opcodes (upper three bits 0) and the CNP
// are supported; IBTA table 38, rdma_rxe rxe_opcode.c.
type Opcode uint8

// RC opcodes, and the congestion notification packet of RoCEv2 (A17.9.3).
const (
	SendFirst      Opcode = 0x00
	SendMiddle     Opcode = 0x01
	SendLast       Opcode = 0x02
	SendLastImm    Opcode = 0x03
	SendOnly       Opcode = 0x04
	SendOnlyImm    Opcode = 0x05
	WriteFirst     Opcode = 0x06
	WriteMiddle    Opcode = 0x07
	WriteLast      Opcode = 0x08
	WriteLastImm   Opcode = 0x09
	WriteOnly      Opcode = 0x0A
	WriteOnlyImm   Opcode = 0x0B
	ReadRequest    Opcode = 0x0C
	ReadRespFirst  Opcode = 0x0D
	ReadRespMiddle Opcode = 0x0E
	ReadRespLast   Opcode = 0x0F
	ReadRespOnly   Opcode = 0x10
	Acknowledge    Opcode = 0x11
	AtomicAck      Opcode = 0x12
	CompareSwap    Opcode = 0x13
	FetchAdd       Opcode = 0x14
	SendLastInv    Opcode = 0x16
	SendOnlyInv    Opcode = 0x17
	Flush          Opcode = 0x1C
	AtomicWrite    Opcode = 0x1D
	CNP            Opcode = 0x81
)

// OpFlags describes an opcode and the headers that follow its BTH.
type OpFlags uint16

// Bits of OpFlags.
const (
	OpKnown     OpFlags = 1 << iota // a defined RC opcode, or CNP
	OpRequest                       // requester to responder
	OpResponse                      // responder to requester
	OpFirst                         // FIRST of a SEND or WRITE
	OpMiddle                        // MIDDLE
	OpLast                          // LAST (with or without ImmDt or IETH)
	OpOnly                          // ONLY
	OpSend                          // consumes a receive and carries data
	OpWrite                         // RDMA WRITE
	OpRETH                          // RETH follows
	OpAETH                          // AETH follows
	OpImm                           // ImmDt follows
	OpIETH                          // IETH follows
	OpAtomicETH                     // AtomicETH follows
	OpFETH                          // FETH (4 bytes) comes before RETH
	OpPayload                       // may carry payload
)

// OpStart selects the packets that begin a message, OpEnd those that end it.
const (
	OpStart = OpFirst | OpOnly
	OpEnd   = OpLast | OpOnly
)

var opTable = [256]OpFlags{
	SendFirst:      OpKnown | OpRequest | OpFirst | OpSend | OpPayload,
	SendMiddle:     OpKnown | OpRequest | OpMiddle | OpSend | OpPayload,
	SendLast:       OpKnown | OpRequest | OpLast | OpSend | OpPayload,
	SendLastImm:    OpKnown | OpRequest | OpLast | OpSend | OpImm | OpPayload,
	SendOnly:       OpKnown | OpRequest | OpOnly | OpSend | OpPayload,
	SendOnlyImm:    OpKnown | OpRequest | OpOnly | OpSend | OpImm | OpPayload,
	WriteFirst:     OpKnown | OpRequest | OpFirst | OpWrite | OpRETH | OpPayload,
	WriteMiddle:    OpKnown | OpRequest | OpMiddle | OpWrite | OpPayload,
	WriteLast:      OpKnown | OpRequest | OpLast | OpWrite | OpPayload,
	WriteLastImm:   OpKnown | OpRequest | OpLast | OpWrite | OpImm | OpPayload,
	WriteOnly:      OpKnown | OpRequest | OpOnly | OpWrite | OpRETH | OpPayload,
	WriteOnlyImm:   OpKnown | OpRequest | OpOnly | OpWrite | OpRETH | OpImm | OpPayload,
	ReadRequest:    OpKnown | OpRequest | OpOnly | OpRETH,
	ReadRespFirst:  OpKnown | OpResponse | OpFirst | OpAETH | OpPayload,
	ReadRespMiddle: OpKnown | OpResponse | OpMiddle | OpPayload,
	ReadRespLast:   OpKnown | OpResponse | OpLast | OpAETH | OpPayload,
	ReadRespOnly:   OpKnown | OpResponse | OpOnly | OpAETH | OpPayload,
	Acknowledge:    OpKnown | OpResponse | OpOnly | OpAETH,
	AtomicAck:      OpKnown | OpResponse | OpOnly | OpAETH | OpPayload, // AtomicAckETH (8 bytes) counts as payload here
	CompareSwap:    OpKnown | OpRequest | OpOnly | OpAtomicETH,
	FetchAdd:       OpKnown | OpRequest | OpOnly | OpAtomicETH,
	SendLastInv:    OpKnown | OpRequest | OpLast | OpSend | OpIETH | OpPayload,
	SendOnlyInv:    OpKnown | OpRequest | OpOnly | OpSend | OpIETH | OpPayload,
	Flush:          OpKnown | OpRequest | OpOnly | OpFETH | OpRETH,
	AtomicWrite:    OpKnown | OpRequest | OpOnly | OpRETH | OpPayload,
	CNP:            OpKnown | OpPayload, // 16 reserved bytes
}

// Flags returns the description of o; 0 for an undefined opcode.
func (o Opcode) Flags() OpFlags { return opTable[o] }

// Is reports whether any of the bits f is set for o.
func (o Opcode) Is(f OpFlags) bool { return opTable[o]&f != 0 }

// extLen is the length in bytes of the extension headers after BTH, by opcode.
var extLen = func() (t [256]uint8) {
	for o := range t {
		f := opTable[o]
		for _, h := range []struct {
			bit OpFlags
			len uint8
		}{{OpFETH, FETHLen}, {OpRETH, RETHLen}, {OpAETH, AETHLen}, {OpImm, ImmDtLen}, {OpIETH, IETHLen}, {OpAtomicETH, AtomicETHLen}} {
			if f&h.bit != 0 {
				t[o] += h.len
			}
		}
	}
	return t
}()

// ExtLen returns the bytes of extension headers between BTH and payload.
func (o Opcode) ExtLen() int { return int(extLen[o]) }

// Header lengths in bytes (IBTA §9.2-9.3).
const (
	BTHLen       = 12
	FETHLen      = 4
	RETHLen      = 16
	AETHLen      = 4
	ImmDtLen     = 4
	IETHLen      = 4
	AtomicETHLen = 28
	ICRCLen      = 4
	UDPPort      = 4791 // RoCEv2 destination port
)

// Syndrome is the first byte of AETH: the kind of an acknowledgement and its
// credit count, RNR timer code or NAK code (IBTA table 45).
type Syndrome uint8

// Syndromes that the switch sends, and the kinds by which it reads them.
const (
	SyndromeACK         Syndrome = 0x1F // ACK, credits not limited
	SyndromeRNR         Syndrome = 0x20 // | timer code 0..31
	SyndromeNAKSequence Syndrome = 0x60
	SyndromeNAKInvalid  Syndrome = 0x61 // invalid request
	SyndromeNAKAccess   Syndrome = 0x62 // remote access error
	SyndromeNAKOpErr    Syndrome = 0x63 // remote operational error
)

// AckKind classifies a Syndrome.
type AckKind uint8

// Kinds of acknowledgement. KindReserved syndromes must never be forwarded:
// rdma_rxe puts the QP into error on one (rxe_comp.c:check_ack).
const (
	KindReserved AckKind = iota
	KindACK
	KindRNR
	KindSequence // NAK 0x60
	KindFatal    // NAK 0x61..0x63
)

// Kind classifies s.
func (s Syndrome) Kind() AckKind {
	switch {
	case s < 0x20:
		return KindACK
	case s < 0x40:
		return KindRNR
	case s == SyndromeNAKSequence:
		return KindSequence
	case s >= SyndromeNAKInvalid && s <= SyndromeNAKOpErr:
		return KindFatal
	}
	return KindReserved
}
