// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"fmt"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Reason says why a request was rejected. The numbers are on the wire.
type Reason uint8

// Reasons for a Reject.
const (
	NoReason              Reason = 0
	UnknownMemberLocation Reason = 1  // no neighbour, FDB entry or route leads to the member
	PathMTUMismatch       Reason = 2  // not a path MTU, or more than the switch's ports carry; Value: the largest it serves, in bytes
	TableFull             Reason = 3  // Value: the number of groups the switch has room for
	BadAuthentication     Reason = 4  // unknown key, wrong MAC, or none; only ever a hint, see Reject
	OverlappingMembers    Reason = 5  // an IP twice in the group, or a QP that is in another group
	StaleEpoch            Reason = 6  // Value: the newest epoch the switch knows for the group
	EpochConflict         Reason = 7  // same epoch, other content; Value: as StaleEpoch
	BadWindow             Reason = 8  // missing, shorter than the group's, or past the end of memory
	NotGroupPrefix        Reason = 9  // the GroupIP is not in a prefix that the switch serves
	Malformed             Reason = 10 // authentic but not well formed
	TooManyMembers        Reason = 11 // Value: the largest number the switch takes
	TooFewMembers         Reason = 12 // fewer than two
	FamilyMismatch        Reason = 13 // a member is of another IP family than the GroupIP
	BadMember             Reason = 14 // the member's IP cannot be a host's, or its QPN an RC queue pair's
	BadVirtualQPN         Reason = 15 // the group's virtual QPN cannot be an RC queue pair's
	UnknownGroup          Reason = 16 // nothing is registered at this GroupIP in this epoch
	NotAllowed            Reason = 17 // the asker is neither the group's master nor the member concerned
	WrongBase             Reason = 18 // an update of another epoch than the installed one; Value: that one, 0 if there is none
	MembersChanged        Reason = 19 // an update that names a member which has gone, as it was: it needs another QPN or fresh PSNs
	FixedParameter        Reason = 20 // an update that changes more than members; Value: a Parameter
	BadPolicy             Reason = 21 // a quorum or lag limit that the policy does not have or the members do not allow; Value: receivers
	BadDeadAfter          Reason = 22 // does not fit the sender's timeout and retries; Value: the bound it breaks, in ns
	QuotaExceeded         Reason = 23 // more groups, or members, than the key may register; Value: how many it may
	StaleTransaction      Reason = 24 // older than what the registration or group has had; Value: the newest, to go on from
	UsedNumbers           Reason = 25 // the member's queue pair has carried traffic since it was registered with these PSNs
	OtherKey              Reason = 26 // the group was registered under another key, or by hand
	EpochTooFar           Reason = 27 // beyond the newest known epoch by more than a registrar follows; Value: the highest that it takes
	KeyRole               Reason = 28 // the key's roles do not allow the request
	KeyPrefix             Reason = 29 // the GroupIP is not among the key's
	NoSender              Reason = 30 // every member only receives
	PlaceUnconfirmed      Reason = 31 // the member has not said that it is where the switch's kernel has it; Value: the MAC address there
	NumReasons            Reason = 32
)

var reasonNames = [NumReasons]string{
	NoReason:              "none",
	UnknownMemberLocation: "unknown member location",
	PathMTUMismatch:       "path MTU mismatch",
	TableFull:             "table full",
	BadAuthentication:     "bad authentication",
	OverlappingMembers:    "overlapping members",
	StaleEpoch:            "stale epoch",
	EpochConflict:         "same epoch with other content",
	BadWindow:             "bad window",
	NotGroupPrefix:        "not a group prefix",
	Malformed:             "malformed",
	TooManyMembers:        "too many members",
	TooFewMembers:         "too few members",
	FamilyMismatch:        "IP family mismatch",
	BadMember:             "invalid member",
	BadVirtualQPN:         "invalid virtual QPN",
	UnknownGroup:          "unknown group",
	NotAllowed:            "not allowed",
	WrongBase:             "update of another epoch",
	MembersChanged:        "a member has gone meanwhile; to come back it needs fresh PSNs",
	FixedParameter:        "an update cannot change this",
	BadPolicy:             "bad policy",
	BadDeadAfter:          "bad dead_after",
	QuotaExceeded:         "quota of the key exceeded",
	UsedNumbers:           "a queue pair with these numbers has carried traffic: register the PSNs that it has now (ibv_query_qp), or restart it with other ones",
	StaleTransaction:      "stale transaction",
	KeyRole:               "the key is not for this: its roles in the switch's configuration say what it may ask",
	KeyPrefix:             "the key is not for this group address: its prefixes in the switch's configuration say for which",
	PlaceUnconfirmed:      "the member has not confirmed its place",
	NoSender:              "every member is registered to receive only: nobody could send",
	EpochTooFar:           "epoch too far ahead",
	OtherKey:              "the group belongs to another key, or to the operator, who can end it (gleam group delete)",
}

// Parameter is a parameter of a whole group, in the Value of a FixedParameter.
type Parameter uint64

// Parameters that an update cannot change.
const (
	ParameterQPN    Parameter = 1
	ParameterPMTU   Parameter = 2
	ParameterWindow Parameter = 3
	ParameterPolicy Parameter = 4 // with quorum, dead_after, lag limits and the sender's timeout
)

// String names p.
func (p Parameter) String() string {
	switch p {
	case ParameterQPN:
		return "virtual QPN"
	case ParameterPMTU:
		return "path MTU"
	case ParameterWindow:
		return "WRITE window"
	case ParameterPolicy:
		return "policy"
	}
	return "unknown parameter"
}

// String returns r in words.
func (r Reason) String() string {
	if r < NumReasons {
		return reasonNames[r]
	}
	return "unknown reason"
}

// EndReason says why a group, or one member of it, is gone. The numbers are on the
// wire.
type EndReason uint8

// Reasons for the end of a group or membership.
const (
	NotEnded      EndReason = 0
	Deleted       EndReason = 1 // by the master or the operator
	Expired       EndReason = 2 // the lease ran out
	Replaced      EndReason = 3 // a newer epoch of the group does not have the member
	Left          EndReason = 4 // the member left by itself
	Removed       EndReason = 5 // the master removed the member
	Evicted       EndReason = 6 // the switch did, by the group's policy; the code says what for
	Failed        EndReason = 7 // a fatal NAK under the policy Strict: the group is dead, not only the member
	NumEndReasons EndReason = 8
)

var whyNames = [NumEndReasons]string{
	NotEnded: "not gone", Deleted: "deleted", Expired: "lease expired", Replaced: "replaced by a newer epoch",
	Left: "left", Removed: "removed by the master", Evicted: "evicted", Failed: "group failed",
}

// String returns w in words.
func (w EndReason) String() string {
	if w < NumEndReasons {
		return whyNames[w]
	}
	return "unknown"
}

// Elsewhere is the code of an eviction of a member that may have moved: the switch saw its
// address at another place, and it answered no Where.
const Elsewhere rocev2.Syndrome = 8

// Cause returns in words what the code of a Gone with Evicted or Failed says.
func Cause(code rocev2.Syndrome) string {
	switch code {
	case mcast.Silent:
		return "silent for dead_after: the switch took it for dead"
	case mcast.Lagging:
		return "over the lag limit"
	case mcast.Stranded:
		return "lacks what will not be sent again"
	case mcast.SourceRemoved:
		return "the source left with data in flight"
	case mcast.TooFewReceivers:
		return "fewer receivers than the quorum are left"
	case mcast.SourceStalled:
		return "the source stalled: it sent nothing for limits.source_timeout while another member waited; register anew with restarted queue pairs"
	case mcast.ReceivesOnly:
		return "registered to receive only: it may not send"
	case Elsewhere:
		return "seen elsewhere, and answered neither from there nor from its place (unconfirmed_moves: evict)"
	case mcast.Misnumbered:
		return "registered with other PSNs than its queue pair has"
	case rocev2.SyndromeNAKInvalid:
		return "fatal NAK 0x61, invalid request (completion status 9)"
	case rocev2.SyndromeNAKAccess:
		return "fatal NAK 0x62, remote access error (completion status 10)"
	case rocev2.SyndromeNAKOpErr:
		return "fatal NAK 0x63, remote operational error (completion status 11)"
	}
	return fmt.Sprintf("code 0x%02x", uint8(code))
}

// Status is a member's answer to a Notify. The numbers are on the wire.
type Status uint8

// Statuses. All but Confirmed are refusals: what the switch was told about the
// member is not what the member's queue pair was set up with.
const (
	Confirmed          Status = 0
	NotJoined          Status = 1 // the member knows nothing of this group
	QPNMismatch        Status = 2
	SQPSNMismatch      Status = 3
	RQPSNMismatch      Status = 4
	VirtualQPNMismatch Status = 5
	PMTUMismatch       Status = 6
	WindowMismatch     Status = 7
	NumStatuses        Status = 8
)

var statusNames = [NumStatuses]string{
	Confirmed: "confirmed", NotJoined: "has not joined the group", QPNMismatch: "has another QPN",
	SQPSNMismatch: "has another sq_psn", RQPSNMismatch: "has another rq_psn",
	VirtualQPNMismatch: "is connected to another virtual QPN", PMTUMismatch: "has another path MTU",
	WindowMismatch: "has another WRITE window",
}

// String returns s in words that follow a member's name.
func (s Status) String() string {
	if s < NumStatuses {
		return statusNames[s]
	}
	return "gave an unknown status"
}

// Drop says why an arriving message had no effect. Every reason has a counter
// in each machine.
type Drop uint8

// Reasons for a drop.
const (
	NoDrop          Drop = iota
	Truncated            // shorter than its header, body or MAC
	BadMagic             // not this protocol
	BadVersion           // another version of it
	BadFormat            // lengths or fields that contradict each other
	Unauthenticated      // key id 0, but Insecure is not set
	UnknownKey           // a key id that is not configured
	BadMAC               // the HMAC does not match
	WrongRole            // a message that this machine never gets
	WrongSource          // the IP source is not the ReplyTo address, or not the sender's
	WrongInstance        // of another life of the registrar; answered with a Challenge
	StaleMessage         // an older epoch or transaction
	DuplicateMsg         // seen before; answered again if it asks for an answer
	UnknownGroupMsg      // no such group here
	NotForUs             // none of its records is ours
	Unsolicited          // an answer to nothing we asked
	PendingFull          // too many registrations are being reassembled
	Rejected             // answered with a Reject
	OtherKeyMsg          // under another key than the registration's
	WrongPlace           // not from the place of the member that it speaks for
	NumDrops
)

var dropNames = [NumDrops]string{
	NoDrop: "none", Truncated: "truncated", BadMagic: "bad_magic", BadVersion: "bad_version", BadFormat: "bad_format",
	Unauthenticated: "unauthenticated", UnknownKey: "unknown_key", BadMAC: "bad_mac", WrongRole: "wrong_role",
	WrongSource: "wrong_source", WrongInstance: "wrong_instance", StaleMessage: "stale", DuplicateMsg: "duplicate",
	UnknownGroupMsg: "unknown_group", NotForUs: "not_for_us", Unsolicited: "unsolicited", PendingFull: "pending_full",
	Rejected: "rejected", OtherKeyMsg: "other_key", WrongPlace: "wrong_place",
}

// Unanswered reports that the sender of such a message gets no authentic answer,
// so that only the switch can tell why nothing happens.
func (d Drop) Unanswered() bool {
	switch d {
	case BadVersion, Unauthenticated, UnknownKey, BadMAC, WrongSource, WrongPlace:
		return true
	}
	return false
}

// String returns the name under which d is counted.
func (d Drop) String() string {
	if d < NumDrops {
		return dropNames[d]
	}
	return "invalid"
}

// dropTexts say what the drops mean to an operator: what was seen, and what it comes
// from. docs/COUNTERS.md is made of them.
var dropTexts = [NumDrops]string{
	NoDrop:          "taken",
	Truncated:       "an envelope that is shorter than its header, body or MAC",
	BadMagic:        "a packet to the envelopes' UDP port that is of another protocol",
	BadVersion:      "an envelope of another version of the protocol",
	BadFormat:       "an envelope whose lengths or fields contradict each other",
	Unauthenticated: "an envelope without a key, which only `envelope.insecure` accepts",
	UnknownKey:      "an envelope with a key id that is not in `envelope.keys`",
	BadMAC:          "an envelope whose MAC does not fit: the sender has another key under the same id",
	WrongRole:       "an envelope of a kind that a switch never gets",
	WrongSource:     "an envelope whose IP source is not the address that it speaks for, and wants the answer at: there is NAT between, or somebody else's was replayed",
	WrongInstance:   "an envelope for an earlier life of gleamd: answered with a Challenge, which has the present one",
	StaleMessage:    "an envelope of an older epoch or transaction",
	DuplicateMsg:    "an envelope that came before: the sender had no answer yet; answered again if it asks for an answer",
	UnknownGroupMsg: "an envelope about a group that is not registered",
	NotForUs:        "an envelope none of whose records is about this machine",
	Unsolicited:     "an answer to nothing that was asked",
	PendingFull:     "a registration in several segments while too many others are incomplete",
	Rejected:        "an envelope that was answered with a Reject, which says why",
	OtherKeyMsg:     "an envelope under another key than the registration's",
	WrongPlace:      "an envelope in a member's name that came by another port, or from another MAC address, than the member's: somebody who has the key uses the member's address, or it has moved and has not confirmed that yet",
}

// Text returns what d means, for people.
func (d Drop) Text() string {
	if d < NumDrops {
		return dropTexts[d]
	}
	return ""
}

// Normal says whether envelopes are dropped for d where all is well: a master learns
// the instance by being turned down once, and repeats itself until it is answered.
func (d Drop) Normal() bool { return d == NoDrop || d == WrongInstance || d == DuplicateMsg }
