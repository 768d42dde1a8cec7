// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package mcast is the switch itself: the packets of one RC queue pair go out as copies
// to many receivers, and the receivers' feedback goes back as the one stream that the
// sender's RNIC expects.
//
// It is a pure state machine. It gets packets as values, not as bytes, has no clock
// (every call is given the time), starts no goroutines and has no package-level state.
// The same calls give the same output.
//
// The driver's contract:
//
//  1. A Switch belongs to one goroutine at a time.
//  2. Input takes one packet for a group address. If Output.NeedVerify is set,
//     nothing has happened: check the packet's ICRC, drop it if it is wrong,
//     else call Input again with Verified set.
//  3. Send what Output lists, in order: feedback before the next packet's feedback,
//     copies for a leg in the order of the list. An Output with capacity for a copy
//     per leg and MaxResends more, and two feedback packets, makes Input free of
//     allocations. A copy that the port of a leg does not take is given back with
//     Requeue, or is lost as on a link: a full port concerns the members behind it
//     alone. Output.PortRoom prevents copies of retained frames for a full port (R70).
//  4. Call Advance when the time of NextDeadline has come. now never goes
//     backward.
//  5. Tables of the driver by GroupID, LegID or MemberID change together with Apply.
//  6. A frame with Output.Retained stays unchanged until Output.Freed lists its handle.
//     Any call may list copies of it. The copies of a call are made before its Freed is
//     served.
//  7. Between switches the Src of every packet is the address of the source that the
//     packet belongs to: of data because forwarding does not change Src, of feedback
//     because its PSN is in that source's numbering.
//  8. A group with legs to other switches has sessions with them (R84): SetSession is
//     called for each neighbour of the group after PutGroup, after an operation that adds
//     a leg, and whenever the neighbours' session changes. Output.Reports are sent, with a
//     MAC, and those that come are given to InputReport when MAC, port and L2 source are
//     those of the neighbour.
//  9. Output.Orders, of a group with GroupSpec.FastPath, are carried out in order, when the
//     copies of the call have been sent (R97).
//
// The rules of aggregation are numbered in docs/AGGREGATION.md; comments name
// them as R1, R2 and so on.
package mcast

import (
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/mcast/token"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Switch is the groups of one switch. New makes one.
type Switch struct {
	limits      Limits
	byIP        groupIndex
	repair      budget
	ports       portTimes
	departures  departures
	groups      []*group // by GroupID; nil if free
	timers      timers
	pools       pools
	blank       legActivity // the activity of a leg of a group that is not active
	actives     actives
	sortScratch []int32      // for quorumAcked: one entry for each leg
	tokens      token.Output // of the token machine that was called last
}

// New returns a Switch without groups.
func New(l Limits) *Switch {
	if l.Groups <= 0 {
		l.Groups = 1024
	}
	if l.Members <= 0 {
		l.Members = 1024
	}
	if l.RepairBytes <= 0 {
		l.RepairBytes = 64 << 20
	}
	return &Switch{limits: l, repair: budget{limit: l.RepairBytes}}
}

func (o *Output) reset() {
	o.Copies, o.Feedback, o.Events = o.Copies[:0], o.Feedback[:0], o.Events[:0]
	o.Reports, o.Probes, o.Freed, o.Retained, o.resends = o.Reports[:0], o.Probes[:0], o.Freed[:0], false, 0
	o.Orders, o.Drop, o.NeedVerify, o.NeedRevoke = o.Orders[:0], None, false, false
}

// Lookup returns the group whose GroupIP is ip.
func (s *Switch) Lookup(ip netip.Addr) (GroupID, bool) {
	return s.lookup(rocev2.KeyOf(ip))
}

// Member returns the member of group id with address ip, live or not.
func (s *Switch) Member(id GroupID, ip netip.Addr) (MemberID, bool) {
	g := s.group(id)
	if g == nil {
		return 0, false
	}
	return g.memberAt(ip)
}

func (s *Switch) group(id GroupID) *group {
	if int(id) < len(s.groups) {
		return s.groups[id]
	}
	return nil
}

// Input serves one packet for a group address. It allocates nothing once out
// has room.
func (s *Switch) Input(now time.Duration, p *Packet, out *Output) {
	id, ok := s.Lookup(p.Group)
	if !ok {
		out.reset()
		out.Drop = UnknownGroup
		return
	}
	s.InputGroup(now, id, p, out)
}

// InputGroup is Input for a packet of group id, which Lookup has found.
func (s *Switch) InputGroup(now time.Duration, id GroupID, p *Packet, out *Output) {
	out.reset()
	g := s.groups[id]
	if g.activity == nil && g.src.member != none {
		g.activate(now)
	}
	r := g.input(now, p, out)
	if out.NeedVerify || out.NeedRevoke {
		return
	}
	if r != None {
		g.counters.rare().Drops[r]++
		out.Drop = r
	}
	if len(out.Events) != 0 {
		g.noteEvictions(now, out.Events)
		g.leaveTree(now, out.Events, out)
	}
	if g.is(wanted) {
		g.tree().rest(now, out)
	}
	if g.is(unplaced) || g.isUnconfirmed() {
		g.tree().pollForPositions(now, out)
	}
	if g.repair.path != notOffered {
		g.giveOrders(now, out)
	}
	s.rearm(g)
}

// input classifies p by opcode: data and feedback both have GroupIP as their destination
// (R22). It returns the reason why p was not served, or None.
func (g *group) input(now time.Duration, p *Packet, out *Output) Reason {
	f := p.Op.Flags()
	switch {
	case f&rocev2.OpKnown == 0:
		return UnknownOpcode
	case p.DestQP != g.qpn:
		return g.noteWrongQPN(p, out)
	case f&rocev2.OpRequest != 0:
		return g.handleRequest(now, p, f, out)
	case g.isAnswerToReply(p):
		return g.relayAnswer(p, out)
	case p.Op == rocev2.Acknowledge:
		return g.handleFeedback(now, p, out)
	case p.Op == rocev2.CNP:
		return g.handleCNP(now, p, out)
	}
	return ResponseToGroup
}

// Advance fires every deadline that has come, in the order of the groups' times and, at
// equal times, of their IDs.
func (s *Switch) Advance(now time.Duration, out *Output) {
	out.reset()
	for _, id := range s.timers.expire(now) {
		g := s.groups[id]
		events := len(out.Events)
		for k := range g.due {
			if g.due.armed(k) && g.due.at(k) <= now {
				onDeadline[k](g, now, out)
			}
		}
		if g.is(holding) {
			g.releaseHeld(now, out)
		}
		if t := g.tree(); t != nil {
			t.advance(now, out)
		}
		g.noteEvictions(now, out.Events[events:])
		g.leaveTree(now, out.Events[events:], out)
		if g.repair.path != notOffered {
			g.giveOrders(now, out)
		}
		s.rearm(g)
	}
}

// NextDeadline returns the time for the next call of Advance, which may be earlier than
// the next deadline, and false if no deadline is set.
func (s *Switch) NextDeadline() (time.Duration, bool) { return s.timers.first() }

// rearm arms the deadlines that g waits for.
func (s *Switch) rearm(g *group) {
	for k := range g.due {
		if g.due.armed(k) {
			s.timers.arm(g.id, g.due.at(k))
		}
	}
	if g.mayRelease() {
		s.timers.arm(g.id, g.repair.store.held.since)
	}
}
