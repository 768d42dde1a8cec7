// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

// Reason is the reason why a packet was not served. The data path returns no errors:
// every reason has a counter.
type Reason uint8

// Reasons. Their names, as operators see them, are in reasonNames.
const (
	None               Reason = iota
	UnknownGroup              // no group has this IP
	UnknownOpcode             // neither an opcode of RC nor CNP
	WrongQPN                  // for another QPN than the group's virtual one
	NotMember                 // data or feedback from an address that is no live member
	NotSource                 // data of a member while data of another one is in flight
	FromSource                // feedback from the source itself
	PSNOutOfRange             // a PSN too far below or above acked
	FeedbackAhead             // acknowledges a PSN that was never forwarded
	FeedbackStale             // acknowledges nothing new
	ReservedSyndrome          // AETH 0x40..0x5F, 0x64..0xFF
	DuplicateData             // acknowledged already; answered, not forwarded
	NotMulticastable          // READ, ATOMIC, FLUSH: answered with NAK 0x61
	WindowViolation           // RETH or R_Key outside the group's window: answered with NAK 0x62
	FailedGroup               // the group has failed
	BadLength                 // payload does not fit the opcode and path MTU: answered with NAK 0x61
	CNPFiltered               // a CNP of a leg that is not the most congested
	ResponseToGroup           // READ or ATOMIC response: no group requests one
	NoSource                  // feedback or a CNP while the group has no source
	QuorumLost                // fewer receivers than the quorum: answered with NAK 0x63
	BadTargetMessage          // a target message that is no WRITE_ONLY, or that names no target: answered with NAK 0x61
	TargetMessagesFull        // too many target messages in flight; the source sends this one again
	AwaitsVerification        // the message waits for unverified receivers, and is not held (R96); the source is asked for it when they are verified
	NotSender                 // data of a member that only receives: answered with NAK 0x62
	TurnOver                  // data of the source after its turn: answered with an RNR NAK, as another member's turn is next
	AwaitsStorage             // the source's data waits until the positions of the members are stored, or is behind such data; the source is asked for it then
	Resuming                  // data for a group that has not learnt yet what its receivers have
	NoToken                   // data of a member that may not send now: the right to be the source is elsewhere in the tree
	NoSession                 // a report of a neighbour with which there is no such session (R111)
	LaterEpoch                // a report that names a term of a later registration, in a session of this one (R111)
	ConflictingReport         // a report by which the token has crossed as it cannot have (R111)
	OtherRegistration         // feedback of a neighbouring switch for another registration of the group or of its source
	BehindGap                 // data of a connected source behind a gap, of a group on the fast path; the source sends it again
	DiscardedReply            // data of a member whose replies go to nobody: acknowledged (R107)
	NumReasons
)

var reasonNames = [NumReasons]string{
	None:               "none",
	UnknownGroup:       "unknown_group",
	UnknownOpcode:      "unknown_opcode",
	WrongQPN:           "wrong_qpn",
	NotMember:          "not_member",
	NotSource:          "not_source",
	FromSource:         "from_source",
	PSNOutOfRange:      "psn_out_of_range",
	FeedbackAhead:      "feedback_ahead",
	FeedbackStale:      "feedback_stale",
	ReservedSyndrome:   "reserved_syndrome",
	DuplicateData:      "duplicate_data",
	NotMulticastable:   "not_multicastable",
	WindowViolation:    "window_violation",
	FailedGroup:        "group_failed",
	BadLength:          "bad_length",
	CNPFiltered:        "cnp_filtered",
	ResponseToGroup:    "response_to_group",
	NoSource:           "no_source",
	QuorumLost:         "quorum_lost",
	BadTargetMessage:   "bad_target_message",
	TargetMessagesFull: "target_messages_full",
	AwaitsVerification: "awaits_verification",
	NotSender:          "not_sender",
	TurnOver:           "turn_over",
	AwaitsStorage:      "awaits_storage",
	Resuming:           "resuming",
	NoToken:            "no_token",
	NoSession:          "no_session",
	LaterEpoch:         "later_epoch",
	ConflictingReport:  "conflicting_report",
	OtherRegistration:  "other_registration",
	BehindGap:          "behind_gap",
	DiscardedReply:     "discarded_reply",
}

// String returns the name under which r is counted.
func (r Reason) String() string {
	if r < NumReasons {
		return reasonNames[r]
	}
	return "invalid"
}

// reasonTexts explain the reasons to an operator: the packet, and the usual cause of it.
// docs/COUNTERS.md is made of them.
var reasonTexts = [NumReasons]string{
	None:               "served",
	UnknownGroup:       "for an address in the group prefixes that no registered group has: the group is not registered yet, or not any more",
	UnknownOpcode:      "no opcode of RC, and no CNP: the queue pair is of another type",
	WrongQPN:           "for another queue pair than the group's virtual one: the sender is connected to a wrong destination QPN, or the group is registered with a wrong one",
	NotMember:          "from an address that is no member of the group, or no live one",
	NotSource:          "data of a member while another one's is not complete: it comes again when the sender's timeout has passed (R29)",
	FromSource:         "feedback from the source itself, to which no data was sent",
	PSNOutOfRange:      "a PSN too far from those in flight: the member's queue pair was set up with another PSN than it is registered with",
	FeedbackAhead:      "an acknowledgement of what was never sent to the member: it expects another PSN than it is registered with",
	FeedbackStale:      "an acknowledgement of nothing new: receivers acknowledge duplicates, too",
	ReservedSyndrome:   "an acknowledgement with a syndrome that the standard reserves",
	DuplicateData:      "data that every live receiver has: the source has gone back, because an ACK to it was lost or delayed; it is answered and not forwarded",
	NotMulticastable:   "READ, ATOMIC or FLUSH, which no group can serve: answered with NAK 0x61, status 9 at the sender",
	WindowViolation:    "a WRITE outside of the group's window, or with another R_Key: answered with NAK 0x62, status 10 at the sender",
	FailedGroup:        "for a group that has failed: its members have to reset their queue pairs and register again",
	BadLength:          "a payload that does not fit opcode and path MTU: answered with NAK 0x61, status 9 at the sender",
	CNPFiltered:        "a congestion notification of a receiver that is not the most congested one: the source slows down for that one",
	ResponseToGroup:    "a READ or ATOMIC response: no group requests one",
	NoSource:           "feedback while the group has no source, such as an ACK that comes after its transfer has ended",
	QuorumLost:         "data for a group with fewer receivers than its quorum: answered with NAK 0x63, status 11 at the sender",
	BadTargetMessage:   "a target message that is no single WRITE, or names no valid target: answered with NAK 0x61, status 9 at the sender",
	TargetMessagesFull: "a target message while too many are in flight: the source sends it again",
	AwaitsVerification: "data that waits until a new member has shown which PSN it expects: the source gets a NAK for it then (R53); data from another switch waits here instead, if it has room (R96)",
	NotSender:          "data of a member that is registered to receive only: answered with NAK 0x62, status 10 at the sender (R76)",
	TurnOver:           "data of the source at the end of its turn, as another member waits for its own: it comes again when the sender's RNR timer has passed (R77)",
	AwaitsStorage:      "data of a new turn, or of a message with new receivers, that waits until the state file has it, or is behind such data: the source gets a NAK for it then (R83, R102); data from another switch waits here instead, if it has room (R96)",
	Resuming:           "data for a group of before a restart of the switch: its receivers have not answered yet what they have (R83)",
	NoToken:            "data of a member that may not send now, as the right to be the source is elsewhere in the tree of switches: it comes again (R84)",
	NoSession:          "a report of a neighbouring switch from before one of the two started, or of a registration that one of them does not have yet, or not any more (R111)",
	LaterEpoch:         "a report of a neighbouring switch that names a term of a later registration in a session of this one: one of the two has a defect (R111)",
	ConflictingReport:  "a report of a neighbouring switch by which the token has crossed the edge between the two as it cannot have: one of the two has a defect (R111)",
	OtherRegistration:  "an acknowledgement of a neighbouring switch for an earlier or a later registration of the group or of its source (R87); if it does not end, the two switches have different registrations",
	BehindGap:          "data that came behind a gap while the group is on the fast path: no receiver can use it, and the source, which is asked for what is missing, sends it again (R103)",
	DiscardedReply:     "data that a receiver sends back in a group that takes the replies of another one only: acknowledged, and sent to nobody, as the group's policy of replies says (R107)",
}

// Text returns the explanation of r for an operator.
func (r Reason) Text() string {
	if r < NumReasons {
		return reasonTexts[r]
	}
	return ""
}

// Normal reports whether packets are not served for reason r in a sound network too: the
// protocol has no further use for them, or repeats them by itself. Any other reason is a
// loss, or a mistake in a host or a registration.
func (r Reason) Normal() bool {
	switch r {
	case None, NotSource, FromSource, FeedbackStale, DuplicateData, CNPFiltered, NoSource, AwaitsVerification, TurnOver, AwaitsStorage, Resuming, NoToken, NoSession, OtherRegistration, BehindGap, DiscardedReply:
		return true
	}
	return false
}
