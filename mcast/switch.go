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

// Switch is the groups of one switch. New makes one.
type Switch struct {
	limits      Limits       `state:"constant"`
	byIP        groupIndex   `state:"constant"`
	repair      budget       `state:"derived"`
	ports       portTimes    `state:"constant"`
	departures  departures   `state:"own(groups)"`
	groups      []*group     `state:"own(groups)"` // the groups, by GroupID; nil if free
	timers      timers       `state:"own(groups)"`
	pools       pools        `state:"ignored"`
	blank       legActivity  `state:"constant"` // the activity of a leg of a group that is not active
	actives     actives      `state:"ignored"`
	sortScratch []int32      `state:"ignored"` // scratch memory of quorumAcked: one entry for each leg
	tokens      token.Output `state:"ignored"` // output of the token machine that was called last
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

// Member returns the member with address ip, live or not.
func (v Group) Member(ip netip.Addr) (MemberID, bool) {
	g := v.g
	if g == nil {
		return 0, false
	}
	return g.memberAt(ip)
}

// Group is one of a switch's groups, for those who read it: no method but Explain and ExplainACK, which
// are for a Clone, changes it. The methods of a group that does not exist return zero values.
type Group struct {
	id GroupID
	g  *group
}

// Group returns the group with that number.
func (s *Switch) Group(id GroupID) Group { return Group{id, s.group(id)} }

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
		g.noteEvictions(now, out.Events, out)
	}
	if g.is(wanted) {
		g.tree().rest(now, out)
	}
	if (g.is(unplaced) || g.isUnconfirmed()) && g.tree() != nil {
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
		g.noteEvictions(now, out.Events[events:], out)
		if g.repair.path != notOffered {
			g.giveOrders(now, out)
		}
		g.restUntilData()
		s.rearm(g)
	}
}

// NextDeadline returns the time for the next call of Advance, which may be earlier than
// the next deadline, and false if no deadline is set.
func (s *Switch) NextDeadline() (time.Duration, bool) { return s.timers.first() }

// rearm arms the deadlines that g waits for.
func (s *Switch) rearm(g *group) {
	if at, ok := g.due.earliest(); ok {
		s.timers.arm(g.id, at)
	}
	if g.mayRelease() {
		s.timers.arm(g.id, g.repair.store.held.since)
	}
}

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

// refuseUnfinished answers the source of a group that ends with data in flight, and members that were told to wait:
// nothing of it will be acknowledged (R88). Those behind another switch are answered there. A group
// that resumes has no source yet.
func (g *group) refuseUnfinished(out *Output) {
	if !g.is(failed) && g.src.member != none && g.src.neighbor == 0 && (!g.isQuiescent() || g.is(messageRefused|blocking)) {
		g.sendNAK(out, rocev2.SyndromeNAKOpErr, g.agg.acked.Next())
	}
	for i := range g.members {
		m, k := &g.members[i], MemberID(i)
		if g.historyOf(k).waits != 0 && m.live && int32(i) != g.src.member && g.legs[m.leg].connected() {
			g.nakFirstPacket(k, rocev2.SyndromeNAKOpErr, out)
		}
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
	g.numbering.interval, g.repair.ackMask = spec.PSNProbe, ackMask(spec.AckEvery)
	if r := &spec.Repair; r.Bytes > 0 {
		g.repair.timeout, g.repair.tries = r.Timeout, uint8(r.Tries)
		g.repair.store = &store{limit: r.Bytes, sw: s}
	}
	if spec.TargetKey != 0 {
		g.fwd.targetKey, g.fwd.targets = spec.TargetKey, newTargets(0)
	}
	g.setFastPath(spec.FastPath)
	g.agg.messages.spare = &s.pools.ends
	if g.numbering.interval > 0 {
		g.numbering.checks = make([]verification, 0, len(spec.Legs))
	}
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

// Prefetch reads what a packet of a group touches first, for drivers that know the groups of the next
// packets: reads for several packets overlap, while those of Input wait for each other. The sum has no
// meaning; it keeps the reads.
func (v Group) Prefetch() uint64 {
	g := v.g
	if g == nil {
		return 0
	}
	// A field in each line of the group that a packet reads.
	return uint64(g.src.member) + uint64(g.agg.acked) + uint64(g.fwd.nxt) + uint64(g.recv.count) + uint64(len(g.acks)) + g.counters.DataIn +
		uint64(g.rtt.psn) + uint64(len(g.activity)) + uint64(len(g.byIP.slots)) + uint64(g.turn.silentSince) + uint64(g.due[probeRound])
}

// PrefetchParts is Prefetch of what a group refers to, for when the group itself has been read: no read
// waits for another one of the same packet. feedback is of packets that have one leg to find, by address.
func (v Group) PrefetchParts(feedback bool) (sum uint64) {
	g := v.g
	if g == nil {
		return 0
	}
	if len(g.acks) > 0 {
		sum += uint64(g.acks[0].acked)
	}
	if feedback {
		if len(g.activity) > 0 {
			sum += uint64(g.activity[0].recovery.expectedSince)
		}
		if len(g.byIP.slots) > 0 {
			sum += uint64(g.byIP.slots[0]) + uint64(g.members[0].leg)
		}
	}
	if t := g.repair.store; t != nil {
		sum += uint64(t.bytes) + uint64(t.held.bytes)
		if len(t.ring) > 0 {
			sum += uint64(t.at(g.fwd.nxt).bytes)
		}
	}
	return sum
}
