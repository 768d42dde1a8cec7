// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

// Reason says why a packet was not served. The data path returns no errors:
// every reason has a counter.
type Reason uint8

// Reasons. Their names, as operators see them, are in reasonNames.
const (
	None             Reason = iota
	UnknownGroup            // no group has this IP
	UnknownOpcode           // not an opcode of RC, and no CNP
	WrongQPN                // not for the group's virtual QPN
	NotMember               // data or feedback from a stranger
	NotSource               // data of a member while another one's is in flight
	FromSource              // feedback from the source itself
	OutOfWindow             // a PSN nobody can mean now
	FeedbackAhead           // acknowledges what was never forwarded
	FeedbackStale           // says nothing new
	ReservedSyndrome        // AETH 0x40..0x5F, 0x64..0xFF
	DuplicateData           // every live receiver has it; answered, not forwarded
	NotMulticastable        // READ, ATOMIC, FLUSH: answered with NAK 0x61
	WindowViolation         // RETH outside the group's window: answered with NAK 0x62
	GroupDead               // after a fatal NAK under the strict policy
	BadLength               // payload does not fit the opcode and path MTU: answered with NAK 0x61
	Filtered                // a CNP of a branch that is not the most congested
	ResponseToGroup         // READ or ATOMIC response: nothing of ours asks for one
	NoSource                // feedback or a CNP while nobody is sending
	QuorumLost              // fewer receivers than the quorum: answered with NAK 0x63
	BadUpdate               // an update message that is no single WRITE, or makes no sense: answered with NAK 0x61
	UpdatesFull             // too many update messages in flight; the source sends it again
	NumReasons
)

var reasonNames = [NumReasons]string{
	None:             "none",
	UnknownGroup:     "unknown_group",
	UnknownOpcode:    "unknown_opcode",
	WrongQPN:         "wrong_qpn",
	NotMember:        "not_member",
	NotSource:        "not_source",
	FromSource:       "from_source",
	OutOfWindow:      "out_of_window",
	FeedbackAhead:    "feedback_ahead",
	FeedbackStale:    "feedback_stale",
	ReservedSyndrome: "reserved_syndrome",
	DuplicateData:    "duplicate_data",
	NotMulticastable: "not_multicastable",
	WindowViolation:  "window_violation",
	GroupDead:        "group_dead",
	BadLength:        "bad_length",
	Filtered:         "cnp_filtered",
	ResponseToGroup:  "response_to_group",
	NoSource:         "no_source",
	QuorumLost:       "quorum_lost",
	BadUpdate:        "bad_update",
	UpdatesFull:      "updates_full",
}

// String returns the name under which r is counted.
func (r Reason) String() string {
	if r < NumReasons {
		return reasonNames[r]
	}
	return "invalid"
}
