// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/rocev2"

// rewriting says what of a packet is another for each member.
type rewriting uint8

const (
	asItIs   rewriting = iota
	byWindow           // a WRITE into the group's window (R27)
	byKey              // the R_Key of a SEND with invalidate (R27)
	byTarget           // a WRITE to where the last update message said (R41)
	emptied            // an update message itself: receivers get a WRITE of no bytes
)

// translation says what of p is another for each member. Copies to other
// switches are as they came.
func (g *group) translation(p *Packet, f rocev2.OpFlags) rewriting {
	switch {
	case f&rocev2.OpRETH != 0 && p.DMALen > 0:
		switch {
		case g.targets != nil && p.RKey == g.targetKey && p.VA == updateVA:
			return emptied
		case g.targets != nil && p.RKey == g.targetKey:
			return byTarget
		case g.windowed:
			return byWindow
		}
	case f&rocev2.OpIETH != 0 && g.windowed:
		return byKey
	}
	return asItIs
}

// translate makes c the member's own, where forward does not. It returns false if no update has said
// where that member's memory is: then the copy must not be sent.
func (g *group) translate(c *Copy, how rewriting, va uint64, psn rocev2.PSN) bool {
	switch how {
	case byWindow:
		l := &g.legs[c.Leg]
		c.Flags, c.VA, c.RKey = SetRETH, l.base+(va-g.window.Base), l.rkey
	case byKey:
		c.Flags, c.RKey = SetIETH, g.legs[c.Leg].rkey
	case byTarget:
		t := g.targets.find(int(c.Leg), psn)
		c.Flags, c.VA, c.RKey = SetRETH, t.va+va, t.rkey
		return t.set
	case emptied:
		c.Flags = Empty
	}
	return true
}

// IsUpdate reports whether p, a packet for group id, is an update message whose
// Targets the driver has to read from the payload before Input.
func (s *Switch) IsUpdate(id GroupID, p *Packet) bool {
	g := s.group(id)
	return g != nil && g.isUpdate(p)
}

func (g *group) isUpdate(p *Packet) bool {
	return g.targets != nil && p.VA == updateVA && p.RKey == g.targetKey && p.DMALen > 0 && p.Op.Is(rocev2.OpRETH)
}

// refuseTargeted is refuse for what carries the target key.
func (g *group) refuseTargeted(p *Packet) (rocev2.Syndrome, Reason) {
	switch {
	case p.DMALen == 0:
		return 0, None
	case p.VA == updateVA:
		// One PSN, and no immediate data that would consume a receive: receivers
		// execute a WRITE of no bytes in its place.
		if p.Op != rocev2.WriteOnly || len(p.Targets) == 0 {
			return rocev2.SyndromeNAKInvalid, BadUpdate
		}
	default:
		end := p.VA + uint64(p.DMALen)
		for i := range g.branches {
			if g.branches[i].bits&(receiving|rewrites) != receiving|rewrites {
				continue
			}
			t := g.targets.find(i, p.PSN&rocev2.PSNMask)
			if !t.set || end < p.VA || t.va+end < t.va {
				return rocev2.SyndromeNAKAccess, WindowViolation
			}
		}
	}
	return 0, None
}

// note keeps what an update message at psn says. It returns false if there is no
// room, and then nothing has changed.
func (g *group) note(psn rocev2.PSN, said []Target) bool {
	u := g.targets.begin(psn)
	if u == nil {
		return false
	}
	for _, t := range said {
		if int(t.Member) < len(g.members) && g.members[t.Member].live {
			u.legs[g.members[t.Member].leg] = target{va: t.VA, rkey: t.RKey, set: true}
		}
	}
	// A WRITE may have been refused for want of this very message, which was
	// lost before the switch the first time: it is looked at again.
	if g.refused.code != 0 && psn.Less(g.refused.psn) {
		g.refused = refusal{}
	}
	return true
}
