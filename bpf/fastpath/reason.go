// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fastpath

// Reason is why a packet for a group was left to user space. It is enum fast_reason of
// fast.h.
type Reason uint32

// Reasons, in the order in which they are checked. What each means is in the table reasons.
const (
	NotSource Reason = iota
	Opcode
	Headers
	Length
	OutOfWindow
	Slow
	Behind
	Ahead
	Limit
	Raced
	NoRoom
	NumReasons
)

// reasons has a row for each Reason, and a last one for all other values: the name under which packets are
// counted, and the packets. docs/COUNTERS.md is made of it.
var reasons = [NumReasons + 1]struct {
	name, text string
}{
	NotSource:   {name: "not_source", text: "from another member than the source, or by another port or next hop than the source's: feedback, or a member that begins to send"},
	Opcode:      {name: "opcode", text: "neither SEND nor WRITE, or with invalidate"},
	Headers:     {name: "headers", text: "with header fields that the group's packets do not have, or longer than a slot of its ring: the worker judges and counts it"},
	Length:      {name: "length", text: "of a length that a packet of its kind cannot have in this group"},
	OutOfWindow: {name: "window", text: "a WRITE that the worker answers or refuses: out of the group's window, with the key of a single member, or in a group without a window"},
	Slow:        {name: "slow", text: "while the group was not on the fast path: `gleam group show` says why"},
	Behind:      {name: "behind", text: "sent again by the source"},
	Ahead:       {name: "ahead", text: "after a gap: something was lost before the switch"},
	Limit:       {name: "limit", text: "beyond what the ring can store: receivers have not acknowledged enough"},
	Raced:       {name: "raced", text: "at the moment at which another processor, or the worker, changed the group"},
	NoRoom:      {name: "no_room", text: "in a frame without room in front of it, or without a slot"},
	NumReasons:  {name: "invalid"},
}

// String returns the name under which r is counted.
func (r Reason) String() string { return reasons[min(r, NumReasons)].name }

// Text says what packets were left for r.
func (r Reason) Text() string { return reasons[min(r, NumReasons)].text }

// Counters are packets left to user space, by Reason.
type Counters [NumReasons]uint64
