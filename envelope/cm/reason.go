// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import "fmt"

// Drop is the reason why a MAD was dropped; OK (0) if it was not. Drops are small and
// dense, so that a driver can count them in an array of NumDrops.
type Drop uint8

// Reasons of Decode. What each means is in the table drops.
const (
	OK Drop = iota
	BadLength
	BadClass
	BadMethod
	UnknownAttribute
	BadAddress
	BadField
	NumDecodeDrops // those of Decode
)

// Reasons of Manager.
const (
	WrongSource = NumDecodeDrops + iota
	Unlocated
	UnknownConnection
	Unexpected
	NumDrops
)

// drops has a row for each Drop, and a last one for all other values: the name as counters show it, and the
// meaning for an operator. docs/COUNTERS.md is made of it.
var drops = [NumDrops + 1]struct {
	name, text string
}{
	OK:                {name: "ok", text: "read"},
	BadLength:         {name: "bad_length", text: "a management datagram that has not 256 bytes"},
	BadClass:          {name: "bad_class", text: "a management datagram of another class than RDMA-CM, or of another version of it"},
	BadMethod:         {name: "bad_method", text: "a management datagram that is no message: RDMA-CM has neither requests nor answers of management"},
	UnknownAttribute:  {name: "unknown_attribute", text: "a message of RDMA-CM that is none of a connection, such as those of UD (SIDR)"},
	BadAddress:        {name: "bad_address", text: "a REQ without the addresses of librdmacm, or with addresses of two families: the program has dialled a GID, not an address"},
	BadField:          {name: "bad_field", text: "a message of RDMA-CM with a value that cannot be, or a DREQ for another queue pair"},
	WrongSource:       {name: "wrong_source", text: "a REQ whose addresses (of the packet, the GIDs, the program) are not one, or a message from elsewhere than its host is: forged, from behind a NAT, or the host has moved"},
	Unlocated:         {name: "unlocated", text: "a message of RDMA-CM of a host that the kernel does not find: its address is not in use"},
	UnknownConnection: {name: "unknown_connection", text: "a message of RDMA-CM of no connection: late, or from before a restart of gleamd. A DREQ is answered nevertheless"},
	Unexpected:        {name: "unexpected", text: "a message of RDMA-CM that has no place in the state of its connection: late, or repeated"},
	NumDrops:          {name: "invalid"},
}

// String returns the name of d as counters show it.
func (d Drop) String() string { return drops[min(d, NumDrops)].name }

// Text returns the meaning of d, for an operator.
func (d Drop) Text() string { return drops[min(d, NumDrops)].text }

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
