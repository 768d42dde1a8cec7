// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

// FastWord is what keeps a group off the fast path, as a kind. Its name is one word.
type FastWord uint8

// Words. What each means, and what helps, is in the table fastWords.
const (
	OnFastPath FastWord = iota // nothing
	fastOff
	fastNoRepair
	fastTargetMessages
	fastAddress
	fastNoData
	fastPacket
	fastDecision
	fastChange
	fastBadICRC
	fastUnstored
	fastTraced
	fastIsolated
	fastLocation
	fastNeighbour
	fastDown
	fastMTU
	fastGeneric
	fastBuffers
	fastRate
	fastECN
	fastRedirects
	fastLosses
	fastReceivers
	fastNoRoom
	fastShare
	fastFull
	fastFailed
	NumFastWords
)

// fastWords has a row for each FastWord: its name, what it means of any group, and what helps. The table of
// docs/FAST-PATH.md is made of it.
var fastWords = [NumFastWords]struct{ name, text, remedy string }{
	OnFastPath:         {"", "", ""},
	fastOff:            {"off", "no group of this switch does: fast_path is off, or the log of the start has the reason", "set `fast_path: auto`; `gleamd --check` says what this machine lacks"},
	fastNoRepair:       {"repair", "it has no local repair, or too little memory for it", "register it with local repair; `repair: {per_group: ...}` is the memory"},
	fastTargetMessages: {"targets", "it is registered with target messages, and the XDP programs do not rewrite each WRITE by those", "register it without target messages"},
	fastAddress:        {"address", "another group has its address", "give it an address of its own"},
	fastNoData:         {"idle", "no data has come yet, or for a while", "nothing is wrong: it takes the fast path when data comes"},
	fastPacket:         {"packet", "a packet came that the switch has to judge", "nothing, if it is back after some ms; else look for losses, and for members that send at a time: `left to the worker` says more"},
	fastDecision:       {"decision", "the switch is about to decide something about its data", "nothing: it is offered again after that"},
	fastChange:         {"change", "its members, or a port, have changed", "nothing: it is offered again at once"},
	fastBadICRC:        {"icrc", "a packet had a wrong ICRC", "if it comes back: look for a bad link, NIC or memory between the source and here (`bad_icrc`)"},
	fastUnstored:       {"unstored", "a packet was not stored for repair", "give this machine processors that nobody holds up: one stood still for 10 ms"},
	fastTraced:         {"trace", "it is being traced, and the trace asks for the copies of every packet", "end the trace, or trace without `--slow`"},
	fastIsolated:       {"isolated", "it has members behind several isolated ports", "leave one of these ports isolated in the bridge at most"},
	fastLocation:       {"location", "the location of a member is not known", "have the member send something, a ping will do; `gleam doctor` says what is in the way"},
	fastNeighbour:      {"neighbour", "the switch behind a port is not up", "`gleam doctor` says what the link to it lacks"},
	fastDown:           {"down", "a port is down", "bring the port up; `gleam port show` says why it is down"},
	fastMTU:            {"mtu", "the MTU of a port is too small for its longest packets", "raise the port's MTU, or register the group with a smaller path MTU"},
	fastGeneric:        {"generic", "a port runs XDP in generic mode", "use a driver with native XDP: docs/PORTS.md, docs/HARDWARE.md"},
	fastBuffers:        {"buffers", "a port has frames in several buffers, whose copies need Linux 6.6, and none is for a VLAN", "a newer kernel, or an MTU of the port of 3506 or less"},
	fastRate:           {"rate", "a port has a rate, and copies by XDP follow none", "take the rate away: `gleam port set --rate none`"},
	fastECN:            {"ecn", "a port has ECN thresholds, and copies by XDP are not marked", "take the port's `ecn` out of the configuration"},
	fastRedirects:      {"redirects", "a port takes no redirected frames", "at a veth: turn on GRO at its peer; else see the driver's documentation on XDP_REDIRECT"},
	fastLosses:         {"losses", "a port has lost most of the copies by XDP", "look at the receiver behind it, and at the driver's counters (`ethtool -S`); it is tried again by itself"},
	fastReceivers:      {"receivers", "it has more receivers, in all or behind one port, than the XDP programs serve", "split the group: 256 in all, and 32 behind a port, is the most"},
	fastNoRoom:         {"room", "the memory of the fast path, or its table of groups, is full", "raise `fast_path_memory`; groups without data give theirs back after a second"},
	fastShare:          {"share", "its part of the fast path's memory becomes larger or smaller: other groups have come or gone", "nothing: it is offered again when that is done; `fast_path_memory` is for all together"},
	fastFull:           {"full", "more of its packets are unacknowledged than its part of the fast path's memory has room for", "raise `fast_path_memory`, or let fewer groups send at a time; a slow receiver does the same: `SLOWED BY`"},
	fastFailed:         {"error", "the kernel has refused a change of the programs' maps", "the log has the error"},
}

// String returns the name of w: one word, and "" if nothing keeps the group off.
func (w FastWord) String() string { return fastWords[min(w, NumFastWords-1)].name }

// Text is what w means of any group.
func (w FastWord) Text() string { return fastWords[min(w, NumFastWords-1)].text }

// Remedy is what helps against w.
func (w FastWord) Remedy() string { return fastWords[min(w, NumFastWords-1)].remedy }

// Why is why a group is not on the fast path. The zero value: it is, or may be at any time.
type Why struct {
	Word   FastWord
	detail string // what Text is of this group; "": that of the word
	helps  string // likewise of Remedy
}

// Text says what keeps this group off: the port, for example.
func (y Why) Text() string {
	if y.detail != "" {
		return y.detail
	}
	return y.Word.Text()
}

// Remedy is what helps.
func (y Why) Remedy() string {
	if y.helps != "" {
		return y.helps
	}
	return y.Word.Remedy()
}

// Why a group that may be offloaded is not.
var (
	whyNoData    = Why{Word: fastNoData, detail: "no data has come yet"}
	whyIdle      = Why{Word: fastNoData, detail: "no data has come for a while"}
	whyReclaimed = Why{Word: fastNoData, detail: "no data has come for a while, and its room is another group's"}
	whyInput     = Why{Word: fastPacket}
	whyDecision  = Why{Word: fastDecision}
	whyChange    = Why{Word: fastChange}
	whyDamaged   = Why{Word: fastBadICRC}
	whyNotStored = Why{Word: fastUnstored}
	whyTraced    = Why{Word: fastTraced}
	whyShare     = Why{Word: fastShare}
	whyFull      = Why{Word: fastFull}
)

// Why a group is never offered the fast path.
var (
	whyNoStore = Why{Word: fastNoRepair}
	whyTargets = Why{Word: fastTargetMessages}
)
