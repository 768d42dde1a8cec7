// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package hello

import "fmt"

// Drop is why a frame had no effect.
type Drop uint8

// Values of Drop.
const (
	NoDrop     Drop = iota
	Malformed       // no hello, or one with an impossible value
	BadVersion      // of another version of the format
	UnknownKey      // its key is not configured here
	BadMAC          // made with another key of that id, or changed on its way
	WrongMAC        // the frame's source is not the sender of the hello
	Reflected       // a hello of this switch itself: a loop
	OwnID           // a hello of another switch, or of another life, with this switch's ID
	Replayed        // not newer than the last one of that switch
	TooMany         // MaxNeighbours others are proved on the link
	LinkIsDown      // the link is down
	NumDrops
)

var dropNames = [NumDrops]string{
	NoDrop: "none", Malformed: "malformed", BadVersion: "bad_version", UnknownKey: "unknown_key", BadMAC: "bad_mac",
	WrongMAC: "wrong_mac", Reflected: "reflected", OwnID: "own_id", Replayed: "replayed", TooMany: "too_many", LinkIsDown: "link_is_down",
}

func (d Drop) String() string {
	if d < NumDrops {
		return dropNames[d]
	}
	return fmt.Sprintf("drop %d", uint8(d))
}

var dropTexts = [NumDrops]string{
	Malformed:  "a frame of the EtherType of hellos that is none, or one with an impossible value",
	BadVersion: "a hello of a version of the format that this switch does not know",
	UnknownKey: "a hello under a key that is not among this switch's keys of switches (switch.keys)",
	BadMAC:     "a hello with a wrong HMAC: it was made with another secret under that key's id (switch.keys), was changed on its way, or is forged",
	WrongMAC:   "a hello that came from another MAC address than its sender's: somebody passes on another switch's hellos",
	Reflected:  "a hello of this switch itself: the link is a loop, or a host sends back what it gets",
	OwnID:      "a hello of another switch with this switch's ID (switch.id): each needs one of its own",
	Replayed:   "a hello that is not newer than the last one of its sender: the link has delivered it twice, or somebody has sent it again",
	TooMany:    "a hello of a fifth switch on one link, where one is expected",
	LinkIsDown: "a hello that came while the link was taken for down",
}

// Text returns the meaning of d, for an operator.
func (d Drop) Text() string { return dropTexts[d] }

// Normal reports whether d occurs where nothing is wrong.
func (d Drop) Normal() bool { return d == LinkIsDown }

// Suspicious reports whether d is a reason to look at the configuration, or at the neighbour.
// Frames that are no hellos may be others' use of the EtherType.
func (d Drop) Suspicious() bool { return !d.Normal() && d != Malformed }

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
	NoReason      Reason = iota
	Silent               // no hello has been heard for the hold time
	LinkDown             // the link is down
	NotProved            // the neighbour has not repeated this switch's challenge yet
	OneWay               // the neighbour does not hear this switch any more
	Restarted            // the neighbour has started anew
	Renewed              // the neighbour has lost the adjacency, and has begun a new session
	TwoNeighbours        // more than one switch is on the link, as behind a bridge
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
