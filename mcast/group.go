// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// severity orders what a branch may have pending: a NAK of a higher one
// replaces a lower one at the same PSN (RC.md §6.2).
type severity uint8

const (
	sevNone severity = iota
	sevSequence
	sevRNR
	sevFatal
)

// Bits of branch.bits.
const (
	isReceiver     uint8 = 1 << iota // live, and not the source's leg: gets copies, is waited for
	isConnected                      // a connected leg
	joinedInFlight uint8 = 1 << 5    // joined while earlier data was in flight: does not count for it (R36)
)

// ackState is what the data path reads and writes of a leg: 12 bytes, so that 64
// legs are 12 cache lines. A pending NAK needs no PSN of its own: NAK(e)
// acknowledges e-1, and an acknowledgement of e ends it, so e is always a+1.
type ackState struct {
	acked           rocev2.PSN // acknowledged up to and including, in the source's space
	delta           uint32     // added to a PSN toward a connected leg, modulo 2^24
	flags           uint8
	pending         severity
	pendingSyndrome rocev2.Syndrome // the syndrome that is pending
}

// leg is the rest of a leg's state that is there without data: 24 bytes.
type leg struct {
	base     uint64   // of the member's window, if windowed
	rkey     uint32   // of the member's window
	neighbor Neighbor // 0: the leg is connected
	port     Port
	member   MemberID // the first member behind it; the only one if connected
	members  uint16   // live members behind it
	windowed bool     // the member, if connected, has a window
	joining  bool     // waits for the next message to begin
}

func newLeg(spec LegSpec) leg { return leg{neighbor: spec.Neighbor, port: spec.Port} }

func (l *leg) connected() bool { return l.neighbor == 0 }

func (l *leg) kind() LegKind {
	if l.connected() {
		return Connected
	}
	return Forwarded
}

// setWindow notes where the member behind a connected leg has its memory.
func (l *leg) setWindow(w Window) { l.base, l.rkey, l.windowed = w.Base, w.RKey, w != Window{} }

// member is a member's state between the epochs.
type member struct {
	ip          addrKey
	qpn         rocev2.QPN
	leg         LegID
	live        bool
	receiveOnly bool  // as registered: never the source (R76)
	ackedCount  int32 // how many PSNs before p it has had acknowledged; as group.past

	sqPSN    rocev2.PSN // next PSN of its send queue; current while it is not the source
	ePSN     rocev2.PSN // next PSN its receive queue expects; current while it is not a receiver
	messages rocev2.MSN // messages of its own that are acknowledged; as p
}

// memberHistory is what most members never need.
type memberHistory struct {
	quarantinedUntil time.Duration // nothing of it is served before (R68); as group.quarantinedUntil
	waits            time.Duration // since when it has waited for its turn; 0: it does not
	refusalReported  bool          // it is registered to receive only and has asked to be the source, as an event has said
}

// extra is what most groups never need.
type extra struct {
	forwards []LegID         // the forwarded legs
	history  []memberHistory // by MemberID; shorter if there is nothing of the others
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

// historyOf returns what there is of member k, to be looked at.
func (g *group) historyOf(k MemberID) memberHistory {
	if g.extra == nil || int(k) >= len(g.extra.history) {
		return memberHistory{}
	}
	return g.extra.history[k]
}

// newHistory returns what there is of member k, to be changed.
func (g *group) newHistory(k MemberID) *memberHistory {
	x := g.newExtra()
	if n := len(g.members); len(x.history) < n {
		x.history = append(x.history, make([]memberHistory, n-len(x.history))...)
	}
	return &x.history[k]
}

// refusal is what the switch itself answers to the source, as if it were one
// more receiver: a fatal NAK, never forwarded to anybody (R27, R28).
type refusal struct {
	psn      rocev2.PSN
	syndrome rocev2.Syndrome // 0: nothing refused
	reason   Reason
}

const none = -1

// group is one group at this switch. What a packet touches comes first.
type group struct {
	ip             addrKey
	sourceAddr     addrKey  // address of the source
	sourceNeighbor Neighbor // and the switch it is behind, 0 if none
	source         int32    // MemberID, or nobody
	sourceLeg      int32
	qpn            rocev2.QPN
	acked          rocev2.PSN // A: every receiving branch has acknowledged it
	nxt            rocev2.PSN // highest PSN forwarded, plus 1
	lastPSN        rocev2.PSN // PSN of the last data packet
	nakPSN         rocev2.PSN // PSN of the last NAK sent, if nsev is not sevNone

	lastPSNAt         time.Duration // when prev came
	ackedCount        int32         // PSNs up to A that the source has had acknowledged since it was registered; maxBehind means as many or more
	ackReqPSN         rocev2.PSN
	pmtu              uint16
	policy            Policy
	tries             uint8    // RepairSpec.Tries
	nakSeverity       severity // the severity of the last NAK sent
	nakServed         bool     // PSN nout has passed since
	sourceQuarantined bool     // the source is not acknowledged anything until quarantinedUntil: it sent a PSN below all that was seen of it
	hasLastPSN        bool
	midMessage        bool // the message of hi-1 is not complete
	failed            bool
	becnDue           bool // to be set in the next ACK
	hasWindow         bool
	refusalReported   bool // SourceRefused was emitted in this epoch

	livenessArmed bool // deadline is set
	sourceRewound bool // the source has retransmitted since the last look
	recoveryArmed bool // recoveryAt is set
	rttPending    bool // a round trip is being measured: of packet timed

	numAtAcked        int32 // receiving branches with a <= A; more than slack while A cannot move
	allowedBehind     int32 // receiving branches that need not be above A: none, but under Quorum
	numReceivers      int32 // receiving branches
	numJoinedInFlight int32 // of them, fresh ones
	numPending        int32 // branches with a pending NAK
	numJoining        int32 // legs that are joining
	numWithoutWindow  int32 // receiving connected branches whose member has no window
	numRecovering     int32 // late branches

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
	livenessAt time.Duration // next look at the silent ones
	recoveryAt time.Duration // when repair has something to do
	counters   tally

	id           GroupID
	targetKey    uint32
	rttPSN       rocev2.PSN
	rttSentAt    time.Duration // sent at this time
	rttPauses    uint64        // when the switch had paused so often
	refusal      refusal
	writeMessage writeMessage

	quorum        int32      // receivers that must have it; 0 means all
	minReceivers  int32      // receivers that cannot be spared: more than there are under Strict
	lagPSNs       int32      // 0: no limit
	lagFloor      rocev2.PSN // no receiver has less, if lagPSNs is set
	inFlightUntil rocev2.PSN // the fresh ones are no longer when A has come here

	failPSN      rocev2.PSN // if dead
	failSyndrome rocev2.Syndrome
	cnpPassed    bool  // CNP filter: passed is set
	cnpLeg       int32 // the leg whose signals pass, or nobody
	cnpLegAt     time.Duration
	cnpPassedAt  time.Duration // when the last CNP passed

	deadAfter        time.Duration // 0: never
	deadAfterMax     time.Duration // if above deadAfter: that follows the round trips up to here
	sourceTimeout    time.Duration // how long the source may send nothing while another member waits; 0: any time
	waitedSince      time.Duration // since when it has, and another one waits; 0: no
	lagTime          time.Duration // 0: never
	livenessPeriod   time.Duration // between two looks; 0: neither of these is set
	quarantinedUntil time.Duration // if muted
	repairTimeout    time.Duration // RepairSpec.Timeout
	numbering        numbering
	extra            *extra // nil: it is empty

	turnTime time.Duration // how long a turn is at least while others wait; 0: any time
	turn     turn

	generation uint64    // GroupSpec.Generation
	outcomes   *Outcomes // nil: none yet
}

// setPending replaces what b has pending.
func (g *group) setPending(b *ackState, sev severity, info rocev2.Syndrome) {
	if b.pending != sevNone {
		g.numPending--
	}
	if sev != sevNone {
		g.numPending++
	}
	b.pending, b.pendingSyndrome = sev, info
}

// noteAcked notes that b acknowledged everything up to psn, if that is news.
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

// startReceiving makes a leg receive from the message that begins at psn.
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
			g.numAtAcked++ // not one of the quorum yet
		}
	}
	*t = legActivity{
		livenessPSN: b.acked, lagPSN: b.acked, pausesApplied: g.sw.ports.port(l.port).paused, probeNotBefore: t.probeNotBefore, cnpWeight: t.cnpWeight, cnpWeightAt: t.cnpWeightAt,
		recovery: recovery{ackReqPSN: b.acked, resentPSN: b.acked, expectedACK: b.acked, rtt: t.recovery.rtt, rttVar: t.recovery.rttVar},
	}
}

// removeLeg takes a leg out of the group.
func (g *group) removeLeg(i int) {
	g.setJoining(i, false)
	g.endVerification(LegID(i))
	g.stopReceiving(i)
}

// stopReceiving ends what a leg was as a receiver: removed, or the epoch is over.
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

// promoteJoined makes the fresh receivers like the others: A has passed what was in
// flight when they joined.
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

// canEvict says whether the group can go on without receiver i: enough others
// remain that have got, or will get, all that is in flight.
func (g *group) canEvict(i int) bool {
	n := g.numReceivers - g.numJoinedInFlight
	if g.acks[i].flags&joinedInFlight == 0 {
		n--
	}
	return n >= g.minReceivers
}

// setReceivers sets how many branches receive.
func (g *group) setReceivers(n int32) {
	g.numReceivers = n
	if g.quorum > 0 {
		g.allowedBehind = n - g.quorum
	}
}

// sendACK tells the source that everything up to A is everywhere. The syndrome is
// always 0x1F: the credits of several receivers cannot be merged safely (R20).
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
