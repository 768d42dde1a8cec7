// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// The state machine of one leg's local repair. docs/RC.md §9.2 has the same table, and a
// diagram of it; una is the first PSN that the leg has not acknowledged.
//
// The invariants: nothing beyond the cursor goes to the leg, at most one probe is
// outstanding, and each state but InSync and Resending ends by a timer.

// recoveryState is what the store sends to a leg.
type recoveryState uint8

const (
	inSync    recoveryState = iota // the leg was sent everything below nxt, and gets new data as it comes
	resending                      // the leg gets retained frames from the cursor on, and new data behind them
	probing                        // cursor-1 went out with AckReq: nothing follows before an answer or the PTO
	settling                       // the receiver acknowledged exactly the probe, and may be slow: nothing follows before resumeAt
	waiting                        // an RNR timer runs, the port is full, or copies of the fast path are on their way: nothing follows before resumeAt
	numRecoveryStates
)

// holds reports whether nothing is sent before resumeAt.
func (s recoveryState) holds() bool { return s == settling || s == waiting }

func (s recoveryState) String() string {
	return [...]string{"InSync", "Resending", "Probing", "Settling", "Waiting"}[s]
}

// recoveryEvent is an event that local repair of a leg reacts to.
type recoveryEvent uint8

const (
	unaRetained       recoveryEvent = iota // the source repeats una, which is below the cursor and retained
	unaRetainedAtHole                      // the same, and the frame at the cursor is not retained
	unaMissing                             // the source repeats una, which is below the cursor and not retained
	unaMissingAtHole                       // the same, and the frame at the cursor is not retained
	sourceAtCursor                         // the source sends the PSN at the cursor, or una to an escalated leg, and the store will not
	ackBelowCursor                         // the receiver acknowledges new data, and not yet cursor-1
	ackAtCursor                            // the receiver acknowledges exactly cursor-1
	ackAtCursorAsked                       // the same, and the source's own packet with that PSN had AckReq
	ackPastCursor                          // the receiver acknowledges more
	nakServed                              // a sequence NAK that the store can serve
	nakOfCursor                            // the same, of the PSN at the cursor
	rnrServed                              // an RNR NAK that the store can serve
	nakNotServed                           // a NAK that the store cannot serve
	triesExhausted                         // a NAK or a PTO after RepairSpec.Tries without progress
	ptoExpired                             // the PTO passed, and una is retained
	ptoUnaMissing                          // the PTO passed, and una is not retained
	ptoUnaBehind                           // the same, and una is acknowledged to the source
	burstEnds                              // the packet at the cursor is the last one before a probe's answer
	portFull                               // the leg's port takes nothing from the store
	copyRefused                            // the leg's port has not taken a copy (Switch.Requeue)
	cursorAtNxt                            // everything was sent
	holeAtUna                              // the frame at the cursor, which is una, is not retained, and the source will not send it by itself
	holeBehind                             // the same, and una is acknowledged to the source
	resumed                                // resumeAt has passed
	stopped                                // the leg stops receiving: the turn ends, or the leg is removed
	numRecoveryEvents
)

func (e recoveryEvent) String() string {
	return [...]string{
		"una repeated, retained", "una repeated, retained, hole at the cursor",
		"una repeated, not retained", "una repeated, not retained, hole at the cursor", "cursor or una from the source",
		"ACK below cursor - 1", "ACK of cursor - 1", "ACK of cursor - 1, which had AckReq", "ACK beyond cursor - 1",
		"sequence NAK, served", "sequence NAK of the cursor, served", "RNR NAK, served", "NAK, not served", "tries exhausted",
		"PTO, una retained", "PTO, una not retained", "PTO, una not retained, behind",
		"end of a burst", "port full", "copy refused", "cursor at nxt", "hole at una", "hole at una, behind", "resumeAt passed", "stopped",
	}[e]
}

// recoveryAction is what the caller does after an event.
type recoveryAction uint8

const (
	nothing    recoveryAction = iota
	copyPacket                // the source's packet goes to the leg, and the cursor follows it
	probe                     // the source's packet goes to the leg with AckReq, and the cursor follows it
	probeAgain                // the source's packet goes to the leg with AckReq, and the cursor stays
	resend                    // frames go out from the PSN of the event on
	resendUna                 // frames go out from una on, without probes
	resendRest                // frames go out from una or firstUnsent on, the later one, without probes
	growBurst                 // frames go out from the cursor on, burstGrowth times as many up to the next probe
	settle                    // growBurst, at resumeAt, which is a quarter of RepairSpec.Timeout away
	hold                      // nothing goes out before resumeAt
	await                     // the packet at the cursor goes out with AckReq, and nothing follows
	tellSource                // the source gets a NAK of una, when it is the group's
	escalate                  // the leg is left to the source
	numRecoveryActions
)

func (a recoveryAction) String() string {
	return [...]string{
		"nothing", "copy", "probe", "probe again", "resend", "resend from una", "resend the rest", "grow the burst", "settle", "hold", "await the answer", "tell the source", "escalate",
	}[a]
}

// transition is the effect of an event in one state.
type transition struct {
	to recoveryState
	do recoveryAction
}

// recoveryTable has the transitions, by event and state: InSync, Resending, Probing,
// Settling, Waiting.
var recoveryTable = [numRecoveryEvents][numRecoveryStates]transition{
	unaRetained:       {{probing, probe}, {resending, nothing}, {probing, probeAgain}, {settling, probeAgain}, {waiting, nothing}},
	unaRetainedAtHole: {{probing, probe}, {resending, probeAgain}, {probing, probeAgain}, {settling, probeAgain}, {waiting, nothing}},
	unaMissing:        {{resending, copyPacket}, {resending, copyPacket}, {probing, probeAgain}, {settling, probeAgain}, {waiting, copyPacket}},
	unaMissingAtHole:  {{resending, copyPacket}, {resending, probeAgain}, {probing, probeAgain}, {settling, probeAgain}, {waiting, copyPacket}},
	sourceAtCursor:    {{resending, copyPacket}, {resending, copyPacket}, {resending, copyPacket}, {waiting, copyPacket}, {waiting, copyPacket}},
	ackBelowCursor:    {{inSync, nothing}, {resending, nothing}, {probing, nothing}, {settling, nothing}, {waiting, nothing}},
	ackAtCursor:       {{inSync, nothing}, {resending, resendUna}, {resending, growBurst}, {resending, growBurst}, {resending, resendUna}},
	ackAtCursorAsked:  {{inSync, nothing}, {resending, resendUna}, {settling, settle}, {settling, settle}, {resending, resendUna}},
	ackPastCursor:     {{inSync, nothing}, {resending, resendUna}, {resending, resendRest}, {resending, resendRest}, {resending, resendUna}},
	nakServed:         {{resending, resend}, {resending, resend}, {resending, resend}, {resending, resend}, {resending, resend}},
	nakOfCursor:       {{resending, resend}, {resending, resend}, {resending, resend}, {resending, resend}, {waiting, nothing}},
	rnrServed:         {{waiting, hold}, {waiting, hold}, {waiting, hold}, {waiting, hold}, {waiting, hold}},
	nakNotServed:      {{inSync, tellSource}, {resending, tellSource}, {probing, tellSource}, {settling, tellSource}, {waiting, tellSource}},
	triesExhausted:    {{inSync, escalate}, {resending, escalate}, {probing, escalate}, {settling, escalate}, {waiting, escalate}},
	ptoExpired:        {{resending, resend}, {resending, resend}, {resending, resend}, {settling, nothing}, {waiting, nothing}},
	ptoUnaMissing:     {{inSync, nothing}, {resending, nothing}, {resending, resend}, {settling, nothing}, {waiting, nothing}},
	ptoUnaBehind:      {{inSync, nothing}, {resending, resend}, {resending, resend}, {settling, nothing}, {waiting, nothing}},
	burstEnds:         {{inSync, nothing}, {probing, await}, {probing, nothing}, {settling, nothing}, {waiting, nothing}},
	portFull:          {{inSync, nothing}, {waiting, hold}, {probing, nothing}, {settling, nothing}, {waiting, nothing}},
	copyRefused:       {{waiting, hold}, {waiting, hold}, {waiting, hold}, {waiting, hold}, {waiting, hold}},
	cursorAtNxt:       {{inSync, nothing}, {inSync, nothing}, {inSync, nothing}, {inSync, nothing}, {inSync, nothing}},
	holeAtUna:         {{inSync, nothing}, {resending, tellSource}, {probing, nothing}, {settling, nothing}, {waiting, nothing}},
	holeBehind:        {{inSync, nothing}, {inSync, escalate}, {probing, nothing}, {settling, nothing}, {waiting, nothing}},
	resumed:           {{inSync, nothing}, {resending, nothing}, {probing, nothing}, {resending, resend}, {resending, resend}},
	stopped:           {{inSync, nothing}, {inSync, nothing}, {inSync, nothing}, {inSync, nothing}, {inSync, nothing}},
}

// deliver gives leg i an event, and returns what the caller has to do. It is the only
// function that changes the state of a leg's local repair and the recovering bit, which
// is a copy of it for the data path.
func (g *group) deliver(i int, e recoveryEvent) recoveryAction {
	b, m := &g.acks[i], &g.activity[i].recovery
	from, t := m.state, recoveryTable[e][m.state]
	m.state = t.to
	switch {
	case from == inSync && t.to != inSync:
		b.flags |= recovering
		g.repair.numRecovering++
		m.firstUnsent = g.fwd.nxt
		g.noteGate(m, true)
	case from != inSync && t.to == inSync:
		b.flags &^= recovering
		g.repair.numRecovering--
		m.probeEvery, m.untilProbe = 0, 0
		g.noteGate(m, false)
	}
	if !t.to.holds() {
		m.resumeAt = 0
	}
	if t.do == escalate {
		m.escalated = true
	}
	return t.do
}

// Requeue tells the switch that a copy of the last Output was not sent: the queue toward
// its leg is full, and will have room at until. If the frame is retained the leg recovers
// from that PSN on, and gets the copy when the queue has room: the store continues that
// queue (R51). The driver must not have sent, nor send, later copies of the same Output
// for the same leg. Requeue returns false if the copy is lost as on a link, to be
// repaired like any loss.
func (s *Switch) Requeue(c *Copy, until time.Duration) bool {
	g := s.group(c.Group)
	if g == nil || int(c.Leg) >= len(g.activity) {
		return false
	}
	g.counters.Copies--
	if g.repair.store == nil {
		return false
	}
	b, m := &g.acks[c.Leg], &g.activity[c.Leg].recovery
	psn := (c.PSN - rocev2.PSN(b.delta)) & rocev2.PSNMask
	if b.flags&isReceiver == 0 || psn.LessEq(b.acked) || !m.storeServes(b) || g.repair.store.find(psn) == nil {
		return false // acked asks, and repairs nothing: its timer asks again (R57)
	}
	if m.state == inSync || psn.Less(m.cursor) {
		m.cursor = psn
	}
	g.deliver(int(c.Leg), copyRefused)
	g.noteFault(int(c.Leg), PortFull)
	m.gateOpen, m.shutNow = false, false // the driver knows what has gone to the leg, and says when it goes on
	switch {
	case b.flags&isConnected == 0 && m.inBurst(psn):
		m.untilProbe = uint8(m.burstEnd.Sub(m.cursor))
	case psn.Less(m.firstUnsent):
		m.firstUnsent = psn
	}
	if m.probeEvery != 0 {
		m.untilProbe = 1 // the probe, if the copy was one, was not sent
	}
	g.resumeAfter(m, until)
	s.rearm(g)
	return true
}
