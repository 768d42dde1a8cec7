// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// DefaultPort is the UDP port of the protocol unless configured otherwise: the
// destination of all packets to the switch, and the source of all packets
// from it.
const DefaultPort = 4797

// Packet is a UDP packet to send. Data belongs to the receiver of the Output.
type Packet struct {
	Src, Dst netip.AddrPort
	Data     []byte
}

// EventKind is the kind of an Event.
type EventKind uint8

// Events. Which machine reports them is in brackets.
const (
	// SwitchAccepted [Master]: the switch serves the group; Lease is granted.
	SwitchAccepted EventKind = iota + 1
	// MemberConfirmed [Master]: Member did; Done of Of have.
	MemberConfirmed
	// Registered [Master]: all members have confirmed, data may flow.
	// [Member]: the switch and we agree about Group. [Registrar]: the Table has
	// installed Group.
	Registered
	// RegistrationFailed [Master]: final; Err is a *Failure. [Registrar]: a
	// registration was rejected; Err is a *Problem. [Member]: we refused a
	// Notify; Status says why.
	RegistrationFailed
	// MemberGone [Master, Registrar]: Member is out of the group, see Why; if Why
	// is Evicted, PSN is the one it had everything up to, and Code says what for.
	MemberGone
	// GroupGone [all]: the group is gone, for Member us in it; see Why. Final
	// for the group and epoch.
	GroupGone
	// LeaveFailed [Master, Member]: Err says why Member is not known to have
	// been removed.
	LeaveFailed
	// MemberJoined [Registrar]: Member joins, by an update.
	MemberJoined
	// Updated [Master]: the members are what Update said, the new ones have
	// confirmed.
	Updated
	// UpdateFailed [Master]: Err, a *Failure, says why. The group goes on, without
	// the members that were to join.
	UpdateFailed
	// Unchanged [Registrar]: a registration of Group that is identical to the live one
	// was accepted. The group goes on, as Epoch.
	Unchanged
	// MemberHere [Registrar]: Member has answered the Where with Nonce.
	MemberHere
)

// Event tells the driver what has happened. Fields that the kind does not name
// are zero.
type Event struct {
	Kind      EventKind
	By        Actor // Registrar: whose request it was
	Group     netip.Addr
	Epoch     uint64
	Member    MemberKey
	EndReason EndReason
	Status    Status
	Code      rocev2.Syndrome // of a Gone: see there, and Cause
	PSN       rocev2.PSN
	Done      int
	Total     int
	Lease     time.Duration
	Err       error
	Nonce     Nonce
}

// Output is what a call wants done. It belongs to the caller, who may pass the
// same one again and again: each call begins by emptying it.
type Output struct {
	Packets []Packet
	Events  []Event
	Drop    Drop   // why the message had no effect; NoDrop if it had one
	Detail  string // Registrar: more about Drop, in words; may be empty
}

func (o *Output) reset() {
	o.Packets, o.Events, o.Drop = o.Packets[:0], o.Events[:0], NoDrop
	o.Detail = ""
}
