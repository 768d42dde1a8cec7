// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

// Reason is the reason why a packet was not served. The data path returns no errors:
// every reason has a counter.
type Reason uint8

// Reasons. What each means is in the table reasons.
const (
	None Reason = iota
	UnknownGroup
	UnknownOpcode
	WrongQPN
	NotMember
	NotSource
	FromSource
	PSNOutOfRange
	FeedbackAhead
	FeedbackStale
	ReservedSyndrome
	DuplicateData
	NotMulticastable
	WindowViolation
	FailedGroup
	BadLength
	CNPFiltered
	ResponseToGroup
	NoSource
	QuorumLost
	BadTargetMessage
	TargetMessagesFull
	AwaitsVerification
	NotSender
	TurnOver
	AwaitsStorage
	Resuming
	NoToken
	NoSession
	LaterEpoch
	ConflictingReport
	OtherRegistration
	BehindGap
	DiscardedReply
	NumReasons
)

// reasons has a row for each Reason, and a last one for all other values. docs/COUNTERS.md is made of it.
var reasons = [NumReasons + 1]struct {
	name   string   // the name that packets are counted under
	text   string   // the text for an operator: the packet, and the usual cause of it
	normal bool     // packets are not served for it in a sound network too
	rules  []string // the rules by which packets are not served
}{
	None:               {name: "none", normal: true, text: "served"},
	UnknownGroup:       {name: "unknown_group", text: "for an address in the group prefixes that no registered group has: the group is not registered yet, or not any more"},
	UnknownOpcode:      {name: "unknown_opcode", rules: []string{"R22"}, text: "no opcode of RC, and no CNP: the queue pair is of another type"},
	WrongQPN:           {name: "wrong_qpn", rules: []string{"R72"}, text: "for another queue pair than the group's virtual one: the sender is connected to a wrong destination QPN, or the group is registered with a wrong one"},
	NotMember:          {name: "not_member", rules: []string{"R17", "R21", "R31"}, text: "from an address that is no member of the group, or no live one"},
	NotSource:          {name: "not_source", normal: true, rules: []string{"R29"}, text: "data of a member while another one's is not complete: it comes again when the sender's timeout has passed (R29)"},
	FromSource:         {name: "from_source", normal: true, rules: []string{"R15"}, text: "feedback from the source itself, to which no data was sent"},
	PSNOutOfRange:      {name: "psn_out_of_range", rules: []string{"R61"}, text: "a PSN too far from those in flight: the member's queue pair was set up with another PSN than it is registered with"},
	FeedbackAhead:      {name: "feedback_ahead", rules: []string{"R54"}, text: "an acknowledgement of what was never sent to the member: it expects another PSN than it is registered with"},
	FeedbackStale:      {name: "feedback_stale", normal: true, rules: []string{"R06"}, text: "an acknowledgement of nothing new: receivers acknowledge duplicates, too"},
	ReservedSyndrome:   {name: "reserved_syndrome", text: "an acknowledgement with a syndrome that the standard reserves"},
	DuplicateData:      {name: "duplicate_data", normal: true, rules: []string{"R12"}, text: "data that every live receiver has: the source has gone back, because an ACK to it was lost or delayed; it is answered and not forwarded"},
	NotMulticastable:   {name: "not_multicastable", rules: []string{"R28"}, text: "READ, ATOMIC or FLUSH, which no group can serve: answered with NAK 0x61, status 9 at the sender"},
	WindowViolation:    {name: "window_violation", rules: []string{"R27"}, text: "a WRITE outside of the group's window, or with another R_Key: answered with NAK 0x62, status 10 at the sender"},
	FailedGroup:        {name: "group_failed", rules: []string{"R25"}, text: "for a group that has failed: its members have to reset their queue pairs and register again"},
	BadLength:          {name: "bad_length", rules: []string{"R28", "R67"}, text: "a payload that does not fit opcode and path MTU: answered with NAK 0x61, status 9 at the sender"},
	CNPFiltered:        {name: "cnp_filtered", normal: true, rules: []string{"R32"}, text: "a congestion notification of a receiver that is not the most congested one: the source slows down for that one"},
	ResponseToGroup:    {name: "response_to_group", rules: []string{"R22"}, text: "a READ or ATOMIC response: no group requests one"},
	NoSource:           {name: "no_source", normal: true, rules: []string{"R17"}, text: "feedback while the group has no source, such as an ACK that comes after its transfer has ended"},
	QuorumLost:         {name: "quorum_lost", rules: []string{"R40"}, text: "data for a group with fewer receivers than its quorum: answered with NAK 0x63, status 11 at the sender"},
	BadTargetMessage:   {name: "bad_target_message", rules: []string{"R41"}, text: "a target message that is no single WRITE, or names no valid target: answered with NAK 0x61, status 9 at the sender"},
	TargetMessagesFull: {name: "target_messages_full", rules: []string{"R41"}, text: "a target message while too many are in flight: the source sends it again"},
	AwaitsVerification: {name: "awaits_verification", normal: true, rules: []string{"R52", "R53"}, text: "data that waits until a new member has shown which PSN it expects: the source gets a NAK for it then (R53); data from another switch waits here instead, if it has room (R96)"},
	NotSender:          {name: "not_sender", rules: []string{"R76"}, text: "data of a member that is registered to receive only: answered with NAK 0x62, status 10 at the sender (R76)"},
	TurnOver:           {name: "turn_over", normal: true, rules: []string{"R77"}, text: "data of the source at the end of its turn, as another member waits for its own: it comes again when the sender's RNR timer has passed (R77)"},
	AwaitsStorage:      {name: "awaits_storage", normal: true, rules: []string{"R83"}, text: "data of a new turn, or of a message with new receivers, that waits until the state file has it, or is behind such data: the source gets a NAK for it then (R83, R102); data from another switch waits here instead, if it has room (R96)"},
	Resuming:           {name: "resuming", normal: true, rules: []string{"R83"}, text: "data for a group of before a restart of the switch: its receivers have not answered yet what they have (R83)"},
	NoToken:            {name: "no_token", normal: true, rules: []string{"R84"}, text: "data of a member that may not send now, as the right to be the source is elsewhere in the tree of switches: it comes again (R84)"},
	NoSession:          {name: "no_session", normal: true, rules: []string{"R111"}, text: "a report of a neighbouring switch from before one of the two started, or of a registration that one of them does not have yet, or not any more (R111)"},
	LaterEpoch:         {name: "later_epoch", rules: []string{"R111"}, text: "a report of a neighbouring switch that names a term of a later registration in a session of this one: one of the two has a defect (R111)"},
	ConflictingReport:  {name: "conflicting_report", rules: []string{"R111"}, text: "a report of a neighbouring switch by which the token has crossed the edge between the two as it cannot have: one of the two has a defect (R111)"},
	OtherRegistration:  {name: "other_registration", normal: true, rules: []string{"R87"}, text: "an acknowledgement of a neighbouring switch for an earlier or a later registration of the group or of its source (R87); if it does not end, the two switches have different registrations"},
	BehindGap:          {name: "behind_gap", normal: true, rules: []string{"R103"}, text: "data that came behind a gap while the group is on the fast path: no receiver can use it, and the source, which is asked for what is missing, sends it again (R103)"},
	DiscardedReply:     {name: "discarded_reply", normal: true, rules: []string{"R107"}, text: "data that a receiver sends back in a group that takes the replies of another one only: acknowledged, and sent to nobody, as the group's policy of replies says (R107)"},
	NumReasons:         {name: "invalid"},
}

// String returns the name under which r is counted.
func (r Reason) String() string { return reasons[min(r, NumReasons)].name }

// Text returns the explanation of r for an operator.
func (r Reason) Text() string { return reasons[min(r, NumReasons)].text }

// Rules returns the rules by which packets are not served for reason r.
func (r Reason) Rules() []string { return reasons[min(r, NumReasons)].rules }

// Normal reports whether packets are not served for reason r in a sound network too: the
// protocol has no further use for them, or repeats them by itself. Any other reason is a
// loss, or a mistake in a host or a registration.
func (r Reason) Normal() bool { return reasons[min(r, NumReasons)].normal }
