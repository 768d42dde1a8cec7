// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fastpath

// Reason is why a packet for a group was left to user space. It is enum fast_reason of
// fast.h.
type Reason uint32

// Reasons, in the order in which they are checked.
const (
	NotSource   Reason = iota // from another member or place than the source's
	Opcode                    // not SEND or WRITE, or with invalidate
	Headers                   // header fields that the group's packets do not have
	Length                    // no length that a packet of its kind may have
	OutOfWindow               // a WRITE outside of the window, or to be refused
	Slow                      // the group is not FAST
	Behind                    // before hi: sent again
	Ahead                     // after hi: a gap
	Limit                     // at the limit: the ring is full
	Raced                     // the group's word changed meanwhile
	NoRoom                    // no headroom in the frame, or no slot
	NumReasons
)

var reasonNames = [NumReasons]string{
	NotSource:   "not_source",
	Opcode:      "opcode",
	Headers:     "headers",
	Length:      "length",
	OutOfWindow: "window",
	Slow:        "slow",
	Behind:      "behind",
	Ahead:       "ahead",
	Limit:       "limit",
	Raced:       "raced",
	NoRoom:      "no_room",
}

// String returns the name under which r is counted.
func (r Reason) String() string {
	if r < NumReasons {
		return reasonNames[r]
	}
	return "invalid"
}

var reasonTexts = [NumReasons]string{
	NotSource:   "from another member than the source, or by another port or next hop than the source's: feedback, or a member that begins to send",
	Opcode:      "neither SEND nor WRITE, or with invalidate",
	Headers:     "with header fields that the group's packets do not have, or longer than a slot of its ring: the worker judges and counts it",
	Length:      "of a length that a packet of its kind cannot have in this group",
	OutOfWindow: "a WRITE that the worker answers or refuses: out of the group's window, with the key of a single member, or in a group without a window",
	Slow:        "while the group was not on the fast path: `gleam group show` says why",
	Behind:      "sent again by the source",
	Ahead:       "after a gap: something was lost before the switch",
	Limit:       "beyond what the ring can store: receivers have not acknowledged enough",
	Raced:       "at the moment at which another processor, or the worker, changed the group",
	NoRoom:      "in a frame without room in front of it, or without a slot",
}

// Text says what packets were left for r. docs/COUNTERS.md is generated from it.
func (r Reason) Text() string {
	if r < NumReasons {
		return reasonTexts[r]
	}
	return ""
}

// Counters are packets left to user space, by Reason.
type Counters [NumReasons]uint64
