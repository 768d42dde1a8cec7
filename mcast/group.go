// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/mcast/token"
	"github.com/gleam-rdma/gleam/rocev2"
)

// none is the index of no member and of no leg.
const none = -1

// group is one group at this switch: what its parts share, and the parts. A part has its
// own file. What a packet touches lies together: it comes first, up to the first fields of
// numbering.
type group struct {
	ip   rocev2.AddrKey `state:"constant"`
	src  source         `state:"encoded"`
	agg  aggregation    `state:"encoded"`
	fwd  forwarding     `state:"encoded"`
	recv receivers      `state:"encoded"`

	qpn      rocev2.QPN `state:"constant"`
	id       GroupID    `state:"constant"`
	gates    `state:"encoded"`
	refusal  refusal      `state:"encoded if x.is(refused) else refusal{}"`
	policy   policyParams `state:"constant"`
	acks     []ackState   `state:"encoded"` // the legs' acknowledgements, by LegID; nil before the group's first data
	legs     []leg        `state:"encoded"` // the legs, by LegID
	sw       *Switch      `state:"constant"`
	counters tally        `state:"ignored"`

	due    deadlines      `state:"time"`
	repair localRepair    `state:"encoded if x.repair.store != nil"`
	rtt    rttMeasurement `state:"encoded if x.repair.store != nil || x.live.deadAfterMax > 0"`
	live   liveness       `state:"encoded"`
	lag    lagLimit       `state:"encoded"`

	activity  []legActivity `state:"encoded"` // the legs' activity, by LegID; nil unless the group is active
	cost      *costs        `state:"ignored"` // nil before the group's first turn
	members   []member      `state:"encoded"` // the members, by MemberID
	byIP      memberIndex   `state:"constant"`
	turn      turn          `state:"encoded"`
	numbering numbering     `state:"encoded if x.notesGaps()"`
	storage   storage       `state:"encoded if x.mayResume() else storage{}"`

	cnp        cnpFilter `state:"encoded"`
	failure    failure   `state:"encoded if x.is(failed) else failure{}"`
	generation uint64    `state:"constant"`   // GroupSpec.Generation
	outcomes   *Outcomes `state:"ignored"`    // nil: none yet
	extra      *extra    `state:"own(extra)"` // nil: it is empty
}

// member is a member's state between its turns.
type member struct {
	ip         rocev2.AddrKey `state:"constant"`
	qpn        rocev2.QPN     `state:"constant"`
	leg        LegID          `state:"constant"`
	live       bool           `state:"encoded"`
	role       role           `state:"constant"` // its role as registered
	ackedCount int32          `state:"encoded"`  // PSNs before sqPSN that were acknowledged to it; as source.ackedCount

	sqPSN    rocev2.PSN `state:"encoded"` // next PSN of its send queue; current while it is not the source
	ePSN     rocev2.PSN `state:"encoded"` // next PSN its receive queue expects; current while it is not a receiver
	messages rocev2.MSN `state:"encoded"` // messages that it sent and that are acknowledged; current when sqPSN is
}

// memberHistory is the part of a member's state that most members never need.
type memberHistory struct {
	quarantinedUntil time.Duration `state:"ahead"`             // none of its packets is served before (R68); as source.quarantinedUntil
	waits            time.Duration `state:"time = c.waits(x)"` // time from which on it has waited for its turn; 0: it does not wait
	refusalReported  bool          `state:"encoded"`           // an event has reported that the member, registered to receive only, sent data
}

// extra is the part of a group's state that most groups never need.
type extra struct {
	forwards []LegID                   `state:"constant"`     // the forwarded legs
	levels   []uint8                   `state:"constant"`     // LegSpec.Levels of each of them
	history  []memberHistory           `state:"own(history)"` // the members' histories, by MemberID; members beyond its end have none
	resume   resume                    `state:"encoded if c.g.is(resumes) else resume{}"`
	firstPSN []rocev2.PSN              `state:"constant"` // RQPSN as registered, by MemberID; only of a group that was put with positions
	numbers  []token.Member            `state:"constant"` // the members' numbers in the registration, by MemberID; those beyond its end are MemberID+1
	byNumber map[token.Member]MemberID `state:"constant"` // the same, by number
	highest  token.Member              `state:"constant"` // the highest number of a member whose MemberID another one has taken over
	tree     *tree                     `state:"encoded"`  // nil unless there are forwarded legs
	replies  replies                   `state:"constant"` // what becomes of replies, if policyParams.replies
	offload  *offload                  `state:"encoded"`  // nil unless the group may be offloaded
}

func (g *group) newExtra() *extra {
	if g.extra == nil {
		g.extra = new(extra)
	}
	return g.extra
}

// tree returns the group's part in its tree of switches; nil without forwarded legs.
func (g *group) tree() *tree {
	if g.extra == nil {
		return nil
	}
	return g.extra.tree
}

func (g *group) forwardedLegs() []LegID {
	if g.extra == nil {
		return nil
	}
	return g.extra.forwards
}

// maxLevels bounds LegSpec.Levels.
const maxLevels = 16

// levelsBehind returns LegSpec.Levels of leg i.
func (g *group) levelsBehind(i int) uint8 {
	if k := slices.Index(g.forwardedLegs(), LegID(i)); k >= 0 {
		return g.extra.levels[k]
	}
	return 0
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
	isUnplaced     uint8 = 1 << 7    // a forwarded leg that has receivers, and what they have is not known yet (R89)
	joinedInFlight uint8 = 1 << 5    // joined while earlier data was in flight: not counted as a receiver of that data (R36)
)

// ackState is the part of a leg's state that the data path reads and writes: 12 bytes,
// so that 64 legs are 12 cache lines. A pending NAK needs no PSN of its own: NAK(e)
// acknowledges e-1, and an acknowledgement of e ends it, so e is always acked+1.
type ackState struct {
	acked           rocev2.PSN      `state:"encoded if x.flags&isReceiver != 0"` // the leg has acknowledged all up to here; in the source's space
	delta           uint32          `state:"encoded if x.flags&isReceiver != 0"` // added to a PSN toward a connected leg, modulo 2^24
	flags           uint8           `state:"encoded"`
	pending         severity        `state:"encoded if x.flags&isReceiver != 0"` // severity of the pending NAK; sevNone without one
	pendingSyndrome rocev2.Syndrome `state:"encoded if x.flags&isReceiver != 0"` // syndrome of the pending NAK
}

// leg is the part of a leg's state that a group without data has too: 24 bytes.
type leg struct {
	base     uint64   `state:"constant"` // first address of the member's window, if windowed
	rkey     uint32   `state:"constant"` // R_Key of the member's window
	neighbor Neighbor `state:"constant"` // 0: the leg is connected
	port     Port     `state:"constant"`
	member   MemberID `state:"encoded"`  // the first member behind it; the only one if connected
	members  uint16   `state:"encoded"`  // live members behind it
	windowed bool     `state:"constant"` // connected, and the member has a window
	joining  bool     `state:"encoded"`  // receives from the next message that begins
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

// newAckState returns the ACK state of leg l before the group's first data.
func (l *leg) newAckState() ackState {
	if l.connected() {
		return ackState{flags: isConnected}
	}
	return ackState{}
}

// ackStateOf returns the ACK state of leg i, also before the group's first data.
func (g *group) ackStateOf(i int) ackState {
	if g.acks == nil {
		return g.legs[i].newAckState()
	}
	return g.acks[i]
}

// Feedback from one switch to the next is in the PSNs of the source, and names the source by
// its address. A source that is registered anew, or leaves and joins again, may have the same
// address and the same PSNs. So such feedback carries a tag of the registration in the place
// of the MSN, which only the source itself has a use for (R87).

// tagStep is the difference of a member's tags in consecutive epochs: 2^24 over the golden
// ratio. For d up to 4096, the tags of epochs that differ by d are at least 2^24/(3d) apart:
// no members with numbers closer than that have the same tag.
const tagStep = 0x9E3779

// layout returns the number of the tree's layout.
func (s *TreeSpec) layout() uint32 {
	if s.Layout == 0 {
		return s.Epoch
	}
	return s.Layout
}

// tagOf returns the tag of the registration of member k.
func (g *group) tagOf(k MemberID) rocev2.MSN {
	layout := uint32(0)
	if t := g.tree(); t != nil {
		layout = t.place.layout()
	}
	return rocev2.MSN((layout*tagStep + uint32(g.numberOf(k))) & rocev2.PSNMask)
}

// msnTo returns the MSN of feedback to member k, of whose messages that many are
// acknowledged: the tag if the next hop to k is a switch.
func (g *group) msnTo(k MemberID, messages rocev2.MSN) rocev2.MSN {
	if g.legs[g.members[k].leg].connected() {
		return messages
	}
	return g.tagOf(k)
}

// addrIndex finds values, up to 2^32-1 of them, by their addresses, which the caller
// stores. It is a hash table with open addressing and linear probing, at most half full.
// Only the control plane inserts, so that a stranger's packets cannot lengthen the probe
// sequences. The zero value is empty.
type addrIndex[T uint16 | uint64] struct {
	slots []T // the value plus 1, or 0 if the slot is free; the length is a power of two, or 0
	used  uint32
}

// put inserts v, whose address has hash h and is not in the index yet. hash returns the
// hash of a value's address.
func (t *addrIndex[T]) put(h uint64, v T, hash func(T) uint64) {
	if 2*(int(t.used)+1) > len(t.slots) {
		old := t.slots
		t.slots = make([]T, max(8, 2*len(old)))
		for _, v := range old {
			if v != 0 {
				t.insert(hash(v-1), v)
			}
		}
	}
	t.insert(h, v+1)
	t.used++
}

func (t *addrIndex[T]) insert(h uint64, slot T) {
	mask := uint64(len(t.slots) - 1)
	i := h & mask
	for t.slots[i] != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = slot
}

// remove deletes v, whose address has hash h, if it is in the index. Later values of its
// probe sequence move up, so that no probe sequence has a gap.
func (t *addrIndex[T]) remove(h uint64, v T, hash func(T) uint64) {
	if t.used == 0 {
		return
	}
	mask := uint64(len(t.slots) - 1)
	i := h & mask
	for ; t.slots[i] != v+1; i = (i + 1) & mask {
		if t.slots[i] == 0 {
			return
		}
	}
	for j := (i + 1) & mask; t.slots[j] != 0; j = (j + 1) & mask {
		if home := hash(t.slots[j]-1) & mask; (j-home)&mask >= (j-i)&mask {
			t.slots[i], i = t.slots[j], j
		}
	}
	t.slots[i] = 0
	t.used--
}

// memberIndex finds a group's members by address.
type memberIndex struct{ addrIndex[uint16] }

func (t *memberIndex) get(k rocev2.AddrKey, members []member) (MemberID, bool) {
	if t.used == 0 {
		return 0, false
	}
	mask := uint64(len(t.slots) - 1)
	for i := k.Hash() & mask; ; i = (i + 1) & mask {
		v := t.slots[i]
		if v == 0 {
			return 0, false
		}
		if members[v-1].ip == k {
			return MemberID(v - 1), true
		}
	}
}

func (g *group) memberAt(ip netip.Addr) (MemberID, bool) {
	return g.byIP.get(rocev2.KeyOf(ip), g.members)
}

func (g *group) hashOf(m uint16) uint64 { return g.members[m].ip.Hash() }

func (g *group) index(m MemberID) {
	g.byIP.put(g.members[m].ip.Hash(), uint16(m), g.hashOf)
}

func (g *group) unindex(m MemberID) {
	g.byIP.remove(g.members[m].ip.Hash(), uint16(m), g.hashOf)
}

// groupIndex finds a switch's groups by GroupIP. The upper half of a slot is a part of the
// hash, so that a packet for no group reads no group's memory.
type groupIndex struct{ addrIndex[uint64] }

const tagMask = ^uint64(1<<32 - 1)

func (s *Switch) lookup(k rocev2.AddrKey) (GroupID, bool) {
	t := &s.byIP
	if t.used == 0 {
		return 0, false
	}
	h, mask := k.Hash(), uint64(len(t.slots)-1)
	for i := h & mask; ; i = (i + 1) & mask {
		v := t.slots[i]
		if v == 0 {
			return 0, false
		}
		if (v-1)&tagMask == h&tagMask {
			if id := GroupID(v - 1); s.groups[id].ip == k {
				return id, true
			}
		}
	}
}

func (s *Switch) hashOf(v uint64) uint64 { return s.groups[GroupID(v)].ip.Hash() }

func (s *Switch) index(g *group) {
	h := g.ip.Hash()
	s.byIP.put(h, h&tagMask|uint64(g.id), s.hashOf)
}

func (s *Switch) unindex(g *group) {
	h := g.ip.Hash()
	s.byIP.remove(h, h&tagMask|uint64(g.id), s.hashOf)
}
