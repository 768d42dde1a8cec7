// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// GroupID is the index of a group in a Switch, 0 <= ID < Limits.Groups. The
// control plane chooses it, so that the tables it keeps beside the core (L2
// addresses, ICRC constants) are arrays under the same index.
type GroupID uint32

// DefaultQPN is the virtual QPN of groups for which nobody names one, whoever
// registers them: endpoint, libgleam, `gleam group register`. Members that are
// set up apart from each other have to arrive at the same one.
const DefaultQPN rocev2.QPN = 0x676c6d

// LegID is the index of a leg in its group: GroupSpec.Legs[LegID].
type LegID uint16

// MemberID is the index of a member in its group: GroupSpec.Members[MemberID].
type MemberID uint16

// Port is a port of this switch, numbered by the driver from 0.
type Port uint16

// Neighbor names the switch behind a forwarded leg, numbered by the driver
// from 1. 0 means a host: the frame came from, or goes to, a member directly.
type Neighbor uint32

// Handle names a received frame. The core never looks behind it.
type Handle uint32

// Limits bound what a Switch allocates. Zero fields take the defaults.
type Limits struct {
	Groups  int // groups at once; default 1024
	Members int // members of one group; default 1024

	RepairBytes int64 // packet memory that all groups together may keep for repair; default 64 MiB
}

// Policy says what a fatal NAK, or silence, of one member does to its group.
type Policy uint8

// Policies.
const (
	// Strict fails the group: the source learns, by the fatal NAK at the right
	// PSN, that not every receiver has the data.
	Strict Policy = iota
	// Evict removes the member, tells the control plane and keeps the group.
	Evict
	// Quorum acknowledges what GroupSpec.Quorum of the receivers have. The
	// others get everything once, and again what the source itself repeats; one
	// that lacks what will not be sent again is removed (R37). Fewer receivers
	// than Quorum end the group as under Strict.
	Quorum
)

// Causes of an eviction, failure or refusal that are no NAK: values of Event.Cause
// that no NAK has.
const (
	Silent   rocev2.Syndrome = 0 // no sign of life for DeadAfter (R23)
	Lagging  rocev2.Syndrome = 1 // behind by more than a lag limit (R38)
	Stranded rocev2.Syndrome = 2 // lacks what the source will not send again (R37)
	// Misnumbered: it expects another PSN than the one that it was registered with (R54, R55).
	Misnumbered     rocev2.Syndrome = 3
	SourceRemoved   rocev2.Syndrome = 4 // the source was removed with data in flight (R31); only of a failure
	TooFewReceivers rocev2.Syndrome = 5 // fewer receivers than the quorum are left (R40); only of a failure
	SourceStalled   rocev2.Syndrome = 6 // the source sends nothing more and leaves others waiting (R65); only of a failure
	ReceivesOnly    rocev2.Syndrome = 7 // it may not send (R76); only of SourceRefused
)

// Window is a range of remotely writable memory. A group's window is what the
// source addresses; a member's is where it lands there (symmetric windows,
// docs/AGGREGATION.md). The zero value means none.
type Window struct {
	Base uint64 // first virtual address
	Len  uint64 // bytes
	RKey uint32
}

// String returns base and length. The R_Key gives access to the memory: it is
// not for logs.
func (w Window) String() string { return fmt.Sprintf("0x%x+0x%x", w.Base, w.Len) }

// GoString is String: %#v must not print an R_Key either.
func (w Window) GoString() string { return w.String() }

// LegKind is the kind of a leg.
type LegKind uint8

// Leg kinds, as in the paper's extended multicast forwarding table.
const (
	Connected LegKind = iota // one member; copies are rewritten to its QP
	Forwarded                // the next switch; copies keep the source's addresses and PSNs
)

// LegSpec is one way out of this switch for a group.
type LegSpec struct {
	Kind     LegKind
	Port     Port
	Neighbor Neighbor // Forwarded only
}

// MemberSpec is one member's connection state, as registered.
type MemberSpec struct {
	IP     netip.Addr
	QPN    rocev2.QPN
	SQPSN  rocev2.PSN // the first PSN its send queue will use (verbs sq_psn)
	RQPSN  rocev2.PSN // the first PSN its receive queue expects (verbs rq_psn)
	Window Window
	Leg    LegID // a Connected leg has exactly one member
	// ReceiveOnly: it never becomes the source. What it sends is answered with NAK 0x62
	// and goes to nobody (R76).
	ReceiveOnly bool
}

// GroupSpec is a whole group as this switch has to serve it.
type GroupSpec struct {
	ID GroupID
	// Generation tells one registration from another one with the same ID. The core
	// keeps it for Outcomes.
	Generation uint64

	IP           netip.Addr // GroupIP
	QPN          rocev2.QPN // the virtual QPN that every member connected to
	PMTU         int        // path MTU in bytes: 256, 512, 1024, 2048 or 4096
	Policy       Policy
	Quorum       int           // Policy Quorum: receivers that must have what is acknowledged, 1 or more; else 0
	DeadAfter    time.Duration // a member silent for so long while others move is removed, or fails the group; 0 never
	DeadAfterMax time.Duration // if above DeadAfter: that is eight measured round trips, where these take longer, but not more than this
	LagPSNs      int           // Evict, Quorum: a receiver more than so many PSNs behind another one is removed; 0 never
	LagTime      time.Duration // Evict, Quorum: one that for so long lacks what another one has is removed; 0 never
	// SourceTimeout is how long a source may send nothing while another member waits
	// for it: inside a message, or with data that is not acknowledged (R65). It is
	// longer than the source's ACK timeout. 0 means DefaultSourceTimeout; below 0,
	// for ever.
	SourceTimeout time.Duration
	// TurnTime is how long a source goes on at least while other members wait for
	// their turn (R77). 0 means DefaultTurnTime; below 0, for ever.
	TurnTime time.Duration
	Repair   RepairSpec
	// PSNProbe is how long the switch waits for the answer to the first keepalive
	// probe, by which a new receiver shows that it expects the PSN that it was
	// registered with (R52). 0: receivers' numbers are believed.
	PSNProbe time.Duration
	Window   Window
	// TargetKey, if not 0, is the R_Key of update messages and of the WRITEs that
	// go where these say (R41). Not with Policy Quorum.
	TargetKey uint32
	Legs      []LegSpec
	Members   []MemberSpec
}

// Op is a change by the control plane. See Switch.Apply.
type Op interface{ op() }

// PutGroup creates a group, or replaces all of it if its ID is in use with the
// same IP: a replaced group starts anew from the members' registered PSNs.
type PutGroup struct{ Spec GroupSpec }

// DeleteGroup forgets a group.
type DeleteGroup struct{ Group GroupID }

// AddMember lets a member join at the next message boundary of the source. If
// Member.Leg equals the number of legs, Legs grows by Leg, and its MemberID is
// the next one. If Member.Leg is a connected leg whose member has gone, it takes
// over that leg, as Leg describes it, and that member's MemberID.
type AddMember struct {
	Group  GroupID
	Member MemberSpec
	Leg    LegSpec
}

// RemoveMember cuts a member off; the group's ACK no longer waits for it.
type RemoveMember struct {
	Group  GroupID
	Member MemberID
}

// UpdateMembers removes members and then adds others, all of it or nothing (R35).
// The members in Add are as in AddMember, whose Group is not looked at.
type UpdateMembers struct {
	Group  GroupID
	Remove []MemberID
	Add    []AddMember
}

func (PutGroup) op()      {}
func (DeleteGroup) op()   {}
func (AddMember) op()     {}
func (RemoveMember) op()  {}
func (UpdateMembers) op() {}

// Packet is one received RoCEv2 packet for a group address, as a value. Fields
// of headers that Op does not carry are zero.
type Packet struct {
	Group    netip.Addr // IP destination
	Src      netip.Addr // IP source
	Port     Port
	Neighbor Neighbor // the switch it came from; 0 if from a host
	Op       rocev2.Opcode
	AckReq   bool
	BECN     bool
	// Verified says that the driver has checked the ICRC. Input asks for it
	// (Output.NeedVerify) only where it is about to believe the packet: the
	// steady stream of data is forwarded with an incremental ICRC instead.
	Verified bool
	DestQP   rocev2.QPN
	PSN      rocev2.PSN
	Payload  uint16 // bytes, without pad

	VA     uint64 // RETH
	RKey   uint32 // RETH, or IETH of a SEND with invalidate
	DMALen uint32 // RETH

	Syndrome rocev2.Syndrome // AETH
	MSN      rocev2.MSN      // AETH

	// Targets is what an update message carries (Switch.IsTargetMessage), read by the driver;
	// empty if it makes no sense. The core does not keep the slice.
	Targets []Target

	Frame Handle
	// RetainBytes is how much packet memory keeping Frame would take; 0 if it cannot be
	// kept.
	RetainBytes uint32
}

// CopyFlags says which fields of a Copy are to be written into the frame.
type CopyFlags uint8

// Bits of CopyFlags.
const (
	SetRETH    CopyFlags = 1 << iota // write VA and RKey into RETH
	SetIETH                          // write RKey into IETH
	SetAckReq                        // set AckReq
	EmptyWrite                       // send a WRITE of no bytes in its place: the rest of the packet is not for receivers
)

// Copy is one frame to send: Frame, rewritten for Leg. What is constant for a
// connected leg (addresses, QPN) is not repeated here; PSN always is to be
// written, and equals the received one on forwarded legs. Frame is that of the
// packet, or one that was kept.
type Copy struct {
	Group GroupID
	Leg   LegID
	Flags CopyFlags
	Frame Handle
	PSN   rocev2.PSN
	VA    uint64
	RKey  uint32
}

// Feedback is one packet to build and send to the group's source.
type Feedback struct {
	Group    GroupID
	To       MemberID      // the source it is for
	Op       rocev2.Opcode // Acknowledge or CNP
	BECN     bool
	PSN      rocev2.PSN      // in the source's space; 0 for a CNP
	Syndrome rocev2.Syndrome // Acknowledge only
	MSN      rocev2.MSN      // Acknowledge only
}

// EventKind is the kind of an Event.
type EventKind uint8

// Events.
const (
	SourceChanged  EventKind = iota + 1 // Member is the source from PSN on
	MemberEvicted                       // Member had everything up to PSN; Cause says why
	GroupFailed                         // because of Member, for Cause; the source was sent a fatal NAK with Syndrome at PSN, or nothing if it was removed (Syndrome 0)
	SourceRefused                       // Member asked at PSN for what no group can do or, if Cause is ReceivesOnly, to be the source; the switch itself answered with Syndrome
	NumberMismatch                      // Member's packets have PSN (a QPN, if that is Number) where Want is registered (R72)
)

// Event tells the control plane what the data path decided by itself.
type Event struct {
	Kind       EventKind
	Syndrome   rocev2.Syndrome // of the NAK that the source was sent; of MemberEvicted as Cause
	Cause      rocev2.Syndrome // of Member's own fatal NAK, or Silent, Lagging and so on; of SourceRefused: Syndrome, or ReceivesOnly
	Number     Number          // of NumberMismatch
	Group      GroupID
	Member     MemberID
	PSN        rocev2.PSN
	Registered rocev2.PSN // of NumberMismatch
}

// Output is what a call of Input, Advance or Apply wants done. It belongs to the
// caller, who passes the same one again and again: each call of Input, Advance
// or Apply begins by emptying it, and its slices keep their room.
type Output struct {
	Copies   []Copy
	Feedback []Feedback
	Events   []Event
	Probes   []Probe // only of Advance
	Drop     Reason  // why the packet was not served; 0 if it was
	// NeedVerify asks the driver to check the packet's ICRC and, if it is
	// right, to call Input again with Verified set. Nothing has changed yet.
	NeedVerify bool

	Retained bool     // the packet's frame is kept
	Freed    []Handle // frames that are no longer

	// MaxResends is set by the caller: how many copies of kept frames it has memory
	// for, besides one copy per leg. What is left over comes with the next call,
	// for which the deadline is at once. 0 means any number, below 0 none.
	MaxResends int
	resends    int

	// PortRoom is set by the caller, or nil if every leg takes any number: how many
	// copies of kept frames the port of a leg takes now, and when it may take more.
	// A leg whose port takes none waits until then; the others do not (R70).
	PortRoom func(GroupID, LegID) (copies int, until time.Duration)
}
