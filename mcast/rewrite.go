// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/rocev2"

// rewriteKind is the part of a packet that differs from member to member.
type rewriteKind uint8

const (
	rewriteNone     rewriteKind = iota
	rewriteByWindow             // a WRITE into the group's window (R27)
	rewriteByKey                // the R_Key of a SEND with invalidate (R27)
	rewriteByTarget             // a WRITE to the target that the last target message names (R41)
	rewriteEmpty                // a target message itself: receivers get a WRITE of no bytes
)

// rewriteOf returns the part of p that differs from member to member. Copies to other
// switches are not rewritten.
func (g *group) rewriteOf(p *Packet, f rocev2.OpFlags) rewriteKind {
	switch {
	case f&rocev2.OpRETH != 0 && p.DMALen != 0:
		switch {
		case g.fwd.targets != nil && p.RKey == g.fwd.targetKey && p.VA == targetMessageVA:
			return rewriteEmpty
		case g.fwd.targets != nil && p.RKey == g.fwd.targetKey:
			return rewriteByTarget
		case g.fwd.hasWindow:
			return rewriteByWindow
		}
	case f&rocev2.OpIETH != 0 && g.fwd.hasWindow:
		return rewriteByKey
	}
	return rewriteNone
}

// rewriteCopy rewrites c for its member, as far as forward has not. It returns false if no
// target message has named that member's memory: then the copy must not be sent.
func (g *group) rewriteCopy(c *Copy, how rewriteKind, va uint64, psn rocev2.PSN) bool {
	switch how {
	case rewriteByWindow:
		l := &g.legs[c.Leg]
		c.Flags, c.VA, c.RKey = SetRETH, l.base+(va-g.fwd.window.Base), l.rkey
	case rewriteByKey:
		c.Flags, c.RKey = SetIETH, g.legs[c.Leg].rkey
	case rewriteByTarget:
		t := g.fwd.targets.find(int(c.Leg), psn)
		c.Flags, c.VA, c.RKey = SetRETH, t.va+va, t.rkey
		return t.set
	case rewriteEmpty:
		c.Flags = EmptyWrite
	}
	return true
}

// IsTargetMessage reports whether p, a packet for group id, is a target message, whose
// Targets the driver has to read from the payload before Input.
func (s *Switch) IsTargetMessage(id GroupID, p *Packet) bool {
	g := s.group(id)
	return g != nil && g.isTargetMessage(p)
}

func (g *group) isTargetMessage(p *Packet) bool {
	return g.fwd.targets != nil && p.VA == targetMessageVA && p.RKey == g.fwd.targetKey && p.DMALen != 0 && p.Op.Is(rocev2.OpRETH)
}

// checkTargeted is checkRequest for a packet with the target key.
func (g *group) checkTargeted(p *Packet) (rocev2.Syndrome, Reason) {
	switch {
	case p.DMALen == 0:
		return 0, None
	case p.VA == targetMessageVA:
		// One PSN, and no immediate data that would consume a receive: receivers
		// execute a WRITE of no bytes in its place.
		if p.Op != rocev2.WriteOnly || len(p.Targets) == 0 {
			return rocev2.SyndromeNAKInvalid, BadTargetMessage
		}
	default:
		end := p.VA + uint64(p.DMALen)
		for i := range g.acks {
			if g.acks[i].flags&(isReceiver|isConnected) != isReceiver|isConnected {
				continue
			}
			t := g.fwd.targets.find(i, p.PSN&rocev2.PSNMask)
			if !t.set || end < p.VA || t.va+end < t.va {
				return rocev2.SyndromeNAKAccess, WindowViolation
			}
		}
	}
	return 0, None
}

// noteTargets stores the targets that a target message at psn names. It returns false if
// there is no room, and then nothing has changed.
func (g *group) noteTargets(psn rocev2.PSN, records []Target) bool {
	u := g.fwd.targets.insert(psn)
	if u == nil {
		return false
	}
	for _, t := range records {
		if int(t.Member) < len(g.members) && g.members[t.Member].live {
			u.legs[g.members[t.Member].leg] = target{va: t.VA, rkey: t.RKey, set: true}
		}
	}
	// A WRITE may have been refused for want of this message, which was lost before the
	// switch the first time. The WRITE is checked again when it comes again.
	if g.is(refused) && psn.Less(g.refusal.psn) {
		g.setRefusal(refusal{})
	}
	return true
}
