// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"github.com/gleam-rdma/gleam/rocev2"
)

// receivers counts the legs that get copies (isReceiver), and those that wait to. It is
// the sum of the legs' flags.
type receivers struct {
	count          int32      `state:"encoded"`                         // receiving legs
	joining        int32      `state:"encoded"`                         // legs that receive from the next message on
	joinedInFlight int32      `state:"encoded"`                         // receiving legs that joined while earlier data was in flight (R36)
	inFlightUntil  rocev2.PSN `state:"encoded if x.joinedInFlight > 0"` // joinedInFlight ends when acked has come here
}

// startReceiving makes leg i receive from the message that begins at psn.
func (g *group) startReceiving(i int, psn rocev2.PSN) {
	b, l, t := &g.acks[i], &g.legs[i], &g.activity[i]
	g.setJoining(i, false)
	b.acked = psn.Prev()
	b.flags |= isReceiver
	if l.connected() {
		b.delta = uint32(g.members[l.member].ePSN-psn) & rocev2.PSNMask
		if !l.windowed {
			g.fwd.numWithoutWindow++
		}
	}
	if g.numbering.checks != nil {
		g.numbering.checks[i].messagesBefore, _ = g.agg.messages.completedBy(b.acked)
	}
	g.setReceivers(g.recv.count + 1)
	switch {
	case b.acked.LessEq(g.agg.acked):
		g.agg.numAtAcked++
	default:
		b.flags |= joinedInFlight
		g.recv.joinedInFlight++
		g.recv.inFlightUntil = b.acked
		if g.policy.quorum != 0 {
			g.agg.numAtAcked++ // not counted in the quorum yet
		}
	}
	*t = legActivity{
		livenessPSN: b.acked, lagPSN: b.acked, pausesApplied: g.sw.ports.port(l.port).paused, probedFrom: t.probedFrom, cnpWeight: t.cnpWeight, cnpWeightAt: t.cnpWeightAt,
		recovery: recovery{ackReqPSN: b.acked, resentPSN: b.acked, expectedACK: b.acked, rtt: t.recovery.rtt, rttVar: t.recovery.rttVar},
	}
}

// removeLeg takes leg i out of the group.
func (g *group) removeLeg(i int) {
	g.setJoining(i, false)
	g.setUnplaced(i, false)
	g.endVerification(LegID(i))
	g.stopReceiving(i)
	if g.cost != nil {
		g.cost.legs[i] = legCost{}
	}
}

// stopReceiving ends the state of leg i as a receiver: the leg is removed, or the turn
// is over.
func (g *group) stopReceiving(i int) {
	if g.acks == nil {
		return
	}
	b, l := &g.acks[i], &g.legs[i]
	if b.flags&isReceiver == 0 {
		return
	}
	if l.connected() {
		was := g.members[l.member].ePSN
		g.members[l.member].ePSN = b.acked.Add(1 + int32(b.delta))
		if g.numbering.checks != nil && g.members[l.member].ePSN != was {
			g.numbering.checks[i].acceptedNothing = false
		}
		if !l.windowed {
			g.fwd.numWithoutWindow--
		}
	}
	g.setPending(b, sevNone, 0)
	g.deliver(i, stopped)
	g.setReceivers(g.recv.count - 1)
	g.noteGate(&g.activity[i].recovery, false)
	if b.acked.LessEq(g.agg.acked) || b.flags&joinedInFlight != 0 && g.policy.quorum != 0 {
		g.agg.numAtAcked--
	}
	if b.flags&joinedInFlight != 0 {
		g.recv.joinedInFlight--
	}
	b.flags &^= isReceiver | joinedInFlight
	g.activity[i].cnpWeight = 0
	if g.cnp.leg == int32(i) {
		g.cnp.leg = none
	}
}

// promoteJoined ends joinedInFlight of every receiver: acked has passed the data that
// was in flight when they joined.
func (g *group) promoteJoined() {
	for i := range g.acks {
		b := &g.acks[i]
		if b.flags&joinedInFlight == 0 {
			continue
		}
		b.flags &^= joinedInFlight
		if g.policy.quorum != 0 && g.agg.acked.Less(b.acked) {
			g.agg.numAtAcked--
		}
	}
	g.recv.joinedInFlight = 0
}

// setReceivers sets the number of receiving legs.
func (g *group) setReceivers(n int32) {
	g.recv.count = n
	g.set(noReceivers, n == 0)
	if g.policy.quorum != 0 {
		g.agg.allowedBehind = n - g.policy.quorum
		g.set(tooFew, g.agg.allowedBehind < 0)
	}
}

// setJoining sets whether leg i waits for a message to begin.
func (g *group) setJoining(i int, yes bool) {
	if l := &g.legs[i]; l.joining != yes {
		l.joining = yes
		if yes {
			g.recv.joining++
		} else {
			g.recv.joining--
		}
		g.set(joiners, g.recv.joining != 0)
	}
}

// admitJoining makes the joining legs receive from the message that begins at psn.
func (g *group) admitJoining(psn rocev2.PSN) {
	for i := range g.legs {
		if g.legs[i].joining && !g.unproven(i) {
			g.startReceiving(i, psn)
		}
	}
}
