// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// What a group has only while data flows (R82): a track for each leg, message ends, and
// the ring of its store. A group that is registered, and idle, has none of it.

// legActivity is what the switch keeps of a leg while data flows.
type legActivity struct {
	recovery recovery

	livenessSince time.Duration // it has to acknowledge watch, counted from here
	lastHeard     time.Duration // last feedback, if it can be evicted for silence
	lagSince      time.Duration // the first receiver had mark at this time, if LagTime is set
	pausesApplied time.Duration // of its port, that these times, from and mend.owed know of
	livenessPSN   rocev2.PSN
	lagPSN        rocev2.PSN

	cnpWeight   uint32        // CNP filter: congestion signals, decayed, in 1/256
	cnpWeightAt time.Duration // when weight was last brought up to date

	repeatedSinceNAK        bool       // under Quorum: since it last asked for something, these went to it again:
	repeatFirst, repeatLast rocev2.PSN // from the first to the last

	probeNotBefore time.Duration // it was a member lately (R73), and is not probed before; then, when it was first
}

// pools have what groups that are not active have given back.
type pools struct {
	tracks pool[legActivity]
	ends   pool[messageEnd]
	stored pool[retained]
}

// trackOf is g.tracks[i], or what stands for it in a group without data.
func (g *group) trackOf(i int) *legActivity {
	if g.activity == nil {
		return &g.sw.blank
	}
	return &g.activity[i]
}

// branch returns what a leg's branch is before the group's first data.
func (l *leg) branch() ackState {
	if l.connected() {
		return ackState{flags: isConnected}
	}
	return ackState{}
}

// branchAt is g.branches[i], also before the group's first data.
func (g *group) branchAt(i int) ackState {
	if g.acks == nil {
		return g.legs[i].branch()
	}
	return g.acks[i]
}

// activate gives g what it needs while data flows. Receivers go on from what they have
// acknowledged.
func (g *group) activate(now time.Duration) {
	if g.activity != nil {
		return
	}
	g.sw.reclaim(now)
	g.activity = g.sw.pools.tracks.get(len(g.legs))
	if g.acks == nil {
		g.acks = make([]ackState, 0, len(g.legs))
		for i := range g.legs {
			g.acks = append(g.acks, g.legs[i].branch())
		}
	}
	if n := len(g.legs); g.quorum > 0 && len(g.sw.sortScratch) < n {
		g.sw.sortScratch = make([]int32, 2*n)
	}
	for i := range g.activity {
		a, t := g.acks[i].acked, &g.activity[i]
		t.pausesApplied = g.sw.ports.port(g.legs[i].port).paused
		t.livenessPSN, t.lagPSN = a, a
		t.recovery = recovery{ackReqPSN: a, resentPSN: a, expectedACK: a}
	}
	g.sw.actives.add(g.id)
}

// trackLeg makes room for the last leg, if g is active.
func (g *group) trackLeg() {
	if g.acks != nil {
		g.acks = append(g.acks, g.legs[len(g.legs)-1].branch())
	}
	if g.activity == nil {
		return
	}
	g.activity = g.sw.pools.tracks.resize(g.activity, len(g.legs))
	if n := len(g.legs); g.quorum > 0 && len(g.sw.sortScratch) < n {
		g.sw.sortScratch = make([]int32, 2*n)
	}
}

// deactivate gives back what activate has taken, and what has grown since. Nothing is
// in flight, or nothing of it counts any more.
func (g *group) deactivate() {
	g.sw.pools.tracks.put(g.activity)
	g.sw.pools.ends.put(g.messages.ends)
	g.activity, g.messages.ends, g.messages.count, g.messages.first = nil, nil, 0, 0
	if g.store != nil {
		g.store.shrink()
	}
}

// idleAfter is how long nothing is sent to a group before another one may have its
// memory.
const idleAfter = 10 * time.Second

// idle says whether g can do without what it has while data flows: its source has sent
// nothing for idleAfter, and every receiver has all of it.
func (g *group) idle(now time.Duration) bool {
	return g.numbering.numPending == 0 && !g.livenessArmed && !g.recoveryArmed && g.numJoining == 0 && g.numRecovering == 0 && g.numPending == 0 && g.numJoinedInFlight == 0 &&
		g.isQuiescent() && (g.store == nil || g.store.bytes == 0) && g.refusal.syndrome == 0 && !g.numbering.isBlocking() && now-max(g.lastPSNAt, g.quarantinedUntil) > idleAfter
}

// actives are the active groups, in the order in which they began or were last looked
// at. With each that begins, two are looked at: so many are active at once as in the
// last idleAfter and the time that it takes to look at all, and no call looks at more.
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

// reclaim looks at up to two groups, before another one becomes active, and takes back
// what idle ones have.
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
