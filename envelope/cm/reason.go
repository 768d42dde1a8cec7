// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import "fmt"

// Drop is the reason why a MAD was dropped; OK (0) if it was not. Drops are small and
// dense, so that a driver can count them in an array of NumDrops.
type Drop uint8

// Reasons of Decode.
const (
	OK               Drop = iota
	BadLength             // not 256 bytes
	BadClass              // not of the communication manager, or of another version
	BadMethod             // not sent as a message (method Send, status 0)
	UnknownAttribute      // none of the messages of a connection
	BadAddress            // the addresses in a REQ are none of RDMA-CM, or of two families
	BadField              // a field whose value cannot be
	NumDecodeDrops        // those of Decode
)

// Reasons of Manager.
const (
	WrongSource       = NumDecodeDrops + iota // the addresses in a REQ are not those of the packet, or the packet comes from elsewhere than its host is
	Unlocated                                 // the caller does not know where its host is
	UnknownConnection                         // of no connection; a DREQ is answered nevertheless
	Unexpected                                // has no place in the state of its connection
	NumDrops                                  // the number of reasons
)

var dropNames = [NumDrops]string{
	OK: "ok", BadLength: "bad_length", BadClass: "bad_class", BadMethod: "bad_method",
	UnknownAttribute: "unknown_attribute", BadAddress: "bad_address", BadField: "bad_field",
	WrongSource: "wrong_source", Unlocated: "unlocated", UnknownConnection: "unknown_connection", Unexpected: "unexpected",
}

// String returns the name of d as counters show it.
func (d Drop) String() string {
	if d < NumDrops {
		return dropNames[d]
	}
	return "invalid"
}

// dropTexts explain the reasons to an operator. docs/COUNTERS.md is generated from them.
var dropTexts = [NumDrops]string{
	OK:                "read",
	BadLength:         "a management datagram that has not 256 bytes",
	BadClass:          "a management datagram of another class than RDMA-CM, or of another version of it",
	BadMethod:         "a management datagram that is no message: RDMA-CM has neither requests nor answers of management",
	UnknownAttribute:  "a message of RDMA-CM that is none of a connection, such as those of UD (SIDR)",
	BadAddress:        "a REQ without the addresses of librdmacm, or with addresses of two families: the program has dialled a GID, not an address",
	BadField:          "a message of RDMA-CM with a value that cannot be, or a DREQ for another queue pair",
	WrongSource:       "a REQ whose addresses (of the packet, the GIDs, the program) are not one, or a message from elsewhere than its host is: forged, from behind a NAT, or the host has moved",
	Unlocated:         "a message of RDMA-CM of a host that the kernel does not find: its address is not in use",
	UnknownConnection: "a message of RDMA-CM of no connection: late, or from before a restart of gleamd. A DREQ is answered nevertheless",
	Unexpected:        "a message of RDMA-CM that has no place in the state of its connection: late, or repeated",
}

// Text returns the meaning of d, for an operator.
func (d Drop) Text() string {
	if d < NumDrops {
		return dropTexts[d]
	}
	return ""
}

// RejectReason is the reason in a REJ (IBTA §12.6.7.2).
type RejectReason uint16

// Reasons that a switch gives, or that Linux does.
const (
	NoResources      RejectReason = 3
	TimedOut         RejectReason = 4
	InvalidServiceID RejectReason = 8
	InvalidService   RejectReason = 9
	StaleConnection  RejectReason = 10
	InvalidGID       RejectReason = 12
	InvalidMTU       RejectReason = 26
	ConsumerReject   RejectReason = 28
)

var rejectTexts = map[RejectReason]string{
	NoResources: "no resources", TimedOut: "timeout", InvalidServiceID: "invalid service ID", InvalidService: "invalid transport service type",
	StaleConnection: "stale connection", InvalidGID: "invalid GID", InvalidMTU: "invalid MTU", ConsumerReject: "consumer reject",
}

// String returns IBTA's words for r.
func (r RejectReason) String() string {
	if s, ok := rejectTexts[r]; ok {
		return s
	}
	return fmt.Sprintf("reason %d", uint16(r))
}
