// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rc

import "github.com/gleam-rdma/gleam/rocev2"

// Packet is one RC packet without its addresses and ICRC. Fields of headers
// that Op does not carry are zero. The pad count follows from the payload.
type Packet struct {
	Op        rocev2.Opcode
	AckReq    bool
	Solicited bool
	BECN      bool
	CE        bool            // received packets: the IP header's ECN bits say congestion experienced
	Syndrome  rocev2.Syndrome // AETH
	DestQP    rocev2.QPN
	PSN       rocev2.PSN
	MSN       rocev2.MSN // AETH
	DMALen    uint32     // RETH
	RKey      uint32     // RETH
	VA        uint64     // RETH
	Imm       uint32     // ImmDt
	InvKey    uint32     // IETH
	Payload   []byte     // payload without pad
	Length    int        // length of a payload of which no bytes are carried, without Payload
}

// PayloadLen returns the length of the payload in bytes, without pad.
func (p *Packet) PayloadLen() int {
	if p.Payload != nil {
		return len(p.Payload)
	}
	return p.Length
}

// Output has the packets and completions that calls of Input, Transmit, Advance and Fail
// produced, in order. It belongs to the caller, which may pass the same one repeatedly:
// calls append; Reset empties it and keeps its capacity.
type Output struct {
	Packets     []Packet
	Completions []Completion
}

// Reset empties o.
func (o *Output) Reset() {
	clear(o.Packets) // drops the references to payloads
	o.Packets = o.Packets[:0]
	o.Completions = o.Completions[:0]
}
