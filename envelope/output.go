// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// DefaultPort is the UDP port of the protocol unless another is configured: the
// destination of all packets to the switch, and the source of all packets from it.
const DefaultPort = 4797

// Packet is a UDP packet to send. Data belongs to the receiver of the Output.
type Packet struct {
	Src, Dst netip.AddrPort
	Data     []byte
	Key      KeyID // the key of the packet's MAC; 0: it has none
	Promises bool  // Registrar: it leaves when what it says is durable
	Lasts    bool  // Registrar: it waits for that however long it takes
}

// EventKind is the kind of an Event.
type EventKind uint8

// Events. The reporting machines are in brackets.
const (
	// SwitchAccepted [Master]: the switch serves the group; Lease is granted.
	SwitchAccepted EventKind = iota + 1
	// MemberConfirmed [Master]: Member has confirmed; Done of Total have.
	MemberConfirmed
	// Registered [Master]: all members have confirmed, data may flow. [Member]: the
	// switch's registration of Group agrees with the queue pair. [Registrar]: the Table
	// has installed Group.
	Registered
	// RegistrationFailed [Master]: final; Err is a *Failure. [Registrar]: a registration
	// was rejected; Err is a *Problem. [Member]: it refused a Notify; Status says why.
	RegistrationFailed
	// MemberGone [Master, Registrar]: Member has been removed from the group, see
	// EndReason. If that is Evicted, Member acknowledged all data up to PSN, and Code is
	// the cause.
	MemberGone
	// GroupGone [all]: the group has ended, for Member this host's membership; see
	// EndReason. Under Failed, Member is the one that the group failed for. Final for the group and epoch. If
	// that is SwitchLost, Err is a *LostLink.
	GroupGone
	// LeaveFailed [Master, Member]: Err says why the removal of Member is unconfirmed.
	LeaveFailed
	// MemberJoined [Registrar]: Member joins, by an update.
	MemberJoined
	// Updated [Master]: the members are those of Update, and the new ones have confirmed.
	Updated
	// UpdateFailed [Master]: Err, a *Failure, says why. The group goes on, without
	// the members that were to join.
	UpdateFailed
	// Stalled [Master, Member]: the ACK of the group has not advanced for a second or more; it waits
	// for Member, at PSN.
	Stalled
	// Resumed [Master, Member]: it advances again. It had waited for Member.
	Resumed
	// Unchanged [Registrar]: a registration of Group that is identical to the live one
	// was accepted. The group goes on, as Epoch.
	Unchanged
	// MemberHere [Registrar]: Member has answered the Where with Nonce.
	MemberHere
	// Rebuilt [Registrar]: the tree of Group was built anew, and is installed here. Err is a
	// *LostLink, the way that was lost, where that is known.
	Rebuilt
	// RebuildFailed [Registrar]: Err, a *Problem, is why the tree of Group could not be built
	// anew. The group goes on as far as it can.
	RebuildFailed
)

// Event reports a change to the driver. Fields that the kind does not name are zero.
type Event struct {
	Kind      EventKind
	By        Actor // Registrar: the requester
	Group     netip.Addr
	Epoch     uint64
	Member    MemberKey
	EndReason EndReason
	Status    Status
	Code      rocev2.Syndrome // the code of a Gone: see there, and Cause
	PSN       rocev2.PSN
	Done      int
	Total     int
	Lease     time.Duration
	Err       error
	More      []Problem // RegistrationFailed [Registrar]: further reasons, of switches of the tree
	Nonce     Nonce
	// Began [Registrar] is when the first message of a registration came that is now
	// Registered; 0: it came from another switch.
	Began time.Duration
}

// Output is the result of a call: packets to send, and events. It belongs to the caller,
// which may pass the same one repeatedly: each call begins by emptying it.
type Output struct {
	Packets []Packet
	Relays  []Relay // Registrar: to neighbour switches
	Events  []Event
	Drop    Drop   // why the message had no effect; NoDrop if it had one
	Detail  string // Registrar: more about Drop, in words; may be empty
	Proved  bool   // Registrar: the message is a request that proves the address of its sender: by MAC and cookie, and by the place of a member
}

func (o *Output) reset() {
	o.Packets, o.Relays, o.Events, o.Drop = o.Packets[:0], o.Relays[:0], o.Events[:0], NoDrop
	o.Detail, o.Proved = "", false
}
