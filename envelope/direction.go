// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"crypto/hmac"
	"crypto/sha256"
	"net/netip"
)

// direction names the sender and the receiver of the messages of a type. The MAC of a
// message begins with its direction's label, so that a message of one direction is never
// authentic in another, whatever its bytes are.
type direction uint8

const (
	noDirection direction = iota
	toSwitch              // messages from a host to the switch
	fromSwitch            // messages from the switch to a host
	toMaster              // messages from a member to its master
)

// directions has the direction of every type. It alone decides which messages a machine
// accepts, from where, and under which label they are authenticated.
var directions = [256]direction{
	TypeRegister:  toSwitch,
	TypeLeave:     toSwitch,
	TypeDelete:    toSwitch,
	TypeRenew:     toSwitch,
	TypeAck:       toSwitch,
	TypeHere:      toSwitch,
	TypeAccept:    fromSwitch,
	TypeReject:    fromSwitch,
	TypeChallenge: fromSwitch,
	TypeNotify:    fromSwitch,
	TypeGone:      fromSwitch,
	TypeWhere:     fromSwitch,
	TypeNotice:    fromSwitch,
	TypeConfirm:   toMaster,
}

// labels are covered by the MAC before the message's own bytes. No label is the
// beginning of another.
var labels = [...]string{
	noDirection: "",
	toSwitch:    "gleam: host to switch\x00",
	fromSwitch:  "gleam: switch to host\x00",
	toMaster:    "gleam: member to master\x00",
}

// direction returns the direction of t.
func (t Type) direction() direction { return directions[t] }

// macOf returns the MAC of b, a message of type t without its MAC.
func macOf(key []byte, t Type, b []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(labels[t.direction()]))
	h.Write(b)
	return h.Sum(nil)
}

// fromTheSwitch reports whether the source of a message of the switch is the GroupIP and
// the protocol's port. No host has such an address, and the switch's ports drop packets
// that claim one.
func fromTheSwitch(from netip.AddrPort, group netip.Addr, port uint16) bool {
	return from.Addr().Unmap() == group && from.Port() == port
}
