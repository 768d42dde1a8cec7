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
	OverlappingMembers    Reason = 5  // an IP twice in the group, or a queue pair that is in another group
	StaleEpoch            Reason = 6  // Value: the newest epoch the switch knows for the group
	EpochConflict         Reason = 7  // same epoch, other content; Value: as StaleEpoch
	BadWindow             Reason = 8  // missing, shorter than the group's, or past the end of memory
	NotGroupPrefix        Reason = 9  // the GroupIP is in none of the prefixes that the switch serves
	Malformed             Reason = 10 // authentic but not well formed
	TooManyMembers        Reason = 11 // Value: the switch's limit
	TooFewMembers         Reason = 12 // fewer than two
	FamilyMismatch        Reason = 13 // a member is of another IP family than the GroupIP
	BadMember             Reason = 14 // the member's IP cannot be a host's, or its QPN an RC queue pair's
	BadVirtualQPN         Reason = 15 // the group's virtual QPN cannot be an RC queue pair's
	UnknownGroup          Reason = 16 // no group is registered at this GroupIP in this epoch
	NotAllowed            Reason = 17 // the requester is neither the group's master nor the member concerned
	WrongBase             Reason = 18 // an update of an epoch that is not the installed one; Value: the installed epoch, 0 if there is none
	MembersChanged        Reason = 19 // an update names a removed member with its old record: the member needs another QPN or fresh PSNs
	FixedParameter        Reason = 20 // an update that changes more than members; Value: a Parameter
	BadPolicy             Reason = 21 // a quorum or lag limit that the policy does not have or the members do not allow; Value: receivers
	BadDeadAfter          Reason = 22 // does not fit the sender's timeout and retries; Value: the bound it breaks, in ns
	QuotaExceeded         Reason = 23 // more groups, or members, than the key may register; Value: the limit
	StaleTransaction      Reason = 24 // older than the newest transaction of the registration or group; Value: the newest
	UsedNumbers           Reason = 25 // the member's queue pair has carried traffic since it was registered with these PSNs
	OtherKey              Reason = 26 // the group was registered under another key, or by hand
	EpochTooFar           Reason = 27 // further beyond the newest known epoch than the registrar allows; Value: the highest epoch allowed
	KeyRole               Reason = 28 // the key's roles do not allow the request
	KeyPrefix             Reason = 29 // the GroupIP is in none of the key's prefixes
	NoSender              Reason = 30 // every member is receive-only
	LocationUnconfirmed   Reason = 31 // the member has not confirmed the location that the switch's kernel has; Value: the MAC address there
	NoWay                 Reason = 32 // no usable next hop toward the member is a switch of this fabric; Value: the address of a next hop, of IPv6 the lower half
	SwitchSilent          Reason = 33 // a switch of the tree has not answered; Value: its ID
	SecondParent          Reason = 34 // two neighbours lead to one switch, or the routes have a loop; Value: its ID
	TreeTooDeep           Reason = 35 // too many switches one behind another; Value: the most
	NotInTrees            Reason = 36 // not for groups over several switches; Value: a TreeLimit
	KeyMissing            Reason = 37 // a switch of the tree does not have the group's key; Value: its ID
	OtherSwitch           Reason = 38 // the group was registered by way of another switch, where its master is to ask
	Contended             Reason = 39 // another master registers the group at the same time; Value: the ID of the switch where it does
	NeverFast             Reason = 40 // the switch demands its fast path of every group, which this one could not take; Value: a FastLimit
	NotStored             Reason = 41 // the switch cannot write its state file: it would not know new members after a restart
	NumReasons            Reason = 42
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
	LocationUnconfirmed:   "the member has not confirmed its location",
	NoSender:              "every member is registered to receive only: nobody could send",
	EpochTooFar:           "epoch too far ahead",
	NoWay:                 "no next hop toward the member is a gleamd switch",
	SwitchSilent:          "a switch of the tree does not answer",
	SecondParent:          "the routes lead to a switch from two sides",
	TreeTooDeep:           "too many switches one behind another",
	NotInTrees:            "not possible where members are at several switches",
	KeyMissing:            "a switch of the tree does not have the group's key",
	Contended:             "another master registers the group at the same time",
	OtherSwitch:           "the group was registered by way of another switch: its master has to ask there",
	NeverFast:             "the switch serves only groups that can take its fast path (fast_path: require)",
	NotStored:             "the switch cannot write its state file, and takes no new members until it can: after a restart it would not know them",
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

// TreeLimit is what a group over several switches cannot have, in the Value of a
// NotInTrees.
type TreeLimit uint64

// Limits of groups over several switches.
const (
	LimitQuorum TreeLimit = 1
	LimitByHand TreeLimit = 2
	LimitMove   TreeLimit = 3
)

// String names l.
func (l TreeLimit) String() string {
	switch l {
	case LimitQuorum:
		return "policy quorum"
	case LimitByHand:
		return "registration by hand"
	case LimitMove:
		return "a member that has moved to another switch: it has to leave, and to join with another queue pair"
	}
	return "unknown limit"
}

// FastLimit is what a group on the fast path cannot have, in the Value of a NeverFast.
type FastLimit uint64

// Limits of groups on the fast path.
const (
	FastRepair    FastLimit = 1
	FastPMTU      FastLimit = 2
	FastReceivers FastLimit = 3
	FastPort      FastLimit = 4
	FastTargets   FastLimit = 5
)

// String names l.
func (l FastLimit) String() string {
	switch l {
	case FastRepair:
		return "it needs local repair, and the group is registered without"
	case FastPMTU:
		return "its packets have to fit a buffer: register a smaller path MTU"
	case FastReceivers:
		return "there are too many receivers, of the group or behind one port"
	case FastPort:
		return "the member's port does not run XDP natively with frames in one buffer"
	case FastTargets:
		return "the group is registered with target messages, by which XDP does not rewrite WRITEs"
	}
	return "unknown limit"
}

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

// EndReason is the reason for the end of a group, or of one membership. The numbers are
// on the wire.
type EndReason uint8

// Reasons for the end of a group or membership.
const (
	NotEnded      EndReason = 0
	Deleted       EndReason = 1  // by the master or the operator
	Expired       EndReason = 2  // the lease ran out
	Replaced      EndReason = 3  // a newer epoch of the group does not have the member
	Left          EndReason = 4  // the member asked to leave
	Removed       EndReason = 5  // the master removed the member
	Evicted       EndReason = 6  // by the switch, under the group's policy; see the code
	Failed        EndReason = 7  // a fatal NAK under the policy Strict: the whole group has failed
	SwitchLost    EndReason = 8  // a switch next in the group's tree is lost, or has forgotten the group; see LostLink
	Withdrawn     EndReason = 9  // the operator of a switch has taken its address out of the group prefixes
	Forgotten     EndReason = 10 // the switch does not know the group: it has started again without it; never on the wire
	NumEndReasons EndReason = 11
)

var endReasonNames = [NumEndReasons]string{
	NotEnded: "not ended", Deleted: "deleted", Expired: "lease expired", Replaced: "replaced by a newer epoch",
	Left: "left", Removed: "removed by the master", Evicted: "evicted", Failed: "group failed",
	SwitchLost: "a switch of the tree was lost", Withdrawn: "its address is in no group prefix of a switch any more",
	Forgotten: "the switch has started again and does not know it",
}

// String returns w in words.
func (w EndReason) String() string {
	if w < NumEndReasons {
		return endReasonNames[w]
	}
	return "unknown"
}

// Elsewhere is the code of an eviction of a member that may have moved: the switch saw
// its address at another location, and the member answered no Where.
const Elsewhere rocev2.Syndrome = 8

// Cause returns in words the meaning of a Gone's code under Evicted or Failed.
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
		return "seen elsewhere, and answered neither from there nor from its old location (unconfirmed_moves: evict)"
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

// Statuses. All but Confirmed are refusals: the registered record of the member differs
// from the set-up of its queue pair.
const (
	Confirmed          Status = 0
	NotJoined          Status = 1 // the member has not joined this group
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

// String returns s in words that can follow a member's name.
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
	BadVersion           // another version of this protocol
	BadFormat            // lengths or fields that contradict each other
	Unauthenticated      // key id 0, but Insecure is not set
	UnknownKey           // a key id that is not configured
	BadMAC               // the HMAC does not match
	WrongRole            // a type that this machine does not accept
	WrongSource          // the IP source is not the ReplyTo address, or not that of the message's sender
	WrongInstance        // without a valid cookie; a request is answered with a Challenge
	StaleMessage         // an older epoch or transaction
	DuplicateMsg         // a repetition; answered again if the type has an answer
	UnknownGroupMsg      // the group is not known here
	NotForUs             // no record is this member's
	Unsolicited          // an answer without a request
	PendingFull          // too many registrations are being reassembled
	Rejected             // answered with a Reject
	OtherKeyMsg          // under another key than the registration's
	WrongLocation        // not from the location of the member that it speaks for
	NotFromSwitch        // a relay that did not come from a neighbour switch
	NumDrops
)

var dropNames = [NumDrops]string{
	NoDrop: "none", Truncated: "truncated", BadMagic: "bad_magic", BadVersion: "bad_version", BadFormat: "bad_format",
	Unauthenticated: "unauthenticated", UnknownKey: "unknown_key", BadMAC: "bad_mac", WrongRole: "wrong_role",
	WrongSource: "wrong_source", WrongInstance: "wrong_instance", StaleMessage: "stale", DuplicateMsg: "duplicate",
	UnknownGroupMsg: "unknown_group", NotForUs: "not_for_us", Unsolicited: "unsolicited", PendingFull: "pending_full",
	Rejected: "rejected", OtherKeyMsg: "other_key", WrongLocation: "wrong_location",
	NotFromSwitch: "not_from_switch",
}

// Unanswered reports whether the sender of a message dropped for d gets no authentic
// answer, so that only the switch's counters show the cause.
func (d Drop) Unanswered() bool {
	switch d {
	case BadVersion, Unauthenticated, UnknownKey, BadMAC, WrongSource, WrongLocation, NotFromSwitch:
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

// dropTexts tell an operator the meaning and the origin of each drop. docs/COUNTERS.md is
// generated from them.
var dropTexts = [NumDrops]string{
	NoDrop:          "taken",
	Truncated:       "an envelope that is shorter than its header, body or MAC",
	BadMagic:        "a packet to the envelopes' UDP port that is of another protocol",
	BadVersion:      "an envelope of another version of the protocol",
	BadFormat:       "an envelope whose lengths or fields contradict each other",
	Unauthenticated: "an envelope without a key, which only `envelope.insecure` accepts, or a message between switches without the proof of its group's key",
	UnknownKey:      "an envelope, or a message between switches about a group, with a key id that is not in `envelope.keys`",
	BadMAC:          "an envelope, or a message between switches, whose MAC does not fit: the sender has another key under the same id",
	WrongRole:       "an envelope of a kind that a switch never gets",
	WrongSource:     "an envelope whose IP source is not the address of its sender, to which the answer would go: there is NAT between, or an envelope of another host was replayed",
	WrongInstance:   "a request without a valid cookie: a master's first one, or one whose cookie has expired or is of an earlier run of gleamd. It is answered with a Challenge, which has a cookie. Also an acknowledgement without one, and a message of another session with a neighbour switch, which get no answer",
	StaleMessage:    "an envelope of an older epoch or transaction",
	DuplicateMsg:    "an envelope that came before: the sender had no answer yet; answered again if it asks for an answer",
	UnknownGroupMsg: "an envelope about a group that is not registered",
	NotForUs:        "an envelope none of whose records is about this machine",
	Unsolicited:     "an answer without a request",
	PendingFull:     "a registration in several segments while too many others are incomplete",
	Rejected:        "an envelope that was answered with a Reject, which says why",
	OtherKeyMsg:     "an envelope under another key than the registration's",
	WrongLocation:   "an envelope in a member's name that came by another port, or from another MAC address, than the member's: another host that has the key uses the member's address, or the member has moved and has not confirmed that yet",
	NotFromSwitch:   "a message between switches about a registration that did not come from a switch whose hellos are proved: a host has sent it, or the adjacency is not up yet",
}

// Text returns the meaning of d, for people.
func (d Drop) Text() string {
	if d < NumDrops {
		return dropTexts[d]
	}
	return ""
}

// Normal reports whether drops for d occur in healthy operation: a master learns the
// instance by a first rejected request, and repeats requests until they are answered.
func (d Drop) Normal() bool { return d == NoDrop || d == WrongInstance || d == DuplicateMsg }
