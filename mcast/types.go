// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/mcast/token"
	"github.com/gleam-rdma/gleam/rocev2"
)

// GroupID is the index of a group in a Switch, 0 <= ID < Limits.Groups. The
// control plane chooses it, so that the tables it keeps beside the core (L2
// addresses, ICRC constants) are arrays under the same index.
type GroupID uint32

// DefaultQPN is the virtual QPN of a group that is registered without one, by any tool:
// endpoint, libgleam, `gleam group register`. Members that are set up apart from each
// other have to arrive at the same virtual QPN.
const DefaultQPN rocev2.QPN = 0x676c6d

// LegID is the index of a leg in its group: GroupSpec.Legs[LegID].
type LegID uint16

// MemberID is the index of a member in its group: GroupSpec.Members[MemberID].
type MemberID uint16

// Port is a port of this switch, numbered by the driver from 0.
type Port uint16

// Neighbor names the switch behind a forwarded leg, numbered by the driver
// from 1. 0 means none: the frame came from, or goes to, a member directly.
type Neighbor uint32

// Handle names a received frame. The core never looks behind it.
type Handle uint32

// Limits bound what a Switch allocates. Zero fields take the defaults.
type Limits struct {
	Groups  int // groups at once; default 1024
	Members int // members of one group; default 1024

	RepairBytes int64 // packet memory, in bytes, that all groups together may retain for repair; default 64 MiB
}

// Policy is the effect of a fatal NAK, or of silence, of one member on its group.
type Policy uint8

// Policies.
const (
	// Strict fails the group: a fatal NAK at the right PSN tells the source that not
	// every receiver has the data.
	Strict Policy = iota
	// Evict removes the member, tells the control plane and keeps the group.
	Evict
	// Quorum acknowledges the data that GroupSpec.Quorum of the receivers have. The
	// other receivers get everything once, and again what the source itself repeats.
	// A receiver that lacks data that will not be sent again is removed (R37). Fewer
	// receivers than Quorum end the group as under Strict.
	Quorum
)

// Causes of an eviction, failure or refusal other than a NAK: values of Event.Cause that
// are no NAK's syndrome.
const (
	Silent   rocev2.Syndrome = 0 // the receiver showed no sign of life for DeadAfter (R23)
	Lagging  rocev2.Syndrome = 1 // the receiver is behind by more than a lag limit (R38)
	Stranded rocev2.Syndrome = 2 // the receiver lacks data that the source will not send again (R37)
	// Misnumbered: the receiver expects another PSN than the registered one (R54, R55).
	Misnumbered     rocev2.Syndrome = 3
	SourceRemoved   rocev2.Syndrome = 4 // the source was removed with data in flight (R31); only of a failure
	TooFewReceivers rocev2.Syndrome = 5 // fewer receivers than the quorum are left (R40); only of a failure
	SourceStalled   rocev2.Syndrome = 6 // the source sends nothing more while other members wait (R65); only of a failure
	ReceivesOnly    rocev2.Syndrome = 7 // the member may not send (R76); only of SourceRefused
)

// Window is a range of remotely writable memory. The source's WRITEs address the group's
// window; at a member they go to the same offsets in the member's window (symmetric
// windows, docs/AGGREGATION.md). The zero value means none.
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
	// Levels is the number of levels of switches behind a forwarded leg, 16 at most. DeadAfter
	// doubles with each, so that the switch next to a silent receiver decides first (R23).
	Levels uint8
}

// MemberKey names a member: the IP and number of its queue pair.
type MemberKey struct {
	IP  netip.Addr
	QPN rocev2.QPN
}

// String returns "ip qpn 0x…".
func (k MemberKey) String() string { return fmt.Sprintf("%s qpn 0x%x", k.IP, uint32(k.QPN)) }

// MemberRecord is a member's connection state as its application set it up. A registration
// has one for each member on all its way: envelopes, RDMA-CM, the registrar, the core.
type MemberRecord struct {
	IP    netip.Addr
	QPN   rocev2.QPN
	SQPSN rocev2.PSN // the first PSN its send queue will use (verbs sq_psn)
	RQPSN rocev2.PSN // the first PSN its receive queue expects (verbs rq_psn)
	// ReceiveOnly: the member never becomes the source. Its first packet is answered
	// with NAK 0x62, and nothing that it sends is forwarded (R76).
	ReceiveOnly bool
	// Reply is what becomes of the member's data (R107), of a group that is registered by
	// hand: envelopes do not carry it. Its JSON name is that of state files.
	Reply  ReplyKind `json:"Role"`
	Window Window    // memory for WRITEs to the group's window; zero for none
}

// Key returns the member's name.
func (m MemberRecord) Key() MemberKey { return MemberKey{m.IP, m.QPN} }

// String describes m without its R_Key.
func (m MemberRecord) String() string {
	s := fmt.Sprintf("%s sq_psn 0x%x rq_psn 0x%x", m.Key(), uint32(m.SQPSN), uint32(m.RQPSN))
	if m.Window != (Window{}) {
		s += " window " + m.Window.String()
	}
	if m.ReceiveOnly {
		s += " receive-only"
	}
	return s
}

// GoString is String: %#v must not print an R_Key either.
func (m MemberRecord) GoString() string { return m.String() }

// MemberSpec is one member of a group at this switch.
type MemberSpec struct {
	MemberRecord
	Leg LegID // a Connected leg has exactly one member
	// Number is the member's number in the registration: the same at all switches of the
	// tree, and never that of an earlier member. 0 means MemberID+1, in PutGroup only.
	// A group without legs to other switches does not need it.
	Number uint32
}

// GroupSpec is a whole group as this switch serves it.
type GroupSpec struct {
	ID GroupID
	// Generation distinguishes registrations with the same ID. The core retains it for
	// Outcomes.
	Generation uint64

	IP netip.Addr // GroupIP
	// GroupParams are the registration's, but for DeadAfter, which is the Silence of the
	// registration's: 0 means never.
	GroupParams
	DeadAfterMax time.Duration // bound, if above DeadAfter, of the eight measured round trips that replace DeadAfter where they take longer
	AllDeadAfter time.Duration // the silence of all receivers after which the group fails, with DeadAfter; under Strict of one while no other shows life; 0: never
	// SourceTimeout is how long a source may send nothing while another member waits
	// for it: inside a message, or with data that is not acknowledged (R65). It is
	// longer than the source's ACK timeout. 0 means DefaultSourceTimeout; below 0,
	// for ever.
	SourceTimeout time.Duration
	// TurnTime is the least time that a turn lasts while other members wait for theirs
	// (R77). 0 means DefaultTurnTime; below 0, for ever.
	TurnTime time.Duration
	Repair   RepairSpec
	FastPath FastPathSpec
	// PSNProbe is how long the switch waits for the answer to the first keepalive
	// probe. By the answer a new receiver shows that it expects the PSN that it was
	// registered with (R52). 0: receivers' numberings are not verified.
	PSNProbe time.Duration
	// AckEvery has the switch set AckReq in the copies to members of each packet whose PSN is AckEvery-1
	// modulo AckEvery, a power of two, however seldom the source asks (R112). 0: the source alone asks.
	AckEvery uint32
	// Stored has the positions of the members reported (PositionsDue, Group.Positions).
	// New data of a turn waits until the driver has stored them (R83). It needs PSNProbe.
	Stored bool
	// Resume, if not nil, has the stored positions of the members, which have had data
	// before the switch restarted (R83).
	Resume *Positions
	// SilentFor is for how long, with Resume, nothing has gone to the members from this switch: what
	// came from them before then has been read (R100). 0: not known.
	SilentFor time.Duration
	Window    Window
	// TargetKey, if not 0, is the R_Key of target messages and of the WRITEs to the
	// memory that these name (R41). Not with Policy Quorum.
	TargetKey uint32
	Legs      []LegSpec
	Members   []MemberSpec
	RepliesTo MemberID // the only source, if members have a MemberSpec.Reply (R107)
	Tree      TreeSpec // the switch's place in the tree, if there are forwarded legs
}

// TreeSpec is the place of a switch in the tree of switches of a group (R84).
type TreeSpec struct {
	Parent Neighbor // the neighbour toward the root of the tree; 0: this switch is the root
	Epoch  uint32   // epoch of the registration that made the group; the same at all switches, and after each update
	// Layout numbers the arrangement of the tree: the same at all switches, and another one
	// after each update. Feedback and positions count between switches of the same layout
	// (R87, R89). 0 means Epoch.
	Layout uint32
	// Rebuilt: the tree has been another one since the group was registered, and a member may have had its last
	// turn in that one.
	Rebuilt bool
	// Levels, in UpdateMembers only, are the LegSpec.Levels from now on of legs that the group has.
	Levels map[Neighbor]uint8
	// Running, in PutGroup only: the group runs at other switches already, and what this one
	// had of it is lost but for GroupSpec.Resume (R89).
	Running bool
	// Retry is how long the switch waits for the answer to a report; longer than the round
	// trip to each neighbour. 0 means token.DefaultRetry.
	Retry time.Duration
}

// Op is a change by the control plane. See Switch.Apply.
type Op interface{ op() }

// PutGroup creates a group, or replaces all of it if its ID is in use with the
// same IP: a replaced group starts anew from the members' registered PSNs, or from
// Spec.Resume.
type PutGroup struct{ Spec GroupSpec }

// DeleteGroup removes a group.
type DeleteGroup struct{ Group GroupID }

// AddMember lets a member join at the next message boundary of the source. Its MemberID
// is the next one. If Member.Leg equals the number of legs, Leg is added to them. If
// Member.Leg is a connected leg whose member has gone, the new member takes over that
// leg, as Leg describes it, and the MemberID of the member that has gone. Replaces, for a
// member behind another switch, is the MemberID plus 1 of one behind another switch that has
// gone: the new member gets it. 0: none.
type AddMember struct {
	Group    GroupID
	Member   MemberSpec
	Leg      LegSpec
	Replaces uint32
}

// RemoveMember removes a member; the group's ACK no longer waits for it.
type RemoveMember struct {
	Group  GroupID
	Member MemberID
}

// MoveMember puts a member behind another forwarded leg. If To equals the number of legs,
// Leg is added to them.
type MoveMember struct {
	Member MemberID
	To     LegID
	Leg    LegSpec
}

// UpdateMembers removes members, moves some and then adds others, all of it or nothing
// (R35, R90). AddMember.Group of the elements of Add is ignored.
type UpdateMembers struct {
	Group  GroupID
	Remove []MemberID
	Move   []MoveMember
	Add    []AddMember
	// Tree is the place of the switch from now on, if not nil: of a group that gets its
	// first forwarded leg, or whose tree has another layout.
	Tree *TreeSpec
	// Stored has the positions reported from now on, as GroupSpec.Stored does; false changes nothing.
	Stored bool
}

func (PutGroup) op()      {}
func (DeleteGroup) op()   {}
func (AddMember) op()     {}
func (RemoveMember) op()  {}
func (UpdateMembers) op() {}

// Packet is one received RoCEv2 packet for a group address, as a value. Fields
// of headers that Op does not carry are zero.
type Packet struct {
	Group    netip.Addr    `state:"constant"` // IP destination
	Src      netip.Addr    `state:"derived"`  // IP source
	Port     Port          `state:"encoded"`
	Neighbor Neighbor      `state:"derived"` // the switch that it came from; 0: a host
	Op       rocev2.Opcode `state:"encoded"`
	AckReq   bool          `state:"encoded"`
	BECN     bool          `state:"encoded"`
	// Verified means that the driver has checked the ICRC. Input asks for the check
	// (Output.NeedVerify) only where the packet would leave a lasting mark: data in
	// order is forwarded with an incremental ICRC instead.
	Verified bool       `state:"constant"`
	DestQP   rocev2.QPN `state:"constant"`
	PSN      rocev2.PSN `state:"encoded"`
	Payload  uint16     `state:"encoded"` // bytes, without pad

	VA     uint64 `state:"encoded"` // RETH
	RKey   uint32 `state:"encoded"` // RETH, or IETH of a SEND with invalidate
	DMALen uint32 `state:"encoded"` // RETH

	Syndrome rocev2.Syndrome `state:"constant"` // AETH
	MSN      rocev2.MSN      `state:"constant"` // AETH

	// Targets are the records of a target message (Switch.IsTargetMessage), as the
	// driver has parsed them; empty if they are malformed. The core does not retain
	// the slice.
	Targets []Target `state:"constant"`

	Frame Handle `state:"encoded"`
	// RetainBytes is the packet memory that Frame takes while it is retained; 0: it
	// cannot be retained.
	RetainBytes uint32 `state:"encoded"`
}

// CopyFlags are the changes that a Copy makes to the frame, besides the PSN.
type CopyFlags uint8

// Bits of CopyFlags.
const (
	SetRETH    CopyFlags = 1 << iota // write VA and RKey into RETH
	SetIETH                          // write RKey into IETH
	SetAckReq                        // set AckReq
	EmptyWrite                       // send a WRITE of no bytes instead: the rest of the packet is not for receivers
)

// Copy is one frame to send: Frame, rewritten for Leg. The fields that are constant for a
// connected leg (addresses, QPN) are not repeated here. PSN is always to be written; on
// forwarded legs it equals the received PSN. Frame is that of the packet, or a retained
// one.
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
	PSN      rocev2.PSN      // PSN in the source's space; 0 for a CNP
	Syndrome rocev2.Syndrome // Acknowledge only
	MSN      rocev2.MSN      // Acknowledge only; to a source behind another switch: the tag of R87
}

// Report is one message to a neighbouring switch, about who may send in a group.
type Report struct {
	Group    GroupID
	Neighbor Neighbor
	Message  token.Message
}

// EventKind is the kind of an Event.
type EventKind uint8

// Events.
const (
	SourceChanged  EventKind = iota + 1 // Member is the source from PSN on
	MemberEvicted                       // Member had everything up to PSN; Cause is the reason
	GroupFailed                         // because of Member, for Cause; the source was sent a fatal NAK with Syndrome at PSN, or nothing if it was removed (Syndrome 0)
	SourceRefused                       // Member's request at PSN is one that no group can execute or, if Cause is ReceivesOnly, Member may not send; the switch itself answered with Syndrome
	PositionsDue                        // the positions of the members are to be stored
	NumberMismatch                      // Member's packets have PSN (a QPN, if Number says so) where Registered is registered (R72)
	SourceConflict                      // a neighbour sends data of Member, and that of the present source is not acknowledged at PSN: the switches disagree on the source
)

// Event is a decision of the data path, for the control plane.
type Event struct {
	Kind       EventKind
	Syndrome   rocev2.Syndrome // syndrome of the NAK that the source was sent; of MemberEvicted: Cause
	Cause      rocev2.Syndrome // syndrome of Member's own fatal NAK, or Silent, Lagging and so on; of SourceRefused: Syndrome, or ReceivesOnly
	Number     Number          // kind of the number, of NumberMismatch
	Group      GroupID
	Member     MemberID
	PSN        rocev2.PSN
	Registered rocev2.PSN // the registered number, of NumberMismatch
}

// Output is what the driver has to do after a call of Input, Advance or Apply. It belongs
// to the caller, who passes the same Output again and again: each call of Input, Advance
// or Apply begins by emptying it, and its slices keep their capacity.
type Output struct {
	Copies   []Copy
	Feedback []Feedback
	Events   []Event
	Reports  []Report
	Probes   []Probe // only of Advance
	Orders   []Order // instructions to the fast path
	Drop     Reason  // why the packet was not served; 0: it was served
	// NeedVerify asks the driver to check the packet's ICRC and, if it is
	// right, to call Input again with Verified set. Nothing has changed yet.
	NeedVerify bool
	// NeedRevoke asks the driver to take the group back from the fast path (R97): to report
	// what was forwarded, to call Revoked, and then to make the same call again. Nothing has
	// changed yet.
	NeedRevoke bool

	Retained bool     // the packet's frame is retained
	Freed    []Handle // frames that are no longer retained

	// MaxResends is set by the caller: the number of copies of retained frames that it
	// has memory for, besides one copy per leg. The copies beyond it come with the next
	// call, for which the deadline is at once. 0 means any number, below 0 none.
	MaxResends int
	resends    int

	// PortRoom is set by the caller. It returns how many copies of retained frames the
	// port of a leg takes now, and when the port may take more. A leg whose port takes
	// none waits until then; the other legs do not (R70). nil: every port takes any
	// number.
	PortRoom func(GroupID, LegID) (copies int, until time.Duration)
}
