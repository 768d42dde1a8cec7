// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"fmt"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Reason says why a request was rejected. The numbers are on the wire.
type Reason uint8

// Reasons for a Reject. docs/PROTOCOL.md §7 says what each means.
const (
	NoReason              Reason = 0
	UnknownMemberLocation Reason = 1
	PathMTUMismatch       Reason = 2
	TableFull             Reason = 3
	BadAuthentication     Reason = 4
	OverlappingMembers    Reason = 5
	StaleEpoch            Reason = 6
	EpochConflict         Reason = 7
	BadWindow             Reason = 8
	NotGroupPrefix        Reason = 9
	Malformed             Reason = 10
	TooManyMembers        Reason = 11
	TooFewMembers         Reason = 12
	FamilyMismatch        Reason = 13
	BadMember             Reason = 14
	BadVirtualQPN         Reason = 15
	UnknownGroup          Reason = 16
	NotAllowed            Reason = 17
	WrongBase             Reason = 18
	MembersChanged        Reason = 19
	FixedParameter        Reason = 20
	BadPolicy             Reason = 21
	BadDeadAfter          Reason = 22
	QuotaExceeded         Reason = 23
	StaleTransaction      Reason = 24
	UsedNumbers           Reason = 25
	OtherKey              Reason = 26
	EpochTooFar           Reason = 27
	KeyRole               Reason = 28
	KeyPrefix             Reason = 29
	NoSender              Reason = 30
	LocationUnconfirmed   Reason = 31
	NoWay                 Reason = 32
	SwitchSilent          Reason = 33
	SecondParent          Reason = 34
	TreeTooDeep           Reason = 35
	NotInTrees            Reason = 36
	KeyMissing            Reason = 37
	OtherSwitch           Reason = 38
	Contended             Reason = 39
	NeverFast             Reason = 40
	NotStored             Reason = 41
	GroupExists           Reason = 42
	NumReasons            Reason = 43
)

// reasons has a row for each Reason, and a last one for all other values.
var reasons = [NumReasons + 1]struct {
	text  string
	value func(uint64) string // the text of a Problem's Value; nil: it has none
}{
	NoReason:              {"none", nil},
	UnknownMemberLocation: {"unknown member location", nil},
	PathMTUMismatch:       {"path MTU mismatch", valueText[uint64](" (must be " + rocev2.PathMTUText + ", and at most %d here)")},
	TableFull:             {"table full", valueText[uint64](" (room for %d groups)")},
	BadAuthentication:     {"bad authentication", nil},
	OverlappingMembers:    {"overlapping members", valueText[Overlap](": %s")},
	StaleEpoch:            {"stale epoch", valueText[uint64](" (the switch knows epoch %d)")},
	EpochConflict:         {"same epoch with other content", valueText[uint64](" (the switch knows epoch %d)")},
	BadWindow:             {"bad window", nil},
	NotGroupPrefix:        {"not a group prefix", nil},
	Malformed:             {"malformed", nil},
	TooManyMembers:        {"too many members", valueText[uint64](" (at most %d)")},
	TooFewMembers:         {"too few members", nil},
	FamilyMismatch:        {"IP family mismatch", nil},
	BadMember:             {"invalid member", valueText[MemberFault](": %s")},
	BadVirtualQPN:         {"invalid virtual QPN", nil},
	UnknownGroup:          {"unknown group", nil},
	NotAllowed:            {"not allowed", nil},
	WrongBase:             {"update of another epoch", valueText[uint64](" (the installed one is %d)")},
	MembersChanged:        {"a member has gone meanwhile; to come back it needs fresh PSNs", nil},
	FixedParameter:        {"an update cannot change this", valueText[Parameter](": %s; register the group anew to change it")},
	BadPolicy:             {"bad policy", valueText[uint64](" (there are %d receivers)")},
	BadDeadAfter:          {"bad dead_after", valueText[time.Duration](" (dead_after must be longer than a sender's timeout, or who lost a last packet is taken for dead, and shorter than timeout times retries, or the sender gives up first; it breaks the bound of %v)")},
	QuotaExceeded:         {"quota of the key exceeded", valueText[uint64](" (at most %d)")},
	StaleTransaction:      {"stale transaction", valueText[uint64](" (the newest is %d)")},
	UsedNumbers:           {"a queue pair with these numbers has carried traffic: register the PSNs that it has now (ibv_query_qp), or restart it with other ones", nil},
	OtherKey:              {"the group belongs to another key, or to the operator, who can end it (gleam group delete)", nil},
	EpochTooFar:           {"epoch too far ahead", valueText[uint64](" (at most %d now; without a number the switch's next one is taken)")},
	KeyRole:               {"the key is not for this: its roles in the switch's configuration say what it may ask", nil},
	KeyPrefix:             {"the key is not for this group address: its prefixes in the switch's configuration say for which", nil},
	NoSender:              {"every member is registered to receive only: nobody could send", nil},
	LocationUnconfirmed:   {"the member has not confirmed its location", valueText[macValue](" (the switch's kernel has it at MAC address %s, from where no answer came: a program of the group must run there, and nobody else may use the address; gleam events at the switch names the port)")},
	NoWay:                 {"no next hop toward the member is a gleamd switch", valueText[hopValue](" (next hop %s)")},
	SwitchSilent:          {"a switch of the tree does not answer", valueText[SwitchID](" (switch %v)")},
	SecondParent:          {"the routes lead to a switch from two sides", valueText[SwitchID](" (switch %v)")},
	TreeTooDeep:           {"too many switches one behind another", valueText[uint64](" (at most %d)")},
	NotInTrees:            {"not possible where members are at several switches", valueText[TreeLimit](": %s")},
	KeyMissing:            {"a switch of the tree does not have the group's key", valueText[SwitchID](" (switch %v)")},
	OtherSwitch:           {"the group was registered by way of another switch: its master has to ask there", nil},
	Contended:             {"another master registers the group at the same time", valueText[SwitchID](" (switch %v)")},
	NeverFast:             {"the switch serves only groups that can take its fast path (fast_path: require)", valueText[FastLimit](": %s")},
	NotStored:             {"the switch cannot write its state file, and takes no new members until it can: after a restart it would not know them", nil},
	GroupExists:           {"the group exists: take another address", nil},
	NumReasons:            {"unknown reason", nil},
}

// valueText returns a function that formats a value as a T.
func valueText[T ~uint64 | ~int64](format string) func(uint64) string {
	return func(v uint64) string { return fmt.Sprintf(format, T(v)) }
}

// String returns r in words.
func (r Reason) String() string { return reasons[min(r, NumReasons)].text }

// wordOf returns the word of v; the first one, if v has none.
func wordOf[T ~uint64](words []string, v T) string {
	if v < T(len(words)) {
		return words[v]
	}
	return words[0]
}

// Overlap is where a member is already, in the Value of an OverlappingMembers.
type Overlap uint64

// Overlaps.
const (
	TwiceInGroup   Overlap = 1
	InAnotherGroup Overlap = 2
)

var overlaps = []string{
	"unknown overlap",
	TwiceInGroup:   "the registration has this address twice",
	InAnotherGroup: "this queue pair is in another group, which it has to leave first",
}

// String names o.
func (o Overlap) String() string { return wordOf(overlaps, o) }

// MemberFault is what no member can have, in the Value of a BadMember.
type MemberFault uint64

// Faults of a member.
const (
	NotUnicast    MemberFault = 1
	IsGroup       MemberFault = 2
	InGroupPrefix MemberFault = 3
	NoRCQPN       MemberFault = 4
)

var memberFaults = []string{
	"unknown fault",
	NotUnicast:    "not the unicast address of a host",
	IsGroup:       "the group's own address is no host's",
	InGroupPrefix: "an address in a group prefix of the switch is no host's",
	NoRCQPN:       "no RC queue pair has this number: 0x10 to 0xfffffe are",
}

// String names f.
func (f MemberFault) String() string { return wordOf(memberFaults, f) }

// Parameter is a parameter of a whole group, in the Value of a FixedParameter.
type Parameter uint64

// Parameters that an update cannot change.
const (
	ParameterQPN    Parameter = 1
	ParameterPMTU   Parameter = 2
	ParameterWindow Parameter = 3
	ParameterPolicy Parameter = 4 // the policy, with quorum, dead_after, lag limits and the sender's timeout
)

var parameterNames = []string{
	"unknown parameter",
	ParameterQPN:    "virtual QPN",
	ParameterPMTU:   "path MTU",
	ParameterWindow: "WRITE window",
	ParameterPolicy: "policy",
}

// String names p.
func (p Parameter) String() string { return wordOf(parameterNames, p) }

// TreeLimit is what a group over several switches cannot have, in the Value of a
// NotInTrees.
type TreeLimit uint64

// Limits of groups over several switches.
const (
	LimitQuorum TreeLimit = 1
	LimitByHand TreeLimit = 2
	LimitMove   TreeLimit = 3
)

var treeLimits = []string{
	"unknown limit",
	LimitQuorum: "policy quorum",
	LimitByHand: "registration by hand",
	LimitMove:   "a member that has moved to another switch: it has to leave, and to join with another queue pair",
}

// String names l.
func (l TreeLimit) String() string { return wordOf(treeLimits, l) }

// FastLimit is what a group on the fast path cannot have, in the Value of a NeverFast.
type FastLimit uint64

// Limits of groups on the fast path.
const (
	FastRepair    FastLimit = 1
	FastPMTU      FastLimit = 2 // the limit of releases without copies of frames in several buffers
	FastReceivers FastLimit = 3
	FastPort      FastLimit = 4
	FastTargets   FastLimit = 5
)

var fastLimits = []string{
	"unknown limit",
	FastRepair:    "it needs local repair, and the group is registered without",
	FastPMTU:      "its packets have to fit a buffer: register a smaller path MTU",
	FastReceivers: "there are too many receivers, of the group or behind one port",
	FastPort:      "the member's port does not run XDP natively, or has frames in several buffers on Linux before 6.6",
	FastTargets:   "the group is registered with target messages, by which XDP does not rewrite WRITEs",
}

// String names l.
func (l FastLimit) String() string { return wordOf(fastLimits, l) }

// EndReason is the reason for the end of a group, or of one membership. The numbers are
// on the wire.
type EndReason uint8

// Reasons for the end of a group or membership.
const (
	NotEnded      EndReason = 0
	Deleted       EndReason = 1  // the master or the operator has deleted the group
	Expired       EndReason = 2  // the lease ran out
	Replaced      EndReason = 3  // a newer epoch of the group does not have the member
	Left          EndReason = 4  // the member asked to leave
	Removed       EndReason = 5  // the master removed the member
	Evicted       EndReason = 6  // the switch has evicted the member, under the group's policy; see the code
	Failed        EndReason = 7  // a fatal NAK under the policy Strict: the whole group has failed
	SwitchLost    EndReason = 8  // a switch next in the group's tree is lost, or has forgotten the group; see LostLink
	Withdrawn     EndReason = 9  // the operator of a switch has taken its address out of the group prefixes
	Forgotten     EndReason = 10 // the switch does not know the group: it has started again without it; never on the wire
	NumEndReasons EndReason = 11
)

var endReasons = [NumEndReasons + 1]string{
	NotEnded: "not ended", Deleted: "deleted", Expired: "lease expired", Replaced: "replaced by a newer epoch",
	Left: "left", Removed: "removed by the master", Evicted: "evicted", Failed: "group failed",
	SwitchLost: "a switch of the tree was lost", Withdrawn: "its address is in no group prefix of a switch any more",
	Forgotten: "the switch has started again and does not know it", NumEndReasons: "unknown",
}

// String returns w in words.
func (w EndReason) String() string { return endReasons[min(w, NumEndReasons)] }

// Elsewhere is the code of an eviction of a member that may have moved: the switch saw
// its address at another location, and the member answered no Where.
const Elsewhere rocev2.Syndrome = 8

var causes = map[rocev2.Syndrome]string{
	mcast.Silent:              "silent for dead_after: the switch took it for dead",
	mcast.Lagging:             "over the lag limit",
	mcast.Stranded:            "lacks what will not be sent again",
	mcast.SourceRemoved:       "the source left with data in flight",
	mcast.TooFewReceivers:     "fewer receivers than the quorum are left",
	mcast.SourceStalled:       "the source stalled: it sent nothing for limits.source_timeout while another member waited; register anew with restarted queue pairs",
	mcast.ReceivesOnly:        "registered to receive only: it may not send",
	Elsewhere:                 "seen elsewhere, and answered neither from there nor from its old location (unconfirmed_moves: evict)",
	mcast.Misnumbered:         "registered with other PSNs than its queue pair has",
	rocev2.SyndromeNAKInvalid: "fatal NAK 0x61, invalid request (completion status 9)",
	rocev2.SyndromeNAKAccess:  "fatal NAK 0x62, remote access error (completion status 10)",
	rocev2.SyndromeNAKOpErr:   "fatal NAK 0x63, remote operational error (completion status 11)",
}

// Cause returns in words the meaning of a Gone's code under Evicted or Failed.
func Cause(code rocev2.Syndrome) string {
	if s, ok := causes[code]; ok {
		return s
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

var statuses = [NumStatuses + 1]string{
	Confirmed: "confirmed", NotJoined: "has not joined the group", QPNMismatch: "has another QPN",
	SQPSNMismatch: "has another sq_psn", RQPSNMismatch: "has another rq_psn",
	VirtualQPNMismatch: "is connected to another virtual QPN", PMTUMismatch: "has another path MTU",
	WindowMismatch: "has another WRITE window", NumStatuses: "gave an unknown status",
}

// String returns s in words that can follow a member's name.
func (s Status) String() string { return statuses[min(s, NumStatuses)] }

// Drop says why an arriving message had no effect. Every reason has a counter
// in each machine.
type Drop uint8

// Reasons for a drop. What each means is in the table drops.
const (
	NoDrop Drop = iota
	Truncated
	BadMagic
	BadVersion
	BadFormat
	Unauthenticated
	UnknownKey
	BadMAC
	WrongRole
	WrongSource
	WrongInstance
	StaleMessage
	DuplicateMsg
	UnknownGroupMsg
	NotForUs
	Unsolicited
	PendingFull
	Rejected
	OtherKeyMsg
	WrongLocation
	NotFromSwitch
	NumDrops
)

// drops has a row for each Drop, and a last one for all other values. docs/COUNTERS.md is made of it.
var drops = [NumDrops + 1]struct {
	name, text string
	normal     bool // the answer of Normal
	unanswered bool // the answer of Unanswered
}{
	NoDrop:          {name: "none", normal: true, text: "taken"},
	Truncated:       {name: "truncated", text: "an envelope that is shorter than its header, body or MAC"},
	BadMagic:        {name: "bad_magic", text: "a packet to the envelopes' UDP port that is of another protocol"},
	BadVersion:      {name: "bad_version", unanswered: true, text: "an envelope of another version of the protocol"},
	BadFormat:       {name: "bad_format", text: "an envelope whose lengths or fields contradict each other"},
	Unauthenticated: {name: "unauthenticated", unanswered: true, text: "an envelope without a key, which only `envelope.insecure` accepts, or a message between switches without the proof of its group's key"},
	UnknownKey:      {name: "unknown_key", unanswered: true, text: "an envelope, or a message between switches about a group, with a key id that is not in `envelope.keys`"},
	BadMAC:          {name: "bad_mac", unanswered: true, text: "an envelope, or a message between switches, whose MAC does not fit: the sender has another key under the same id"},
	WrongRole:       {name: "wrong_role", text: "an envelope of a kind that a switch never gets"},
	WrongSource:     {name: "wrong_source", unanswered: true, text: "an envelope whose IP source is not the address of its sender, to which the answer would go: there is NAT between, or an envelope of another host was replayed"},
	WrongInstance:   {name: "wrong_instance", normal: true, text: "a request without a valid cookie: a master's first one, or one whose cookie has expired or is of an earlier run of gleamd. It is answered with a Challenge, which has a cookie. Also an acknowledgement without one, and a message of another session with a neighbour switch, which get no answer"},
	StaleMessage:    {name: "stale", text: "an envelope of an older epoch or transaction"},
	DuplicateMsg:    {name: "duplicate", normal: true, text: "an envelope that came before: the sender had no answer yet; answered again if it asks for an answer"},
	UnknownGroupMsg: {name: "unknown_group", text: "an envelope about a group that is not registered"},
	NotForUs:        {name: "not_for_us", text: "an envelope none of whose records is about this machine"},
	Unsolicited:     {name: "unsolicited", text: "an answer without a request"},
	PendingFull:     {name: "pending_full", text: "a registration in several segments while too many others are incomplete"},
	Rejected:        {name: "rejected", text: "an envelope that was answered with a Reject, which says why"},
	OtherKeyMsg:     {name: "other_key", text: "an envelope under another key than the registration's"},
	WrongLocation:   {name: "wrong_location", unanswered: true, text: "an envelope in a member's name that came by another port, or from another MAC address, than the member's: another host that has the key uses the member's address, or the member has moved and has not confirmed that yet"},
	NotFromSwitch:   {name: "not_from_switch", unanswered: true, text: "a message between switches about a registration that did not come from a switch whose hellos are proved: a host has sent it, or the adjacency is not up yet"},
	NumDrops:        {name: "invalid"},
}

// Unanswered reports whether the sender of a message dropped for d gets no authentic
// answer, so that only the switch's counters show the cause.
func (d Drop) Unanswered() bool { return drops[min(d, NumDrops)].unanswered }

// String returns the name under which d is counted.
func (d Drop) String() string { return drops[min(d, NumDrops)].name }

// Text returns the meaning of d, for people.
func (d Drop) Text() string { return drops[min(d, NumDrops)].text }

// Normal reports whether drops for d occur in healthy operation: a master learns the
// instance by a first rejected request, and repeats requests until they are answered.
func (d Drop) Normal() bool { return drops[min(d, NumDrops)].normal }
