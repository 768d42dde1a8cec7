// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Kind says where in the switch a packet was recorded.
type Kind uint8

// Kinds.
const (
	Received Kind = iota // a packet as it came
	Copied               // a copy of what has just come, as it was staged for its port
	Resent               // a copy of a packet in the repair store
	Built                // a packet that the switch itself has made
	NotSent              // a copy that did not go to its port, as it came
)

// Place is where the PSN of a source's packet lies, by what the core had before it.
type Place uint8

// Places.
const (
	NoPlace     Place = iota // none: the packet is not data of the source, or its place is not known
	Next                     // the place of nxt
	Ahead                    // a place beyond nxt: packets are missing
	Again                    // a place below nxt that is not acknowledged
	Acked                    // a place that is acknowledged
	OtherSource              // the sender is not the source of the group: there is none yet, or another one
)

// Flags are facts about a recorded packet.
type Flags uint16

// Bits of Flags.
const (
	Retained   Flags = 1 << iota // a packet in the repair store
	Translated                   // PSN, QPN and addresses are the receiver's: the leg is connected
	NewAddress                   // VA and R_Key are the receiver's, too
	AsksACK                      // the switch has set AckReq
	Emptied                      // a WRITE of no bytes in the place of a target message
	ByXDP                        // the XDP programs have forwarded it, and the worker reports it
	Replaced                     // a later ACK of the same batch has taken its place: it was not sent
	Deferred                     // a copy not sent that the store sends when the port has room
	Marked                       // CE was set here
)

// Record is one recorded packet.
type Record struct {
	Header
	At     time.Duration // the time by the workers' clock
	Kind   Kind
	Place  Place
	Flags  Flags
	Port   int
	Length int    // the length of the frame on the wire, without FCS
	Data   []byte // its beginning, in a buffer that belongs to the entry of the ring

	// Of copies: the same fields of the packet that they were made of.
	WasPSN rocev2.PSN
	WasQP  rocev2.QPN
	WasVA  uint64
	VA     uint64     // the address in a copy with NewAddress
	Member netip.Addr // the member that the copy is for; not valid: it goes to another switch

	// Of received packets: what became of them.
	Copies   int    // copies that were staged
	Resent   int    // copies of other packets, that were staged because of it
	Feedback int    // packets for the source or the neighbours
	Drop     string // the name of the reason for which it was not served; of NotSent: not sent
	Reply    string // the reason for which an answer to it was not sent

	LostBefore uint64 // packets since the record before that were not recorded for lack of room, or beyond the rate
}
