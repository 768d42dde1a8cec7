// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Members are those of the core.
type (
	MemberKey    = mcast.MemberKey
	MemberRecord = mcast.MemberRecord
)

// Registration describes a group: a master registers it, a Table serves it.
type Registration struct {
	Group netip.Addr // GroupIP, a unicast address (RC.md §4)
	Epoch uint64     // newer replaces older; 0 lets a Master use the epoch after the newest that the switch knows
	mcast.GroupParams
	// Base, if not 0, makes this an update: the group of that epoch goes on, with these
	// members (R35). All other fields must be unchanged.
	Base   uint64
	Lease  time.Duration // requested by the master, then as granted; 0: the switch's default, and for a local group none
	Window mcast.Window  // address range of a source's WRITEs; zero for none
	// TargetKey, if not 0, is the R_Key of target messages, which name the memory for the
	// next WRITEs with this key (R41, AppendTargets). Not with Quorum.
	TargetKey uint32
	NoRepair  bool // the switch must not repair losses from its own store
	// Exclusive refuses a registration that would replace a group. An update has no use for it.
	Exclusive bool
	Members   []MemberRecord // two or more
	Master    netip.AddrPort // address for answers, events and confirmations; zero for a local group
	// The registrar sets the following for Install; a master leaves them zero.

	// Origin is the epoch of the registration without a Base that this one goes back to,
	// by one update after the other: the group's life began with it.
	Origin uint64
	// Numbers are those of the members (Number); nil: from 1 on, in order.
	Numbers []uint32
	// Tree is the part of the tree at the switch that Install is called for; nil if all
	// members are there.
	Tree *Tree
}

// String describes r without any R_Key.
func (r Registration) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "group %s epoch %d qpn 0x%x pmtu %d", r.Group, r.Epoch, uint32(r.QPN), r.PathMTU)
	if r.Base != 0 {
		fmt.Fprintf(&b, " updates %d", r.Base)
	}
	switch r.Policy {
	case mcast.Evict:
		fmt.Fprintf(&b, " evict after %v", r.DeadAfter)
	case mcast.Quorum:
		fmt.Fprintf(&b, " quorum %d, dead after %v", r.Quorum, r.DeadAfter)
	}
	if r.Window != (mcast.Window{}) {
		fmt.Fprintf(&b, " window %s", r.Window)
	}
	for i := range r.Members {
		fmt.Fprintf(&b, "; %s", r.Members[i])
	}
	return b.String()
}

// GoString is String: %#v must not print an R_Key either.
func (r Registration) GoString() string { return r.String() }

// Find returns the index of the member k in r.Members, or -1.
func (r *Registration) Find(k MemberKey) int {
	for i := range r.Members {
		if r.Members[i].Key() == k {
			return i
		}
	}
	return -1
}

// Problem is a fault of a registration. A Reject carries it.
type Problem struct {
	Reason Reason
	Member MemberKey // the member at fault; zero if the problem is about none
	Value  uint64    // a value that Reason explains; 0 if it has none
}

// Error describes the problem; the caller adds which group it is about.
func (p *Problem) Error() string {
	s := p.Reason.String()
	if p.Member.IP.IsValid() {
		s += ": " + p.Member.String()
	}
	if value := reasons[min(p.Reason, NumReasons)].value; value != nil && p.Value != 0 {
		s += value(p.Value)
	}
	return s
}

// hopValue is the address of a next hop in the Value of a NoWay: an IPv4 address, or the lower
// half of an IPv6 address.
type hopValue uint64

func (v hopValue) String() string {
	if v>>32 == 0 {
		return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}).String()
	}
	return fmt.Sprintf("with interface ID %04x:%04x:%04x:%04x", uint64(v>>48), uint64(v>>32&0xFFFF), uint64(v>>16&0xFFFF), uint64(v&0xFFFF))
}

// macValue is the MAC address in the Value of a LocationUnconfirmed.
type macValue uint64

func (v macValue) String() string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(v))
	return rocev2.MAC(b[2:]).String()
}

// Validate checks all that does not depend on a switch's configuration: that the
// addresses are unicast and of one family, no IP occurs twice, the QPNs are RC queue
// pairs', the path MTU is one, and the windows fit. It returns nil or the first problem
// in member order.
//
// One IP may be in a group only once, whatever the QPN: feedback names its
// sender by IP alone (BTH has no source QPN), so two queue pairs of one host
// could not be distinguished.
//
// With a group window, at most one member may lack a window of its own: the one that
// never receives, because it is always the source.
func (r *Registration) Validate() *Problem {
	if r.Lease < 0 || r.Epoch != 0 && r.Base >= r.Epoch {
		return &Problem{Reason: Malformed}
	}
	if !unicast(r.Group) {
		return &Problem{Reason: NotGroupPrefix}
	}
	if len(r.Members) < 2 {
		return &Problem{Reason: TooFewMembers}
	}
	seen := make(map[netip.Addr]struct{}, len(r.Members))
	for i := range r.Members {
		m := &r.Members[i]
		if m.IP.IsValid() && (m.IP.Is4() != r.Group.Is4() || m.IP.Is4In6()) {
			return &Problem{Reason: FamilyMismatch, Member: m.Key()}
		}
		if f := faultOf(m, r.Group); f != 0 || m.SQPSN > rocev2.PSNMask || m.RQPSN > rocev2.PSNMask {
			return &Problem{Reason: BadMember, Member: m.Key(), Value: uint64(f)}
		}
		if _, dup := seen[m.IP]; dup {
			return &Problem{Reason: OverlappingMembers, Member: m.Key(), Value: uint64(TwiceInGroup)}
		}
		seen[m.IP] = struct{}{}
	}
	if !slices.ContainsFunc(r.Members, func(m MemberRecord) bool { return !m.ReceiveOnly }) {
		return &Problem{Reason: NoSender}
	}
	if p := r.validateParams(); p != nil {
		return p
	}
	return r.validateWindows()
}

// faultOf returns what no member of group can have; 0: m has nothing of it.
func faultOf(m *MemberRecord, group netip.Addr) MemberFault {
	switch {
	case !unicast(m.IP):
		return NotUnicast
	case m.IP == group:
		return IsGroup
	case !m.QPN.Valid():
		return NoRCQPN
	}
	return 0
}

// DefaultDeadAfter is the default of DeadAfter under the policies Evict and Quorum.
const DefaultDeadAfter = 100 * time.Millisecond

// defaultSenderTimeout and defaultSenderRetries are what most programs configure: 67 ms
// and 7.
const defaultSenderTimeout, defaultSenderRetries = 14, 7

// DeadAfterMax bounds the growth of DeadAfter with the measured round trips
// (mcast.GroupSpec.DeadAfterMax). A DeadAfter that was set does not grow. The default
// grows to half of the time after which the sender gives up, since a removal takes up to
// twice DeadAfter.
func (r *Registration) DeadAfterMax() time.Duration {
	if r.DeadAfter != DefaultDeadAfter {
		return 0
	}
	t, n := r.SenderTimeout, r.SenderRetries
	if t == 0 {
		t, n = defaultSenderTimeout, defaultSenderRetries
	}
	return max(r.DeadAfter, rocev2.AckTimeout(t)*time.Duration(n)/2)
}

func (r *Registration) validateParams() *Problem {
	receivers := len(r.Members) - 1
	e := r.GroupParams.Check(receivers)
	switch {
	case e == nil && r.Policy == mcast.Quorum && r.TargetKey != 0:
	case e == nil:
		return nil
	case e.Param == mcast.ParamQPN:
		return &Problem{Reason: BadVirtualQPN}
	case e.Param == mcast.ParamPathMTU:
		return &Problem{Reason: PathMTUMismatch, Value: uint64(rocev2.PathMTUOfCode(5))}
	case e.Bound > 0:
		return &Problem{Reason: BadDeadAfter, Value: uint64(e.Bound)}
	case !e.Conflict:
		return &Problem{Reason: Malformed}
	}
	return &Problem{Reason: BadPolicy, Value: uint64(receivers)}
}

func (r *Registration) validateWindows() *Problem {
	none := mcast.Window{}
	if r.Window != none && (!validWindow(r.Window) || r.TargetKey != 0 && r.Window.RKey == r.TargetKey) {
		return &Problem{Reason: BadWindow}
	}
	lacking := 0
	for i := range r.Members {
		m := &r.Members[i]
		bad := false
		switch {
		case m.Window == none && r.Window == none:
		case m.Window == none:
			lacking++
			bad = lacking > 1
		default: // a window that no WRITE can reach is an error as well
			bad = r.Window == none || !validWindow(m.Window) || m.Window.Len < r.Window.Len
		}
		if bad {
			return &Problem{Reason: BadWindow, Member: m.Key()}
		}
	}
	return nil
}

// validWindow reports whether w has bytes and ends within the address space.
func validWindow(w mcast.Window) bool { return w.Len > 0 && w.Base+(w.Len-1) >= w.Base }

// unicast reports whether a can be a host's or a group's address. Class D cannot: Linux
// drops packets from such a source (ip_route_input_slow).
func unicast(a netip.Addr) bool {
	return a.IsValid() && a.Zone() == "" && !a.IsUnspecified() && !a.IsMulticast() && !a.IsLoopback() &&
		a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}
