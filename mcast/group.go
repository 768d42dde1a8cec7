// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// severity orders the NAKs that a leg may have pending: a NAK of higher severity
// replaces one of lower severity at the same PSN (RC.md §6.2).
type severity uint8

const (
	sevNone severity = iota
	sevSequence
	sevRNR
	sevFatal
)

// Bits of ackState.flags.
const (
	isReceiver     uint8 = 1 << iota // a live leg, not the source's: it gets copies, and counts for acked
	isConnected                      // a connected leg
	joinedInFlight uint8 = 1 << 5    // joined while earlier data was in flight: not counted as a receiver of that data (R36)
)

// ackState is the part of a leg's state that the data path reads and writes: 12 bytes,
// so that 64 legs are 12 cache lines. A pending NAK needs no PSN of its own: NAK(e)
// acknowledges e-1, and an acknowledgement of e ends it, so e is always acked+1.
type ackState struct {
	acked           rocev2.PSN // the leg has acknowledged all up to here; in the source's space
	delta           uint32     // added to a PSN toward a connected leg, modulo 2^24
	flags           uint8
	pending         severity        // of the pending NAK; sevNone without one
	pendingSyndrome rocev2.Syndrome // of the pending NAK
}

// leg is the part of a leg's state that a group without data has too: 24 bytes.
type leg struct {
	base     uint64   // first address of the member's window, if windowed
	rkey     uint32   // of the member's window
	neighbor Neighbor // 0: the leg is connected
	port     Port
	member   MemberID // the first member behind it; the only one if connected
	members  uint16   // live members behind it
	windowed bool     // connected, and the member has a window
	joining  bool     // receives from the next message that begins
}

func newLeg(spec LegSpec) leg { return leg{neighbor: spec.Neighbor, port: spec.Port} }

func (l *leg) connected() bool { return l.neighbor == 0 }

func (l *leg) kind() LegKind {
	if l.connected() {
		return Connected
	}
	return Forwarded
}

// setWindow sets the window of the member behind a connected leg.
func (l *leg) setWindow(w Window) { l.base, l.rkey, l.windowed = w.Base, w.RKey, w != Window{} }

// member is a member's state between its turns.
type member struct {
	ip          addrKey
	qpn         rocev2.QPN
	leg         LegID
	live        bool
	receiveOnly bool  // as registered: never the source (R76)
	ackedCount  int32 // PSNs before sqPSN that were acknowledged to it; as group.ackedCount

	sqPSN    rocev2.PSN // next PSN of its send queue; current while it is not the source
	ePSN     rocev2.PSN // next PSN its receive queue expects; current while it is not a receiver
	messages rocev2.MSN // messages that it sent and that are acknowledged; current when sqPSN is
}

// memberHistory is the part of a member's state that most members never need.
type memberHistory struct {
	quarantinedUntil time.Duration // none of its packets is served before (R68); as group.quarantinedUntil
	waits            time.Duration // since when it has waited for its turn; 0: it does not wait
	refusalReported  bool          // an event has reported that the member, registered to receive only, sent data
}

// extra is the part of a group's state that most groups never need.
type extra struct {
	forwards []LegID         // the forwarded legs
	history  []memberHistory // by MemberID; members beyond its end have no history
}

func (g *group) newExtra() *extra {
	if g.extra == nil {
		g.extra = new(extra)
	}
	return g.extra
}

func (g *group) forwardedLegs() []LegID {
	if g.extra == nil {
		return nil
	}
	return g.extra.forwards
}

// historyOf returns the history of member k, for reading.
func (g *group) historyOf(k MemberID) memberHistory {
	if g.extra == nil || int(k) >= len(g.extra.history) {
		return memberHistory{}
	}
	return g.extra.history[k]
}

// newHistory returns the history of member k, for writing.
func (g *group) newHistory(k MemberID) *memberHistory {
	x := g.newExtra()
	if n := len(g.members); len(x.history) < n {
		x.history = append(x.history, make([]memberHistory, n-len(x.history))...)
	}
	return &x.history[k]
}

// refusal is a request of the source that is forwarded to nobody: the switch itself
// answers it by a fatal NAK, as if it were one more receiver (R27, R28).
type refusal struct {
	psn      rocev2.PSN
	syndrome rocev2.Syndrome // 0: nothing is refused
	reason   Reason
}

// none is the index of no member and of no leg.
const none = -1

// group is one group at this switch. The fields that a packet touches come first.
type group struct {
	ip             addrKey
	sourceAddr     addrKey  // address of the source
	sourceNeighbor Neighbor // the switch that the source is behind; 0: none
	source         int32    // MemberID, or none
	sourceLeg      int32
	qpn            rocev2.QPN
	acked          rocev2.PSN // all up to here is acknowledged, by every receiver or the quorum
	nxt            rocev2.PSN // the highest PSN forwarded, plus 1
	lastPSN        rocev2.PSN // PSN of the source's last packet
	nakPSN         rocev2.PSN // PSN of the last NAK to the source, if nakSeverity is not sevNone

	lastPSNAt         time.Duration // when that packet came
	ackedCount        int32         // PSNs up to acked that were acknowledged to the source since its registration; maxBehind: that many or more
	ackReqPSN         rocev2.PSN    // the highest PSN that the receivers were sent with AckReq
	pmtu              uint16
	policy            Policy
	tries             uint8    // RepairSpec.Tries
	nakSeverity       severity // severity of the last NAK to the source
	nakServed         bool     // the source has sent nakPSN since that NAK
	sourceQuarantined bool     // nothing is acknowledged to the source before quarantinedUntil: it sent a PSN below all that its registration has seen
	hasLastPSN        bool
	midMessage        bool // the message of nxt-1 is not complete
	failed            bool
	becnDue           bool // BECN is to be set in the next ACK
	hasWindow         bool
	refusalReported   bool // SourceRefused was emitted in this turn

	livenessArmed bool // livenessAt is set
	sourceRewound bool // the source has retransmitted since the last liveness check
	recoveryArmed bool // recoveryAt is set
	rttPending    bool // the round trip of rttPSN is being measured

	numAtAcked        int32 // receiving legs that are not above acked; more than allowedBehind while acked cannot move
	allowedBehind     int32 // receiving legs that acked does not wait for: 0, except under Quorum
	numReceivers      int32 // receiving legs
	numJoinedInFlight int32 // receiving legs that joined while earlier data was in flight
	numPending        int32 // legs with a pending NAK
	numJoining        int32 // joining legs
	numWithoutWindow  int32 // receiving connected legs whose member has no window
	numRecovering     int32 // recovering legs

	acks       []ackState    // by LegID; nil before the group's first data
	activity   []legActivity // by LegID; nil unless the group is active
	legs       []leg         // by LegID
	members    []member      // by MemberID
	byIP       memberIndex
	checks     []verification // by LegID; nil if nothing is verified
	messages   messages
	sw         *Switch
	store      *store // nil without local repair
	window     Window
	targets    *targets      // nil unless there is a targetKey
	livenessAt time.Duration // the next liveness check, if armed
	recoveryAt time.Duration // the next call of recoveryTimer, if armed
	counters   tally

	id           GroupID
	targetKey    uint32
	rttPSN       rocev2.PSN
	rttSentAt    time.Duration // when rttPSN was sent
	rttPauses    uint64        // the switch's count of pauses at that time
	refusal      refusal
	writeMessage writeMessage

	quorum        int32      // receivers that must have the acknowledged data; 0: all
	minReceivers  int32      // receivers that must remain after an eviction; under Strict more than there are
	lagPSNs       int32      // lag limit in PSNs; 0: none
	lagFloor      rocev2.PSN // no receiver's acked is below, if lagPSNs is set
	inFlightUntil rocev2.PSN // joinedInFlight ends when acked has come here

	failPSN      rocev2.PSN // if failed
	failSyndrome rocev2.Syndrome
	cnpPassed    bool          // CNP filter: cnpPassedAt is set
	cnpLeg       int32         // CNP filter: the leg whose signals pass, or none
	cnpLegAt     time.Duration // the last signal of cnpLeg
	cnpPassedAt  time.Duration // when the last CNP passed

	deadAfter        time.Duration // 0: never
	deadAfterMax     time.Duration // if above deadAfter: the timeout follows the round trips, up to this
	sourceTimeout    time.Duration // how long the source may send nothing while another member waits; 0: any time
	waitedSince      time.Duration // since when the source has sent nothing while another member waits; 0: no member waits
	lagTime          time.Duration // lag limit in time; 0: none
	livenessPeriod   time.Duration // between two liveness checks; 0: neither deadAfter nor lagTime is set
	quarantinedUntil time.Duration // if sourceQuarantined
	repairTimeout    time.Duration // RepairSpec.Timeout
	numbering        numbering
	extra            *extra // nil: it is empty

	turnTime time.Duration // the least time that a turn lasts while other members wait; 0: any time
	turn     turn

	generation uint64    // GroupSpec.Generation
	outcomes   *Outcomes // nil: none yet
}

// setPending replaces the pending NAK of b.
func (g *group) setPending(b *ackState, sev severity, info rocev2.Syndrome) {
	if b.pending != sevNone {
		g.numPending--
	}
	if sev != sevNone {
		g.numPending++
	}
	b.pending, b.pendingSyndrome = sev, info
}

// noteAcked records that b acknowledged everything up to psn. It reports whether that
// is news.
func (g *group) noteAcked(b *ackState, psn rocev2.PSN) bool {
	if psn.LessEq(b.acked) {
		return false
	}
	if b.acked.LessEq(g.acked) && g.acked.Less(psn) && (b.flags&joinedInFlight == 0 || g.quorum == 0) {
		g.numAtAcked--
	}
	b.acked = psn
	g.setPending(b, sevNone, 0)
	return true
}

// startReceiving makes leg i receive from the message that begins at psn.
func (g *group) startReceiving(i int, psn rocev2.PSN) {
	b, l, t := &g.acks[i], &g.legs[i], &g.activity[i]
	g.setJoining(i, false)
	b.acked = psn.Prev()
	b.delta = 0
	b.flags |= isReceiver
	if l.connected() {
		b.delta = uint32(g.members[l.member].ePSN-psn) & rocev2.PSNMask
		if !l.windowed {
			g.numWithoutWindow++
		}
	}
	if g.checks != nil {
		g.checks[i].messagesBefore, _ = g.messages.completedBy(b.acked)
	}
	g.setReceivers(g.numReceivers + 1)
	switch {
	case b.acked.LessEq(g.acked):
		g.numAtAcked++
	default:
		b.flags |= joinedInFlight
		g.numJoinedInFlight++
		g.inFlightUntil = b.acked
		if g.quorum > 0 {
			g.numAtAcked++ // not counted in the quorum yet
		}
	}
	*t = legActivity{
		livenessPSN: b.acked, lagPSN: b.acked, pausesApplied: g.sw.ports.port(l.port).paused, probeNotBefore: t.probeNotBefore, cnpWeight: t.cnpWeight, cnpWeightAt: t.cnpWeightAt,
		recovery: recovery{ackReqPSN: b.acked, resentPSN: b.acked, expectedACK: b.acked, rtt: t.recovery.rtt, rttVar: t.recovery.rttVar},
	}
}

// removeLeg takes leg i out of the group.
func (g *group) removeLeg(i int) {
	g.setJoining(i, false)
	g.endVerification(LegID(i))
	g.stopReceiving(i)
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
		g.members[l.member].ePSN = b.acked.Add(1 + int32(b.delta))
		if !l.windowed {
			g.numWithoutWindow--
		}
	}
	g.setPending(b, sevNone, 0)
	g.endRecovery(i)
	g.setReceivers(g.numReceivers - 1)
	if b.acked.LessEq(g.acked) || b.flags&joinedInFlight != 0 && g.quorum > 0 {
		g.numAtAcked--
	}
	if b.flags&joinedInFlight != 0 {
		g.numJoinedInFlight--
	}
	b.flags &^= isReceiver | joinedInFlight
	if g.checks != nil {
		g.checks[i].acceptedNothing = false
	}
	g.activity[i].cnpWeight = 0
	if g.cnpLeg == int32(i) {
		g.cnpLeg = none
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
		if g.quorum > 0 && g.acked.Less(b.acked) {
			g.numAtAcked--
		}
	}
	g.numJoinedInFlight = 0
}

// canEvict reports whether the group can go on without receiver i: enough others
// remain that have got, or will get, all that is in flight.
func (g *group) canEvict(i int) bool {
	n := g.numReceivers - g.numJoinedInFlight
	if g.acks[i].flags&joinedInFlight == 0 {
		n--
	}
	return n >= g.minReceivers
}

// setReceivers sets the number of receiving legs.
func (g *group) setReceivers(n int32) {
	g.numReceivers = n
	if g.quorum > 0 {
		g.allowedBehind = n - g.quorum
	}
}

// sendACK sends the source an ACK of acked. The syndrome is always 0x1F: the credits of
// several receivers cannot be merged safely (R20).
func (g *group) sendACK(out *Output) {
	g.sendFeedback(out, rocev2.Acknowledge, rocev2.SyndromeACK, g.acked)
	g.becnDue = false
}

func (g *group) sendNAK(out *Output, code rocev2.Syndrome, psn rocev2.PSN) {
	g.sendFeedback(out, rocev2.Acknowledge, code, psn)
	g.becnDue = false
}

func (g *group) sendFeedback(out *Output, op rocev2.Opcode, syn rocev2.Syndrome, psn rocev2.PSN) {
	if g.sourceQuarantined && op == rocev2.Acknowledge {
		return
	}
	g.counters.FeedbackOut++
	out.Feedback = append(out.Feedback, Feedback{
		Group: g.id, To: MemberID(g.source), Op: op, BECN: g.becnDue,
		PSN: psn, Syndrome: syn, MSN: g.messages.completed,
	})
}
