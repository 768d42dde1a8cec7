// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package hello

// Drop is why a frame had no effect.
type Drop uint8

// Values of Drop. What each means is in the table drops.
const (
	NoDrop Drop = iota
	Malformed
	BadVersion
	UnknownKey
	BadMAC
	WrongMAC
	Reflected
	OwnID
	Replayed
	TooMany
	LinkIsDown
	NumDrops
)

// drops has a row for each Drop, and a last one for all other values. docs/COUNTERS.md is made of it.
var drops = [NumDrops + 1]struct {
	name, text string
	normal     bool // true: the drop occurs where nothing is wrong
	foreign    bool // the frames may be others' use of the EtherType
}{
	NoDrop:     {name: "none"},
	Malformed:  {name: "malformed", foreign: true, text: "a frame of the EtherType of hellos that is none, or one with an impossible value"},
	BadVersion: {name: "bad_version", text: "a hello of a version of the format that this switch does not know"},
	UnknownKey: {name: "unknown_key", text: "a hello under a key that is not among this switch's keys of switches (switch.keys)"},
	BadMAC:     {name: "bad_mac", text: "a hello with a wrong HMAC: it was made with another secret under that key's id (switch.keys), was changed on its way, or is forged"},
	WrongMAC:   {name: "wrong_mac", text: "a hello that came from another MAC address than its sender's: somebody passes on another switch's hellos"},
	Reflected:  {name: "reflected", text: "a hello of this switch itself: the link is a loop, or a host sends back what it gets"},
	OwnID:      {name: "own_id", text: "a hello of another switch with this switch's ID (switch.id): each needs one of its own"},
	Replayed:   {name: "replayed", text: "a hello that is not newer than the last one of its sender: the link has delivered it twice, or somebody has sent it again"},
	TooMany:    {name: "too_many", text: "a hello of a fifth switch on one link, where one is expected"},
	LinkIsDown: {name: "link_is_down", normal: true, text: "a hello that came while the link was taken for down"},
	NumDrops:   {name: "invalid"},
}

func (d Drop) String() string { return drops[min(d, NumDrops)].name }

// Text returns the meaning of d, for an operator.
func (d Drop) Text() string { return drops[min(d, NumDrops)].text }

// Normal reports whether d occurs where nothing is wrong.
func (d Drop) Normal() bool { return drops[min(d, NumDrops)].normal }

// Suspicious reports whether d is a reason to look at the configuration, or at the neighbour.
func (d Drop) Suspicious() bool { return !d.Normal() && !drops[min(d, NumDrops)].foreign }

// State is the state of a link's adjacency, named as in RFC 5880.
type State uint8

// States.
const (
	Down State = iota // no neighbour is heard, or more than one is proved
	Init              // a neighbour is heard, and not proved yet
	Up                // one neighbour is proved: it is there now, and hears this switch
)

var stateNames = [...]string{Down: "Down", Init: "Init", Up: "Up"}

func (s State) String() string { return stateNames[s] }

// Reason is why an adjacency is not up, or has ended.
type Reason uint8

// Values of Reason.
const (
	NoReason Reason = iota
	Silent
	LinkDown
	NotProved
	OneWay
	Restarted
	Renewed
	TwoNeighbours
)

var reasonTexts = [...]string{
	NoReason: "", Silent: "no neighbour is heard", LinkDown: "the link is down",
	NotProved:     "the neighbour has not proved yet that it hears this switch",
	OneWay:        "the neighbour does not hear this switch any more",
	Restarted:     "the neighbour has started anew",
	Renewed:       "the neighbour has lost the adjacency, and has begun a new session",
	TwoNeighbours: "more than one switch is on the link; want one, without a bridge between",
}

func (r Reason) String() string { return reasonTexts[r] }
