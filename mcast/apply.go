// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Apply changes the groups. It may allocate. An operation that returns an error has
// changed nothing. RemoveMember may put feedback into out: the group's ACK no longer
// waits for that member. So may DeleteGroup: a source with data in flight gets a NAK.
func (s *Switch) Apply(now time.Duration, op Op, out *Output) error {
	out.reset()
	switch op := op.(type) {
	case PutGroup:
		return s.putGroup(now, &op.Spec, out)
	case DeleteGroup:
		return s.deleteGroup(now, op.Group, out)
	case AddMember:
		return s.updateMembers(now, UpdateMembers{Group: op.Group, Add: []AddMember{op}}, out)
	case RemoveMember:
		return s.updateMembers(now, UpdateMembers{Group: op.Group, Remove: []MemberID{op.Member}}, out)
	case UpdateMembers:
		return s.updateMembers(now, op, out)
	}
	return fmt.Errorf("mcast: unknown operation %T", op)
}

func (s *Switch) putGroup(now time.Duration, spec *GroupSpec, out *Output) error {
	if err := s.validate(spec); err != nil {
		return err
	}
	key := rocev2.KeyOf(spec.IP)
	if id, ok := s.lookup(key); ok && id != spec.ID {
		return fmt.Errorf("mcast: group %d: address %v belongs to group %d; delete that first", spec.ID, spec.IP, id)
	}
	if err := s.checkTakenBack(spec.ID); err != nil {
		return err
	}
	old := s.group(spec.ID)
	if old != nil {
		if old.ip != key {
			return fmt.Errorf("mcast: group %d: in use by %v; delete it first", spec.ID, old.ip.Addr())
		}
		old.clearStore(0, out)
		old.noteAllDepartures(now)
		old.deactivate()
	}
	for int(spec.ID) >= len(s.groups) {
		s.groups = append(s.groups, nil)
	}
	s.timers.grow(spec.ID)
	g := s.newGroup(spec)
	s.groups[spec.ID] = g
	if spec.Resume != nil {
		g.startResume(now, spec.Resume, spec.SilentFor)
	} else {
		for i := range g.legs {
			g.startVerification(now, LegID(i))
		}
	}
	if old == nil {
		s.index(g)
	}
	s.rearm(g)
	return nil
}

func (s *Switch) deleteGroup(now time.Duration, id GroupID, out *Output) error {
	g := s.group(id)
	if g == nil {
		return fmt.Errorf("mcast: group %d: does not exist", id)
	}
	if err := s.checkTakenBack(id); err != nil {
		return err
	}
	g.refuseUnfinished(out)
	g.clearStore(0, out)
	g.noteAllDepartures(now)
	g.deactivate()
	s.unindex(g)
	s.timers.stop(id)
	s.groups[id] = nil
	return nil
}

// refuseUnfinished answers the source of a group that ends with data in flight: nothing of
// it will be acknowledged (R88). A source behind another switch is answered there. A group
// that resumes has no source yet.
func (g *group) refuseUnfinished(out *Output) {
	if !g.is(failed) && g.src.member != none && g.src.neighbor == 0 && !g.isQuiescent() {
		g.sendNAK(out, rocev2.SyndromeNAKOpErr, g.agg.acked.Next())
	}
}

// newGroup makes a group of a validated spec.
func (s *Switch) newGroup(spec *GroupSpec) *group {
	g := &group{
		sw: s, id: spec.ID, ip: rocev2.KeyOf(spec.IP), qpn: spec.QPN, generation: spec.Generation,
		src:  source{member: none, leg: none},
		fwd:  forwarding{pmtu: uint16(spec.PathMTU), limit: unlimited, window: spec.Window, hasWindow: spec.Window != Window{}},
		turn: turn{next: none},
		cnp:  cnpFilter{leg: none},
		legs: make([]leg, 0, len(spec.Legs)), members: make([]member, 0, len(spec.Members)),
	}
	g.policy.kind, g.policy.stored = spec.Policy, spec.Stored
	g.setPolicy(spec)
	g.numbering.interval = spec.PSNProbe
	if r := &spec.Repair; r.Bytes > 0 {
		g.repair.timeout, g.repair.tries = r.Timeout, uint8(r.Tries)
		g.repair.store = &store{limit: r.Bytes, sw: s}
	}
	if spec.TargetKey != 0 {
		g.fwd.targetKey, g.fwd.targets = spec.TargetKey, newTargets(0)
	}
	g.setFastPath(spec.FastPath)
	g.agg.messages.spare = &s.pools.ends
	for _, l := range spec.Legs {
		g.addLeg(l)
	}
	for i := range spec.Members {
		g.addMember(&spec.Members[i])
	}
	g.setReplies(spec)
	if len(g.forwardedLegs()) > 0 {
		g.newTree(0, spec.Tree)
		g.forgetRemote(spec)
	}
	return g
}

func (g *group) addLeg(spec LegSpec) {
	if spec.Kind == Forwarded {
		x := g.newExtra()
		x.forwards, x.levels = append(x.forwards, LegID(len(g.legs))), append(x.levels, spec.Levels)
	}
	g.legs = append(g.legs, newLeg(spec))
	if g.numbering.interval > 0 {
		g.numbering.checks = append(g.numbering.checks, verification{})
	}
	g.addLegState()
	if g.fwd.targets != nil {
		g.fwd.targets.addLeg()
	}
}

func newMember(m *MemberSpec) member {
	return member{ip: rocev2.KeyOf(m.IP), qpn: m.QPN, leg: m.Leg, live: true, role: roleOf(m), sqPSN: m.SQPSN, ePSN: m.RQPSN}
}

func (g *group) addMember(m *MemberSpec) {
	id := MemberID(len(g.members))
	g.members = append(g.members, newMember(m))
	g.outcomes.resetMember(id)
	g.setNumber(id, m.Number)
	l := &g.legs[m.Leg]
	if l.members == 0 {
		l.member = id
	}
	l.members++
	if l.connected() {
		l.setWindow(m.Window)
	}
	g.index(id)
}

// sourceRemoved ends the turn of a source that was removed. With data in flight the ePSN
// of each receiver is unknown: a receiver may have more than it has acknowledged, and
// would take the next source's first packets for duplicates and acknowledge them unread.
// Such a group has failed.
func (g *group) sourceRemoved(m MemberID, out *Output) {
	if g.is(failed) {
		return
	}
	if g.agg.acked == g.fwd.nxt.Prev() && !g.fwd.midMessage {
		g.evictBehind(out) // without a quorum nobody is behind acked
	}
	if g.fwd.midMessage || g.is(unplaced) || !g.allCaughtUp() {
		g.fail(m, g.agg.acked.Next(), 0, SourceRemoved, out)
		g.src.member, g.src.leg = none, none
		return
	}
	g.endTurn(out)
	g.due.stop(livenessCheck)
	if g.policy.stored {
		g.reportPositions(out)
	}
}
