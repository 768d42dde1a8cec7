// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// GroupBody is the body of Register and Notify: the parameters of the whole
// group, and the records of some of its members.
type GroupBody struct {
	// GroupParams are not checked, except that they fit the encoding: PathMTU and Quorum
	// 16 bits, LagPSNs 24.
	mcast.GroupParams
	TotalMembers int // members of the group, in all segments; 0..65535
	Lease        time.Duration
	Window       mcast.Window // zero for none
	Base         uint64       // Registration.Base, 0 for none
	TargetKey    uint32       // Registration.TargetKey, 0 for none
	NoRepair     bool         // Registration.NoRepair
	Exclusive    bool         // Registration.Exclusive; in a Register alone
	Members      []MemberRecord
}

// String describes g without any R_Key.
func (g GroupBody) String() string {
	s := fmt.Sprintf("qpn 0x%x pmtu %d members %d of %d", uint32(g.QPN), g.PathMTU, len(g.Members), g.TotalMembers)
	for i := range g.Members {
		s += "; " + g.Members[i].String()
	}
	return s
}

// GoString is String: %#v must not print an R_Key either.
func (g GroupBody) GoString() string { return g.String() }

// Register is one segment of a registration. All segments of a registration are equal but
// for Members, which together are the group's in order.
type Register struct{ GroupBody }

// Notify tells a member its registration at the switch: Members holds the member's record
// alone (the paper's downstream envelope). Transaction is that of the registration, or of
// the Renew that caused the Notify; ReplyTo is the master's address, for the Confirm.
type Notify struct{ GroupBody }

const (
	groupFixedLen = 25   // the fields before the window
	groupWindow   = 0x01 // a window follows
	groupUpdate   = 0x02 // the base epoch follows
	groupPolicy   = 0x04 // details of the policy follow
	groupTarget   = 0x08 // the target key follows
	groupNoRepair = 0x10 // the switch must not repair losses itself
	groupOnly     = 0x20 // the switch must not replace a group
	baseLen       = 8
	targetKeyLen  = 4
	policyLen     = 15
)

func (*Register) kind() Type { return TypeRegister }
func (*Notify) kind() Type   { return TypeNotify }

// size returns the bytes of the body without its record section.
func (g *GroupBody) size() int {
	n := groupFixedLen
	if g.Window != (mcast.Window{}) {
		n += windowLen
	}
	if g.Base != 0 {
		n += baseLen
	}
	if g.hasDetails() {
		n += policyLen
	}
	if g.TargetKey != 0 {
		n += targetKeyLen
	}
	return n
}

// hasDetails reports whether the policy has parameters beside its number.
func (g *GroupBody) hasDetails() bool {
	return g.Quorum != 0 || g.LagPSNs != 0 || g.LagTime != 0 || g.SenderTimeout != 0 || g.SenderRetries != 0
}

func (g *GroupBody) append(b []byte, v6 bool) ([]byte, error) {
	if g.QPN > rocev2.PSNMask || g.PathMTU < 0 || g.PathMTU > 0xFFFF || g.TotalMembers < 0 || g.TotalMembers > 0xFFFF || g.DeadAfter < 0 || g.Lease < 0 ||
		g.Quorum < 0 || g.Quorum > 0xFFFF || g.LagPSNs < 0 || g.LagPSNs > rocev2.PSNMask || g.LagTime < 0 {
		return nil, fmt.Errorf("a field is out of range: qpn 0x%x, pmtu %d, %d members, dead after %v, lease %v, quorum %d, lag limit %d and %v",
			uint32(g.QPN), g.PathMTU, g.TotalMembers, g.DeadAfter, g.Lease, g.Quorum, g.LagPSNs, g.LagTime)
	}
	flags := byte(0)
	if g.Window != (mcast.Window{}) {
		flags = groupWindow
	}
	if g.Base != 0 {
		flags |= groupUpdate
	}
	if g.hasDetails() {
		flags |= groupPolicy
	}
	if g.TargetKey != 0 {
		flags |= groupTarget
	}
	if g.NoRepair {
		flags |= groupNoRepair
	}
	if g.Exclusive {
		flags |= groupOnly
	}
	be := binary.BigEndian
	b = append(b, flags, byte(g.Policy))
	b = append24(b, uint32(g.QPN))
	b = be.AppendUint16(b, uint16(g.PathMTU))
	b = be.AppendUint16(b, uint16(g.TotalMembers))
	b = be.AppendUint64(b, uint64(g.DeadAfter))
	b = be.AppendUint64(b, uint64(g.Lease))
	if flags&groupWindow != 0 {
		b = appendWindow(b, g.Window)
	}
	if flags&groupUpdate != 0 {
		b = be.AppendUint64(b, g.Base)
	}
	if flags&groupPolicy != 0 {
		b = be.AppendUint16(b, uint16(g.Quorum))
		b = append24(b, uint32(g.LagPSNs))
		b = be.AppendUint64(b, uint64(g.LagTime))
		b = append(b, g.SenderTimeout, g.SenderRetries)
	}
	if flags&groupTarget != 0 {
		b = be.AppendUint32(b, g.TargetKey)
	}
	return appendSection(b, g.Members, v6)
}

func parseGroup(r *reader, v6 bool) GroupBody {
	flags := r.u8()
	if flags&^(groupWindow|groupUpdate|groupPolicy|groupTarget|groupNoRepair|groupOnly) != 0 {
		r.fail("group flags")
	}
	g := GroupBody{NoRepair: flags&groupNoRepair != 0, Exclusive: flags&groupOnly != 0}
	g.Policy, g.QPN, g.PathMTU, g.TotalMembers = mcast.Policy(r.u8()), rocev2.QPN(r.u24()), int(r.u16()), int(r.u16())
	g.DeadAfter, g.Lease = r.duration(), r.duration()
	if flags&groupWindow != 0 {
		if g.Window = r.window(); g.Window == (mcast.Window{}) {
			r.fail("window of zeros")
		}
	}
	if flags&groupUpdate != 0 {
		if g.Base = r.u64(); g.Base == 0 {
			r.fail("base epoch of zero")
		}
	}
	if flags&groupPolicy != 0 {
		g.Quorum, g.LagPSNs, g.LagTime = int(r.u16()), int(r.u24()), r.duration()
		g.SenderTimeout, g.SenderRetries = r.u8(), r.u8()
		if !g.hasDetails() {
			r.fail("policy details of zeros")
		}
	}
	if flags&groupTarget != 0 {
		if g.TargetKey = r.u32(); g.TargetKey == 0 {
			r.fail("target key of zero")
		}
	}
	g.Members = parseSection(r, v6)
	return g
}

// sameGroup reports whether a and b are segments of one registration.
func sameGroup(a, b *GroupBody) bool {
	return a.GroupParams == b.GroupParams && a.TotalMembers == b.TotalMembers && a.Lease == b.Lease && a.Window == b.Window &&
		a.Base == b.Base && a.TargetKey == b.TargetKey && a.NoRepair == b.NoRepair && a.Exclusive == b.Exclusive
}

// groupBody returns the body for r with the given members.
func (r *Registration) groupBody(ms []MemberRecord) GroupBody {
	return GroupBody{
		GroupParams: r.GroupParams, TotalMembers: len(r.Members), Lease: r.Lease, Window: r.Window,
		Base: r.Base, TargetKey: r.TargetKey, NoRepair: r.NoRepair, Exclusive: r.Exclusive, Members: ms,
	}
}

// registration returns the registration in g, without the members; h is the message's
// header.
func (g *GroupBody) registration(h *Header) Registration {
	return Registration{
		Group: h.Group, Epoch: h.Epoch, GroupParams: g.GroupParams, Lease: g.Lease, Window: g.Window,
		Base: g.Base, TargetKey: g.TargetKey, NoRepair: g.NoRepair, Master: h.ReplyTo,
	}
}

// Segments cuts r into Register bodies that each fit, with header and MAC, into an IP
// packet of mtu bytes (no IP options), none if there are no members. It fails if not even
// one record fits, or if the group has more members than the format can count.
func (r *Registration) Segments(mtu int) ([]*Register, error) {
	if len(r.Members) > 0xFFFF {
		return nil, fmt.Errorf("group %s: %d members; the format counts to 65535", r.Group, len(r.Members))
	}
	v6 := r.Group.Is6()
	g := r.groupBody(nil)
	room := payloadRoom(mtu, v6) - g.size()
	var segs []*Register
	for rest := r.Members; len(rest) > 0; {
		n := segmentFit(rest, v6, room)
		if n == 0 {
			return nil, fmt.Errorf("group %s: no member fits into a packet of %d bytes; use a larger one", r.Group, mtu)
		}
		segs = append(segs, &Register{r.groupBody(rest[:n])})
		rest = rest[n:]
	}
	return segs, nil
}

// payloadRoom returns the bytes available for a body in an IP packet of mtu bytes.
func payloadRoom(mtu int, v6 bool) int {
	ip := 20
	if v6 {
		ip = 40
	}
	return min(mtu-ip-8, MaxLen) - headerLen(v6) - MACLen
}
