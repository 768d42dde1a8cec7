// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"math/bits"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// What a member costs its group: the core counts for each leg what it had to do for it, and for how long the
// group's ACK waited for that leg beyond the others. Such a wait begins when the leg is the only
// receiver that lacks the packet behind acked, and ends when it acknowledges that. The
// fault that the leg has shown last says what the wait was for. What all receivers are waited
// for, and the time without a packet outstanding, costs nobody.

// Fault is what is known to be wrong with a leg that is waited for.
type Fault uint8

const (
	NoFault     Fault = iota // nothing: it is the last one
	Lost                     // a sequence NAK has come from it
	NotReady                 // an RNR NAK has come from it
	PortFull                 // its port has taken no more packets
	Probed                   // its acknowledgement was overdue, and it was asked once
	ProbedAgain              // the same, and it was asked again
	StoodStill               // no answer came for Standstill, and nothing before explains that
	NumFaults
)

// Standstill is the longest wait for an answer that a link, a path or a busy host explains.
const Standstill = time.Second

// Cost is what a leg has cost its group since the first member behind it joined.
type Cost struct {
	NAKs     uint64 // sequence NAKs
	RNRNAKs  uint64
	Repaired uint64 // packets that were sent to it again from the store
	Probes   uint64 // times that it was asked, as its acknowledgement was overdue
	Spurious uint64 // the Probes that it has answered twice: it had acknowledged by itself
	Waited   [NumFaults]time.Duration

	RTTp50, RTTp99 time.Duration // percentiles of the lately measured round trips; 0: none was
	RTT            time.Duration // smoothed; 0: never measured
	PathRTT        time.Duration // smoothed, of packets before which nothing was outstanding; 0: never measured
	Alone          time.Duration // time for which the group's ACK waits for it alone now, of Waited; 0: it does not
	Overdue        bool          // Alone is longer than any round trip explains
	Receives       bool          // true: it gets the data of the present source
}

// Total returns the time for which the group's ACK waited for the leg beyond the others.
func (c *Cost) Total() (d time.Duration) {
	for _, w := range c.Waited {
		d += w
	}
	return d
}

// costs are those of a group's legs.
type costs struct {
	aloneSince time.Duration // time from which on acked waits for one receiver, while others have more; 0: it does not
	keptAt     time.Duration // time of the last packet whose round trips are kept
	legs       []legCost     // the legs' costs, by LegID
}

// keptEvery is the least time between two packets whose round trips are kept: those of a fast group would
// cost its packets time, and tell no more.
const keptEvery = time.Millisecond

// keepsRoundTrip reports whether the round trips of a packet that is sent now are kept.
func (c *costs) keepsRoundTrip(now time.Duration) bool {
	if now-c.keptAt < keptEvery && c.keptAt != 0 {
		return false
	}
	c.keptAt = max(now, 1)
	return true
}

// legCost is what the core keeps of a leg's Cost.
type legCost struct {
	waited           [NumFaults]time.Duration
	naks, repaired   uint64
	rnrNAKs          uint32
	probes, spurious uint32
	roundTrips       histogram
	pathRTT          time.Duration // Cost.PathRTT
}

// beginCosts begins to keep the costs of g's legs: there is a source.
func (g *group) beginCosts() {
	if g.cost == nil {
		g.cost = &costs{legs: make([]legCost, len(g.legs))}
	}
}

// noteFault notes what leg i has shown. The last NAK says more than those before it, a full port
// no more than a NAK, and silence least: every other fault has it too.
func (g *group) noteFault(i int, f Fault) {
	m := &g.activity[i].recovery
	switch {
	case f == Probed && m.fault >= Probed:
		f = ProbedAgain
	case f == Probed && m.fault != NoFault, f == PortFull && (m.fault == Lost || m.fault == NotReady):
		f = m.fault
	}
	m.fault, m.faultUntil = f, g.fwd.nxt.Prev()
}

// costNAK counts a NAK(e) of leg i. rdma_rxe follows an RNR NAK with a sequence NAK of the same
// PSN, which is the same fault.
func (g *group) costNAK(i int, sev severity, e rocev2.PSN) {
	c := &g.cost.legs[i]
	switch {
	case sev == sevRNR:
		c.rnrNAKs++
		g.noteFault(i, NotReady)
	case sev == sevSequence && (g.activity[i].recovery.fault != NotReady || g.acks[i].acked.Next() != e):
		c.naks++
		g.noteFault(i, Lost)
	}
}

// costProbe counts that leg i was asked.
func (g *group) costProbe(i int) {
	g.cost.legs[i].probes++
	g.noteFault(i, Probed)
}

// costDuplicate counts an acknowledgement of leg i that says nothing new.
func (g *group) costDuplicate(i int) {
	if c := &g.cost.legs[i]; c.spurious < c.probes {
		c.spurious++
	}
}

// costACK notes that leg i has acknowledged more. was is numAtAcked before that: the leg was the one
// that is waited for if there is none now.
func (g *group) costACK(now time.Duration, i int, was int32) {
	m := &g.activity[i].recovery
	if was == 1 && g.agg.numAtAcked == 0 && g.cost.aloneSince != 0 {
		addWait(&g.cost.legs[i].waited, m.fault, now-g.cost.aloneSince)
		g.cost.aloneSince = 0
	}
	if m.fault != NoFault && m.faultUntil.LessEq(g.acks[i].acked) {
		m.fault = NoFault
	}
}

// addWait adds a wait of d with fault f. What exceeds Standstill is for a silent leg, unless f explains it.
func addWait(waited *[NumFaults]time.Duration, f Fault, d time.Duration) {
	if d > Standstill && f != Lost && f != NotReady && f != PortFull {
		waited[StoodStill] += d - Standstill
		d = Standstill
	}
	waited[f] += d
}

// costLast notes that one receiver lacks the packet behind acked, if that is so.
func (g *group) costLast(now time.Duration) {
	if g.agg.numAtAcked == 1 && g.recv.count > 1 && g.cost.aloneSince == 0 {
		g.cost.aloneSince = max(now, 1)
	}
}

// addRoundTrip notes a measured round trip. alone: nothing was outstanding when the packet was sent.
func (c *legCost) addRoundTrip(d time.Duration, alone bool) {
	c.roundTrips.add(d)
	switch {
	case !alone:
	case c.pathRTT == 0:
		c.pathRTT = d
	default:
		c.pathRTT += (d - c.pathRTT) / 8
	}
}

// Costs writes what the members of a group have cost it into to, by MemberID, and returns that.
// Members behind another switch have the same. It walks the members. RTTp50 and RTTp99 are left out
// unless quantiles is set: they take longer than all the rest.
func (v Group) Costs(now time.Duration, quantiles bool, to []Cost) []Cost {
	to = to[:0]
	g := v.g
	if g == nil {
		return to
	}
	for k := range g.members {
		i := int(g.members[k].leg)
		to = append(to, g.costOf(now, i))
		if c := &to[k]; quantiles && g.cost != nil {
			h := &g.cost.legs[i].roundTrips
			c.RTTp50, c.RTTp99 = h.quantile(1, 2), h.quantile(99, 100)
		}
	}
	return to
}

// costOf returns the cost of leg i.
func (g *group) costOf(now time.Duration, i int) (c Cost) {
	if g.cost == nil {
		return c
	}
	l := &g.cost.legs[i]
	c = Cost{NAKs: l.naks, RNRNAKs: uint64(l.rnrNAKs), Repaired: l.repaired, Probes: uint64(l.probes), Spurious: uint64(l.spurious), Waited: l.waited}
	m := &g.activityOf(i).recovery
	c.RTT, c.PathRTT, c.Receives = m.rtt, l.pathRTT, g.ackStateOf(i).flags&isReceiver != 0
	if g.cost.aloneSince != 0 && g.agg.numAtAcked == 1 && !g.is(failed) && g.isAwaited(i) {
		c.Alone = now - g.cost.aloneSince
		addWait(&c.Waited, m.fault, c.Alone)
		c.Overdue = c.Alone > max(g.repair.timeout, DefaultRepairTimeout, 2*(m.rtt+4*m.rttVar))
	}
	return c
}

// DataIn returns how many packets of its sources a group has had.
func (v Group) DataIn() uint64 {
	if g := v.g; g != nil {
		return g.counters.DataIn
	}
	return 0
}

// histogram has the number of round trips in each range. Its ranges grow by a half and by a third in
// turn, from 1 µs to 17 s. When a count is full all counts are halved, so that what was measured
// lately counts more.
type histogram struct{ counts [48]uint16 }

const leastRoundTrip = 10 // binary logarithm of the upper bound of the first range, in ns

// rangeOf returns the range that d is in.
func rangeOf(d time.Duration) int {
	n := bits.Len64(uint64(max(d, 1)))
	if n <= leastRoundTrip {
		return 0
	}
	half := int(uint64(d)>>(n-2)) & 1 // the second digit: the upper half of an octave
	return min(2*(n-leastRoundTrip-1)+half+1, 47)
}

// add counts a round trip.
func (r *histogram) add(d time.Duration) {
	k := rangeOf(d)
	if r.counts[k] == 1<<16-1 {
		for i := range r.counts {
			r.counts[i] /= 2
		}
	}
	r.counts[k]++
}

// quantile returns the round trip that the part n/of of those measured do not exceed, to a
// third; 0 if none was measured.
func (r *histogram) quantile(n, of int) time.Duration {
	total := 0
	for _, c := range r.counts {
		total += int(c)
	}
	if total == 0 {
		return 0
	}
	rank := max(1, (total*n+of-1)/of)
	for k, c := range r.counts {
		if rank -= int(c); rank <= 0 {
			return middleOf(k)
		}
	}
	return 0
}

// middleOf returns a duration in the middle of range k.
func middleOf(k int) time.Duration {
	if k == 0 {
		return 1 << leastRoundTrip / 2
	}
	octave := time.Duration(1) << (leastRoundTrip + (k-1)/2)
	if k%2 == 1 {
		return octave + octave/4
	}
	return octave + octave*3/4
}
