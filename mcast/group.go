// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"net/netip"
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

// leg is the rest of a leg's state.
type leg struct {
	spec    LegSpec
	window  Window   // of the member, if connected
	member  MemberID // the first member behind it; the only one if connected
	members int      // live members behind it
	joining bool     // waits for the next message to begin

	weight  uint32        // CNP filter: congestion signals, decayed, in 1/256
	weighed time.Duration // when weight was last brought up to date

	unheard time.Duration // of its port, that the times below, and mend.owed, know of
	heard   time.Duration // last feedback, if it can be evicted for silence
	watch   rocev2.PSN    // the PSN it has to acknowledge ...
	watched time.Duration // ... counted from here
	mark    rocev2.PSN    // what the first receiver had ...
	marked  time.Duration // ... at this time, if LagTime is set

	repeated bool       // under Quorum: since it last asked for something, these went to it again:
	from, to rocev2.PSN // from the first to the last

	mend   mending
	verify verification
}

// member is a member's state between the epochs.
type member struct {
	ip          netip.Addr
	qpn         rocev2.QPN
	leg         LegID
	live        bool
	receiveOnly bool  // as registered: never the source (R76) ...
	refused     bool  // ... which it has asked to be, as an event has said
	past        int32 // how many PSNs before p it has had acknowledged; as group.past

	quietTill time.Duration // nothing of it is served before (R68); as group.quietTill
	waits     time.Duration // since when it has waited for its turn; 0: it does not
	p         rocev2.PSN    // next PSN of its send queue; current while it is not the source
	r         rocev2.PSN    // next PSN its receive queue expects; current while it is not a receiver
	msgs      rocev2.MSN    // messages of its own that are acknowledged; as p
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
	srcKey    addrKey  // address of the source
	srcNbr    Neighbor // and the switch it is behind, 0 if none
	src       int32    // MemberID, or nobody
	srcLeg    int32
	a         rocev2.PSN    // A: every receiving branch has acknowledged it
	hi        rocev2.PSN    // highest PSN forwarded, plus 1
	prev      rocev2.PSN    // PSN of the last data packet
	nout      rocev2.PSN    // PSN of the last NAK sent, if nsev is not noPend
	nsev      severity      // and its severity
	seen      bool          // PSN nout has passed since
	muted     bool          // the source is not acknowledged anything: it sent a PSN below all that was seen of it ...
	quietTill time.Duration // ... so long
	past      int32         // PSNs up to A that the source has had acknowledged since it was registered; pastWindow means as many or more
	prevAt    time.Duration // when it came
	hasPrev   bool
	open      bool // the message of hi-1 is not complete
	dead      bool
	becn      bool // to be set in the next ACK
	policy    Policy

	low    int // receiving branches with a <= A; more than slack while A cannot move
	slack  int // receiving branches that need not be above A: none, but under Quorum
	nrecv  int // receiving branches
	nfresh int // of them, fresh ones
	npend  int // branches with a pending NAK
	njoin  int // legs that are joining
	nowin  int // receiving connected branches whose member has no window

	qpn       rocev2.QPN
	pmtu      uint16
	windowed  bool
	window    Window
	targetKey uint32
	targets   *targets // nil unless there is a targetKey
	refused   refusal
	write     writing
	branches  []branch // by LegID
	legs      []leg    // by LegID
	members   []member // by MemberID
	byIP      addrTable
	forwards  []LegID // the forwarded legs
	msgs      messages

	failPSN  rocev2.PSN // if dead
	failCode rocev2.Syndrome
	told     bool // SourceRefused was emitted in this epoch

	best     int32 // CNP filter: the leg whose signals pass, or nobody
	bestSeen time.Duration
	passed   time.Duration // when the last CNP passed
	hasPass  bool

	quorum  int        // receivers that must have it; 0 means all
	keep    int        // receivers that cannot be spared: more than there are under Strict
	lagPSNs int32      // 0: no limit
	least   rocev2.PSN // no receiver has less, if lagPSNs is set
	freshTo rocev2.PSN // the fresh ones are no longer when A has come here
	scratch []int32    // for raise under Quorum: one for each leg

	hearing   *hearing      // of the switch
	departed  *departed     // of the switch
	deadAfter time.Duration // 0: never
	deadMost  time.Duration // if above deadAfter: that follows the round trips up to here
	stallTime time.Duration // how long the source may send nothing while another member waits; 0: any time
	awaited   time.Duration // since when it has, and another one waits; 0: no
	lagTime   time.Duration // 0: never
	period    time.Duration // between two looks; 0: neither of these is set
	deadline  time.Duration // next look at the silent ones
	armed     bool
	rewound   bool // the source has retransmitted since the last look

	repair  RepairSpec
	store   *store // nil without local repair
	nlate   int    // late branches
	asked   rocev2.PSN
	timing  bool          // a round trip is being measured:
	timed   rocev2.PSN    // of this packet
	timedAt time.Duration // sent at this time
	timedIn uint64        // when the switch had paused so often
	tending bool
	tendAt  time.Duration // when repair has something to do

	numbers numbering

	turnTime time.Duration // how long a turn is at least while others wait; 0: any time
	turn     turn

	id       GroupID
	ip       netip.Addr
	count    Counters
	outcomes Outcomes
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
	b, l := &g.branches[i], &g.legs[i]
	g.setJoining(i, false)
	b.a = psn.Prev()
	b.delta = 0
	b.bits |= receiving
	if l.spec.Kind == Connected {
		b.delta = uint32(g.members[l.member].r-psn) & rocev2.PSNMask
		if l.window == (Window{}) {
			g.nowin++
		}
	}
	l.verify.before, _ = g.msgs.through(b.a)
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
	l.watch, l.watched, l.heard = b.a, 0, 0
	l.mark, l.marked = b.a, 0
	l.repeated = false
	l.unheard = g.hearing.at(l.spec.Port).unheard
	l.mend = mending{asked: b.a, again: b.a, watch: b.a, rtt: l.mend.rtt, rttVar: l.mend.rttVar}
}

// cut takes a leg out of the group.
func (g *group) cut(i int) {
	g.setJoining(i, false)
	g.verified(LegID(i))
	g.retire(i)
}

// retire ends what a leg was as a receiver: removed, or the epoch is over.
func (g *group) retire(i int) {
	b, l := &g.branches[i], &g.legs[i]
	if b.bits&receiving == 0 {
		return
	}
	if l.spec.Kind == Connected {
		g.members[l.member].r = b.a.Add(1 + int32(b.delta))
		if l.window == (Window{}) {
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
	l.verify.fresh = false
	l.weight = 0
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
func (g *group) receivers(n int) {
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
