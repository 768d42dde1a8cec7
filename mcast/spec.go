// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"errors"
	"fmt"
	"math"
	"net/netip"

	"github.com/gleam-rdma/gleam/rocev2"
)

// maxIndex is the maximum number of legs, and of members, of a group: LegID and MemberID
// have 16 bits.
const maxIndex = math.MaxUint16

// validate checks a whole group. Its errors name the group, the wrong value and the right
// values.
func (s *Switch) validate(spec *GroupSpec) error {
	err := s.checkSpec(spec)
	if err == nil {
		err = checkStored(spec)
	}
	if err != nil {
		return fmt.Errorf("mcast: group %d: %w", spec.ID, err)
	}
	return nil
}

// checkStored checks whether a group can have its positions stored, and resume.
func checkStored(spec *GroupSpec) error {
	p := spec.Resume
	if !spec.Stored && p == nil {
		return nil
	}
	if spec.PSNProbe == 0 {
		return errors.New("positions are stored, but receivers are not probed: after a restart nobody could tell what they have; set a PSN probe")
	}
	if p != nil && !spec.Tree.Running {
		for i, l := range spec.Legs {
			if l.Kind == Forwarded {
				return fmt.Errorf("leg %d goes to another switch, and the group has positions: it must be put as one that runs already", i)
			}
		}
	}
	switch {
	case p == nil:
	case len(p.Members) != len(spec.Members):
		return fmt.Errorf("%d positions of %d members", len(p.Members), len(spec.Members))
	case p.HasSource && (int(p.Source) >= len(p.Members) || !p.Members[p.Source].Known):
		return fmt.Errorf("the source, member %d, has no position", p.Source)
	default:
		for i, at := range p.Members {
			if at.Send > rocev2.PSNMask || at.Receive > rocev2.PSNMask {
				return fmt.Errorf("member %d: position %#x, %#x exceeds 24 bits", i, uint32(at.Send), uint32(at.Receive))
			}
		}
	}
	return nil
}

func (s *Switch) checkSpec(spec *GroupSpec) error {
	if int64(spec.ID) >= int64(s.limits.Groups) {
		return fmt.Errorf("the limit is %d groups, numbered from 0", s.limits.Groups)
	}
	if err := checkAddr(spec.IP); err != nil {
		return fmt.Errorf("group address: %w", err)
	}
	if err := checkPolicy(spec); err != nil {
		return err
	}
	if r := spec.Repair; r.Bytes < 0 || r.Bytes > 0 && (r.Timeout <= 0 || r.Tries < 1 || r.Tries > 255) {
		return fmt.Errorf("repair with %d bytes, a timeout of %v and %d tries: want not less than 0 bytes and, with any, a timeout above 0 and 1 to 255 tries", r.Bytes, r.Timeout, r.Tries)
	}
	if err := spec.FastPath.check(&spec.Repair); err != nil {
		return err
	}
	if err := checkWindow(spec.Window); err != nil {
		return fmt.Errorf("group window: %w", err)
	}
	switch {
	case spec.TargetKey == 0:
	case spec.Policy == Quorum:
		return errors.New("a target key with a quorum: what is sent again to a receiver behind the others would need targets of long ago")
	case spec.TargetKey == spec.Window.RKey && spec.Window != Window{}:
		return errors.New("the target key is the window's R_Key: it must be another one")
	}
	if err := checkReplies(spec); err != nil {
		return err
	}
	if n := len(spec.Members); n < 2 || n > s.maxMembers() {
		return fmt.Errorf("%d members: must be 2 to %d", n, s.maxMembers())
	}
	if err := checkLegs(spec.Legs); err != nil {
		return err
	}
	if spec.Tree.Retry < 0 {
		return fmt.Errorf("tree: a report is repeated after %v; want above 0, or 0 for the default", spec.Tree.Retry)
	}
	numbers := make(map[uint32]int, len(spec.Members))
	behind := make([]int, len(spec.Legs))
	seen := make(map[netip.Addr]int, len(spec.Members))
	for i := range spec.Members {
		m := &spec.Members[i]
		if err := checkMember(m, spec.IP, spec.Window); err != nil {
			return fmt.Errorf("member %d (%v): %w", i, m.IP, err)
		}
		if j, ok := seen[m.IP.Unmap()]; ok {
			return fmt.Errorf("member %d (%v): member %d has the same address", i, m.IP, j)
		}
		seen[m.IP.Unmap()] = i
		n := m.Number
		if n == 0 {
			n = uint32(i) + 1
		}
		if j, ok := numbers[n]; ok {
			return fmt.Errorf("member %d (%v): member %d has the same number, %d", i, m.IP, j, n)
		}
		numbers[n] = i
		if int(m.Leg) >= len(spec.Legs) {
			return fmt.Errorf("member %d (%v): leg %d does not exist, there are %d", i, m.IP, m.Leg, len(spec.Legs))
		}
		behind[m.Leg]++
	}
	for i, n := range behind {
		switch {
		case n == 0:
			return fmt.Errorf("leg %d: nobody is behind it", i)
		case n > 1 && spec.Legs[i].Kind == Connected:
			return fmt.Errorf("leg %d: a connected leg has one member, not %d", i, n)
		}
	}
	return nil
}

func checkPolicy(spec *GroupSpec) error {
	if e := spec.GroupParams.Check(len(spec.Members) - 1); e != nil {
		return e
	}
	if spec.DeadAfterMax < 0 || spec.DeadAfterMax > 0 && spec.DeadAfter == 0 {
		return fmt.Errorf("dead_after %v, at most %v: must not be negative, and 0 is never", spec.DeadAfter, spec.DeadAfterMax)
	}
	if spec.AllDeadAfter != 0 && (spec.AllDeadAfter < spec.DeadAfter || spec.DeadAfter == 0) {
		return fmt.Errorf("all dead after %v: goes with a dead_after that is not longer", spec.AllDeadAfter)
	}
	if n := spec.AckEvery; n&(n-1) != 0 || n > maxBehind {
		return fmt.Errorf("AckReq at each %d packets: want a power of two up to %d, or 0 for the source's own", n, maxBehind)
	}
	if spec.PSNProbe < 0 {
		return fmt.Errorf("psn_probe %v: must not be negative, and 0 is no probes", spec.PSNProbe)
	}
	if spec.Policy == Quorum {
		for i, l := range spec.Legs {
			if l.Kind == Forwarded {
				return fmt.Errorf("leg %d: a quorum counts members, but the switch behind it acknowledges for all of its own at once", i)
			}
		}
	}
	return nil
}

func (s *Switch) maxMembers() int { return min(s.limits.Members, maxIndex) }

func checkLegs(legs []LegSpec) error {
	if len(legs) == 0 || len(legs) > maxIndex {
		return fmt.Errorf("%d legs: must be 1 to %d", len(legs), maxIndex)
	}
	seen := make(map[Neighbor]int)
	for i, l := range legs {
		if err := checkLeg(l); err != nil {
			return fmt.Errorf("leg %d: %w", i, err)
		}
		if l.Kind != Forwarded {
			continue
		}
		if j, ok := seen[l.Neighbor]; ok {
			return fmt.Errorf("leg %d: leg %d already goes to neighbour %d", i, j, l.Neighbor)
		}
		seen[l.Neighbor] = i
	}
	return nil
}

func checkLeg(l LegSpec) error {
	switch {
	case l.Kind != Connected && l.Kind != Forwarded:
		return fmt.Errorf("unknown kind %d", l.Kind)
	case l.Levels > maxLevels || l.Kind == Connected && l.Levels > 0:
		return fmt.Errorf("%d levels of switches behind a leg; at most %d, and none behind a connected one", l.Levels, maxLevels)
	case l.Kind == Forwarded && l.Neighbor == 0:
		return errors.New("a forwarded leg needs a neighbour")
	case l.Kind == Connected && l.Neighbor != 0:
		return fmt.Errorf("a connected leg has no neighbour, but this has %d", l.Neighbor)
	}
	return nil
}

func checkAddr(a netip.Addr) error {
	switch {
	case !a.IsValid():
		return errors.New("no IP address")
	case a.Zone() != "":
		return fmt.Errorf("%v has a zone; none can be told from a packet", a)
	case a.IsMulticast():
		return fmt.Errorf("%v is a multicast address; hosts drop packets from one, choose a unicast address", a)
	case a.IsUnspecified():
		return fmt.Errorf("%v is the unspecified address", a)
	}
	return nil
}

func checkMember(m *MemberSpec, group netip.Addr, w Window) error {
	if err := checkAddr(m.IP); err != nil {
		return err
	}
	switch {
	case m.IP.Unmap() == group.Unmap():
		return errors.New("has the group's address")
	case m.IP.Unmap().Is4() != group.Unmap().Is4():
		return fmt.Errorf("is not of the address family of the group address %v", group)
	case !m.QPN.Valid():
		return fmt.Errorf("QPN %#x is not one of an RC queue pair: 0x10 to 0xfffffe", uint32(m.QPN))
	case m.SQPSN > rocev2.PSNMask:
		return fmt.Errorf("sq_psn %#x exceeds 24 bits", uint32(m.SQPSN))
	case m.RQPSN > rocev2.PSNMask:
		return fmt.Errorf("rq_psn %#x exceeds 24 bits", uint32(m.RQPSN))
	}
	if err := checkWindow(m.Window); err != nil {
		return fmt.Errorf("window: %w", err)
	}
	if w != (Window{}) && m.Window != (Window{}) && m.Window.Len < w.Len {
		return fmt.Errorf("window of %d bytes is shorter than the group's, %d", m.Window.Len, w.Len)
	}
	return nil
}

func checkWindow(w Window) error {
	if w == (Window{}) {
		return nil
	}
	if w.Len == 0 {
		return errors.New("has an address or R_Key but no length")
	}
	if w.Base+(w.Len-1) < w.Base {
		return fmt.Errorf("%d bytes from %#x exceed the address space", w.Len, w.Base)
	}
	return nil
}
