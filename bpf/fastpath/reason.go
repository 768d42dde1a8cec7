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

// Counters are packets left to user space, by Reason.
type Counters [NumReasons]uint64
