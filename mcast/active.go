// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"math/bits"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// State that a group has only while data flows (R82): the activity of each leg, the ends
// of messages, and the ring of its store. An idle group has none of it.

// legActivity is the part of a leg's state that exists only while data flows.
type legActivity struct {
	recovery recovery `state:"own(legRecovery) if c.g.repair.store != nil || c.g.live.deadAfterMax > 0 else recovery{}"`

	pausesApplied time.Duration `state:"derived = c.sw.ports.port(c.g.legs[c.Index].port).paused"` // pauses of the leg's port that all times here and recovery.expectedSince include
	lastHeard     time.Duration `state:"since(c.silence()) if c.watched()"`                        // time of the last feedback, if the leg can be evicted for silence
	livenessSince time.Duration `state:"since(c.silence()) if c.watched()"`                        // start of the time in which the leg has to acknowledge livenessPSN
	lagSince      time.Duration `state:"since(c.g.lagTimeOf(c.Index)) if c.watched()"`             // time of the first receiver's acknowledgement of lagPSN, if LagTime is set
	livenessPSN   rocev2.PSN    `state:"encoded if c.watched()"`
	lagPSN        rocev2.PSN    `state:"encoded if c.watched()"`

	cnpWeight   uint32        `state:"encoded"`                  // CNP filter: number of congestion signals, decayed, in 1/256
	cnpWeightAt time.Duration `state:"time if x.cnpWeight != 0"` // time of the last update of cnpWeight

	repeatedSinceNAK        bool       `state:"encoded if c.g.policy.quorum > 0"`                       // true, under Quorum: PSNs went to the leg again since its last NAK
	repeatFirst, repeatLast rocev2.PSN `state:"encoded if c.g.policy.quorum > 0 && x.repeatedSinceNAK"` // the first and the last of them

	probedFrom time.Duration `state:"since(c.patience()) = c.probedFrom(x) if c.g.numbering.checks != nil"` // beginning of the probes of an unverified leg (R73); no earlier silence counts (R55)
}

// pools hold the slices that groups without data flow have given back.
type pools struct {
	activity pool[legActivity]
	ends     pool[messageEnd]
	stored   pool[retained]
	held     pool[Packet]
}

// activityOf returns g.activity[i], or a blank one in a group that is not active.
func (g *group) activityOf(i int) *legActivity {
	if g.activity == nil {
		return &g.sw.blank
	}
	return &g.activity[i]
}

// activate gives g the state that it needs while data flows. A receiver goes on from the
// PSN that it has acknowledged.
func (g *group) activate(now time.Duration) {
	if g.activity != nil {
		return
	}
	g.sw.reclaim(now)
	g.activity = g.sw.pools.activity.get(len(g.legs))
	if g.acks == nil {
		acks := make([]ackState, len(g.legs))
		for i := range g.legs {
			acks[i] = g.legs[i].newAckState()
		}
		g.acks = acks
	}
	g.growScratch()
	for i := range g.activity {
		a, t := g.acks[i].acked, &g.activity[i]
		t.pausesApplied = g.sw.ports.port(g.legs[i].port).paused
		t.recovery = recovery{ackReqPSN: a, resentPSN: a, expectedACK: a}
	}
	g.sw.actives.add(g.id)
}

// addLegState adds the ACK state of the last leg, if g has had data, and its activity, if g
// is active.
func (g *group) addLegState() {
	if g.acks != nil {
		g.acks = append(g.acks, g.legs[len(g.legs)-1].newAckState())
	}
	if g.cost != nil {
		g.cost.legs = append(g.cost.legs, legCost{})
	}
	if g.activity == nil {
		return
	}
	g.activity = g.sw.pools.activity.resize(g.activity, len(g.legs))
	g.growScratch()
}

// growScratch makes room for quorumAcked.
func (g *group) growScratch() {
	if n := len(g.legs); g.policy.quorum > 0 && len(g.sw.sortScratch) < n {
		g.sw.sortScratch = make([]int32, 2*n)
	}
}

// deactivate gives back the slices that g has for its data. Nothing is in flight, or what
// is in flight counts no longer.
func (g *group) deactivate() {
	g.sw.pools.activity.put(g.activity)
	g.sw.pools.ends.put(g.agg.messages.ends)
	g.activity, g.agg.messages.ends, g.agg.messages.count, g.agg.messages.first = nil, nil, 0, 0
	if g.repair.store != nil {
		g.repair.store.shrink()
	}
}

// idleAfter is the time without data after which another group may take a group's memory.
const idleAfter = 10 * time.Second

// idle reports whether g can do without the state that it has for its data: its source has
// sent nothing for idleAfter, and every receiver has acknowledged everything.
func (g *group) idle(now time.Duration) bool {
	return g.numbering.numPending == 0 && g.isAtRest() && now-max(g.src.lastPSNAt, g.src.quarantinedUntil) > idleAfter
}

// isAtRest reports whether g needs nothing of the state that it has for its data until its next packet. Receivers
// may have left probes without an answer.
func (g *group) isAtRest() bool {
	_, due := g.due.earliest()
	return !due && !g.is(joiners) && g.repair.numRecovering == 0 && g.agg.numPending == 0 && g.recv.joinedInFlight == 0 &&
		(g.isQuiescent() || g.endUnknown() && !g.waitsForFile()) && (g.repair.store == nil || g.repair.store.bytes == 0) && !g.is(refused) && !g.is(blocking)
}

// restUntilData takes back what g has for its data if it has sent none yet: it needed that for its first probes.
func (g *group) restUntilData() {
	if g.activity == nil || g.counters.DataIn != 0 || !g.isAtRest() {
		return
	}
	if g.deactivate(); g.cost == nil && !g.is(unplaced) {
		g.acks = nil
	}
}

// actives are the active groups, in the order in which they became active or were last
// checked. Whenever a group becomes active, two others are checked. So the number of
// active groups is at most that of the groups with data within idleAfter and the time of
// a round of checks, and no call checks more than two.
type actives struct {
	ids  []GroupID // a ring, its length a power of two
	head int
	n    int
}

func (a *actives) add(id GroupID) {
	if a.n == len(a.ids) {
		ids := make([]GroupID, max(8, 2*len(a.ids)))
		for i := range a.n {
			ids[i] = a.ids[(a.head+i)&(len(a.ids)-1)]
		}
		a.ids, a.head = ids, 0
	}
	a.ids[(a.head+a.n)&(len(a.ids)-1)] = id
	a.n++
}

func (a *actives) next() GroupID {
	id := a.ids[a.head]
	a.head = (a.head + 1) & (len(a.ids) - 1)
	a.n--
	return id
}

// reclaim checks up to two groups, before another one becomes active, and takes back the
// slices of those that are idle.
func (s *Switch) reclaim(now time.Duration) {
	for range min(2, s.actives.n) {
		id := s.actives.next()
		switch g := s.group(id); {
		case g == nil || g.activity == nil: // deleted meanwhile
		case g.idle(now):
			g.deactivate()
		default:
			s.actives.add(id)
		}
	}
}

// pool holds the unused slices of one type, by the logarithm of their capacity, which is a
// power of two. A group takes slices while data flows, so that the steady state allocates
// nothing, and gives them back when it ends or is idle.
type pool[T any] struct {
	free [24][][]T
}

// get returns a slice of n zero values.
func (p *pool[T]) get(n int) []T {
	k := bits.Len(uint(max(n, 1) - 1))
	f := p.free[k]
	if len(f) == 0 {
		return make([]T, n, 1<<k)
	}
	s := f[len(f)-1]
	p.free[k] = f[:len(f)-1]
	return s[:n]
}

// put takes back a slice from get, or one that append has made from such a slice.
func (p *pool[T]) put(s []T) {
	if cap(s) == 0 {
		return
	}
	k := bits.Len(uint(cap(s))) - 1 // the capacity of a slice from append may be no power of two
	s = s[:1<<k]
	clear(s)
	p.free[k] = append(p.free[k], s[:0])
}

// resize returns a slice of n values that begins with those of s, and takes s back.
func (p *pool[T]) resize(s []T, n int) []T {
	t := p.get(n)
	copy(t, s)
	p.put(s)
	return t
}
