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
	noPend severity = iota
	sevSequence
	sevRNR
	sevFatal
)

// Bits of branch.bits.
const (
	receiving uint8 = 1 << iota // live, and not the source's leg: gets copies, is waited for
	rewrites                    // a connected leg
	fresh     uint8 = 1 << 5    // joined while earlier data was in flight: does not count for it (R36)
)

// branch is what the data path reads and writes of a leg: 12 bytes, so that 64
// legs are 12 cache lines. A pending NAK needs no PSN of its own: NAK(e)
// acknowledges e-1, and an acknowledgement of e ends it, so e is always a+1.
type branch struct {
	a     rocev2.PSN // acknowledged up to and including, in the source's space
	delta uint32     // added to a PSN toward a connected leg, modulo 2^24
	bits  uint8
	pend  severity
	info  rocev2.Syndrome // the syndrome that is pending
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
	past        int32 // how many PSNs before p it has had acknowledged; as group.past

	p    rocev2.PSN // next PSN of its send queue; current while it is not the source
	r    rocev2.PSN // next PSN its receive queue expects; current while it is not a receiver
	msgs rocev2.MSN // messages of its own that are acknowledged; as p
}

// history is what most members never need.
type history struct {
	quietTill time.Duration // nothing of it is served before (R68); as group.quietTill
	waits     time.Duration // since when it has waited for its turn; 0: it does not
	refused   bool          // it is registered to receive only and has asked to be the source, as an event has said
}

// extra is what most groups never need.
type extra struct {
	forwards []LegID   // the forwarded legs
	history  []history // by MemberID; shorter if there is nothing of the others
}

func (g *group) newExtra() *extra {
	if g.extra == nil {
		g.extra = new(extra)
	}
	return g.extra
}

func (g *group) forwards() []LegID {
	if g.extra == nil {
		return nil
	}
	return g.extra.forwards
}

// historyOf returns what there is of member k, to be looked at.
func (g *group) historyOf(k MemberID) history {
	if g.extra == nil || int(k) >= len(g.extra.history) {
		return history{}
	}
	return g.extra.history[k]
}

// newHistory returns what there is of member k, to be changed.
func (g *group) newHistory(k MemberID) *history {
	x := g.newExtra()
	if n := len(g.members); len(x.history) < n {
		x.history = append(x.history, make([]history, n-len(x.history))...)
	}
	return &x.history[k]
}

// refusal is what the switch itself answers to the source, as if it were one
// more receiver: a fatal NAK, never forwarded to anybody (R27, R28).
type refusal struct {
	psn    rocev2.PSN
	code   rocev2.Syndrome // 0: nothing refused
	reason Reason
}

const nobody = -1

// group is one group at this switch. What a packet touches comes first.
type group struct {
	ip     addrKey
	srcKey addrKey  // address of the source
	srcNbr Neighbor // and the switch it is behind, 0 if none
	src    int32    // MemberID, or nobody
	srcLeg int32
	qpn    rocev2.QPN
	a      rocev2.PSN // A: every receiving branch has acknowledged it
	hi     rocev2.PSN // highest PSN forwarded, plus 1
	prev   rocev2.PSN // PSN of the last data packet
	nout   rocev2.PSN // PSN of the last NAK sent, if nsev is not noPend

	prevAt   time.Duration // when prev came
	past     int32         // PSNs up to A that the source has had acknowledged since it was registered; pastWindow means as many or more
	asked    rocev2.PSN
	pmtu     uint16
	policy   Policy
	tries    uint8    // RepairSpec.Tries
	nsev     severity // the severity of the last NAK sent
	seen     bool     // PSN nout has passed since
	muted    bool     // the source is not acknowledged anything until quietTill: it sent a PSN below all that was seen of it
	hasPrev  bool
	open     bool // the message of hi-1 is not complete
	dead     bool
	becn     bool // to be set in the next ACK
	windowed bool
	told     bool // SourceRefused was emitted in this epoch

	armed   bool // deadline is set
	rewound bool // the source has retransmitted since the last look
	tending bool // tendAt is set
	timing  bool // a round trip is being measured: of packet timed

	low    int32 // receiving branches with a <= A; more than slack while A cannot move
	slack  int32 // receiving branches that need not be above A: none, but under Quorum
	nrecv  int32 // receiving branches
	nfresh int32 // of them, fresh ones
	npend  int32 // branches with a pending NAK
	njoin  int32 // legs that are joining
	nowin  int32 // receiving connected branches whose member has no window
	nlate  int32 // late branches

	branches []branch // by LegID; nil before the group's first data
	tracks   []track  // by LegID; nil unless the group is active
	legs     []leg    // by LegID
	members  []member // by MemberID
	byIP     memberIndex
	checks   []verification // by LegID; nil if nothing is verified
	msgs     messages
	sw       *Switch
	store    *store // nil without local repair
	window   Window
	targets  *targets      // nil unless there is a targetKey
	deadline time.Duration // next look at the silent ones
	tendAt   time.Duration // when repair has something to do
	count    tally

	id        GroupID
	targetKey uint32
	timed     rocev2.PSN
	timedAt   time.Duration // sent at this time
	timedIn   uint64        // when the switch had paused so often
	refused   refusal
	write     writing

	quorum  int32      // receivers that must have it; 0 means all
	keep    int32      // receivers that cannot be spared: more than there are under Strict
	lagPSNs int32      // 0: no limit
	least   rocev2.PSN // no receiver has less, if lagPSNs is set
	freshTo rocev2.PSN // the fresh ones are no longer when A has come here

	failPSN  rocev2.PSN // if dead
	failCode rocev2.Syndrome
	hasPass  bool  // CNP filter: passed is set
	best     int32 // the leg whose signals pass, or nobody
	bestSeen time.Duration
	passed   time.Duration // when the last CNP passed

	deadAfter     time.Duration // 0: never
	deadMost      time.Duration // if above deadAfter: that follows the round trips up to here
	stallTime     time.Duration // how long the source may send nothing while another member waits; 0: any time
	awaited       time.Duration // since when it has, and another one waits; 0: no
	lagTime       time.Duration // 0: never
	period        time.Duration // between two looks; 0: neither of these is set
	quietTill     time.Duration // if muted
	repairTimeout time.Duration // RepairSpec.Timeout
	numbers       numbering
	extra         *extra // nil: it is empty

	turnTime time.Duration // how long a turn is at least while others wait; 0: any time
	turn     turn

	generation uint64    // GroupSpec.Generation
	outcomes   *Outcomes // nil: none yet
}

// setPend replaces what b has pending.
func (g *group) setPend(b *branch, sev severity, info rocev2.Syndrome) {
	if b.pend != noPend {
		g.npend--
	}
	if sev != noPend {
		g.npend++
	}
	b.pend, b.info = sev, info
}

// advance notes that b acknowledged everything up to psn, if that is news.
func (g *group) advance(b *branch, psn rocev2.PSN) bool {
	if psn.LessEq(b.a) {
		return false
	}
	if b.a.LessEq(g.a) && g.a.Less(psn) && (b.bits&fresh == 0 || g.quorum == 0) {
		g.low--
	}
	b.a = psn
	g.setPend(b, noPend, 0)
	return true
}

// admit makes a leg receive from the message that begins at psn.
func (g *group) admit(i int, psn rocev2.PSN) {
	b, l, t := &g.branches[i], &g.legs[i], &g.tracks[i]
	g.setJoining(i, false)
	b.a = psn.Prev()
	b.delta = 0
	b.bits |= receiving
	if l.connected() {
		b.delta = uint32(g.members[l.member].r-psn) & rocev2.PSNMask
		if !l.windowed {
			g.nowin++
		}
	}
	if g.checks != nil {
		g.checks[i].before, _ = g.msgs.through(b.a)
	}
	g.receivers(g.nrecv + 1)
	switch {
	case b.a.LessEq(g.a):
		g.low++
	default:
		b.bits |= fresh
		g.nfresh++
		g.freshTo = b.a
		if g.quorum > 0 {
			g.low++ // not one of the quorum yet
		}
	}
	*t = track{
		watch: b.a, mark: b.a, unheard: g.sw.hearing.at(l.port).unheard, from: t.from, weight: t.weight, weighed: t.weighed,
		mend: mending{asked: b.a, again: b.a, watch: b.a, rtt: t.mend.rtt, rttVar: t.mend.rttVar},
	}
}

// cut takes a leg out of the group.
func (g *group) cut(i int) {
	g.setJoining(i, false)
	g.verified(LegID(i))
	g.retire(i)
}

// retire ends what a leg was as a receiver: removed, or the epoch is over.
func (g *group) retire(i int) {
	if g.branches == nil {
		return
	}
	b, l := &g.branches[i], &g.legs[i]
	if b.bits&receiving == 0 {
		return
	}
	if l.connected() {
		g.members[l.member].r = b.a.Add(1 + int32(b.delta))
		if !l.windowed {
			g.nowin--
		}
	}
	g.setPend(b, noPend, 0)
	g.setInLine(i)
	g.receivers(g.nrecv - 1)
	if b.a.LessEq(g.a) || b.bits&fresh != 0 && g.quorum > 0 {
		g.low--
	}
	if b.bits&fresh != 0 {
		g.nfresh--
	}
	b.bits &^= receiving | fresh
	if g.checks != nil {
		g.checks[i].fresh = false
	}
	g.tracks[i].weight = 0
	if g.best == int32(i) {
		g.best = nobody
	}
}

// settle makes the fresh receivers like the others: A has passed what was in
// flight when they joined.
func (g *group) settle() {
	for i := range g.branches {
		b := &g.branches[i]
		if b.bits&fresh == 0 {
			continue
		}
		b.bits &^= fresh
		if g.quorum > 0 && g.a.Less(b.a) {
			g.low--
		}
	}
	g.nfresh = 0
}

// spare says whether the group can go on without receiver i: enough others
// remain that have got, or will get, all that is in flight.
func (g *group) spare(i int) bool {
	n := g.nrecv - g.nfresh
	if g.branches[i].bits&fresh == 0 {
		n--
	}
	return n >= g.keep
}

// receivers sets how many branches receive.
func (g *group) receivers(n int32) {
	g.nrecv = n
	if g.quorum > 0 {
		g.slack = n - g.quorum
	}
}

// ack tells the source that everything up to A is everywhere. The syndrome is
// always 0x1F: the credits of several receivers cannot be merged safely (R20).
func (g *group) ack(out *Output) {
	g.send(out, rocev2.Acknowledge, rocev2.SyndromeACK, g.a)
	g.becn = false
}

func (g *group) nak(out *Output, code rocev2.Syndrome, psn rocev2.PSN) {
	g.send(out, rocev2.Acknowledge, code, psn)
	g.becn = false
}

func (g *group) send(out *Output, op rocev2.Opcode, syn rocev2.Syndrome, psn rocev2.PSN) {
	if g.muted && op == rocev2.Acknowledge {
		return
	}
	g.count.FeedbackOut++
	out.Feedback = append(out.Feedback, Feedback{
		Group: g.id, To: MemberID(g.src), Op: op, BECN: g.becn,
		PSN: psn, Syndrome: syn, MSN: g.msgs.done,
	})
}
