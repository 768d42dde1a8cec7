// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"time"

	"github.com/gleam-rdma/gleam/bpf/fastpath"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// What all receivers have acknowledged (docs/AGGREGATION.md, R114). While the core has nothing to decide about a
// group, the programs move its limit, and the worker looks now and then: what all legs have by then it tells
// the core in one step, and the rest waits for the next look. Before any other call of the core for
// the group, and when a look finds that nothing has moved, the limit is closed, and all is reported.

// lookAtGroup tells the core what all receivers of a group have acknowledged. Where the programs do not move the
// limit, or nobody has acknowledged anything, it reports all.
func (w *worker) lookAtGroup(f *fastGroup) {
	if !f.acks.moves {
		w.reportGroup(f)
		return
	}
	looked := w.readClock()
	f.readACKs()
	hi := f.ring.State().Hi
	switch {
	case f.reported == hi:
		w.tellACKs(f)
	case !w.cover(f, f.lowest(), hi):
		w.reportGroup(f)
		return
	case f.step == fastGranted:
		f.ring.SetCeiling(w.core.Group(f.id).OffloadCeiling())
	}
	f.lookedAt, f.lookedHi = looked, hi
}

// lowest returns what all legs have acknowledged, as the words were read.
func (f *fastGroup) lowest() rocev2.PSN {
	low := f.acks.legs[0].read.PSN
	for k := range f.acks.legs {
		low = rocev2.MinPSN(low, f.acks.legs[k].read.PSN)
	}
	return low
}

// coverAll tells the core of what all receivers have acknowledged, before the rest is reported. The limit is closed: the
// slots of the last ones are as they were. One that the programs could not store is passed over.
func (w *worker) coverAll(f *fastGroup, hi rocev2.PSN) {
	if !f.acks.moves {
		return
	}
	f.acks.moves = false
	last := f.lowest()
	if last.Less(f.reported) {
		w.tellACKs(f) // or the core would retain more than the ring has
		return
	}
	for range fastpath.LimitMargin(f.spec.Slots) {
		if last.Less(f.reported) || w.cover(f, last, hi) {
			return
		}
		last = last.Prev()
	}
}

// cover tells the core of the packets up to last, which all receivers have acknowledged, and of no others that they have.
// It returns false if the core has heard of last, or the ring does not have it.
func (w *worker) cover(f *fastGroup, last, hi rocev2.PSN) bool {
	a, x, c := &f.acks, &w.fast.frame, &w.fast.covered
	if last.Less(f.reported) {
		return false
	}
	p, ok := f.ring.KeepPassed(last, w.fast.kept[:])
	if !ok || rocev2.Decode(p.Frame, x) != rocev2.OK || x.Kind != rocev2.KindRoCE {
		return false
	}
	packetOf(x, mcast.Port(f.sourcePort), &c.Last)
	c.Last.Neighbor, c.Last.Verified = f.neighbour, true
	c.Ends, c.At = (p.Ends-f.ends)&rocev2.PSNMask, 0
	switch {
	case p.At != 0:
		c.At = w.sinceBase(p.At)
	case !last.Less(f.lookedHi):
		c.At = f.lookedAt
	}
	legs, acked, exact := w.fast.legs[:0], time.Duration(0), p.At != 0 && a.sent.PSN == last
	for k := range a.legs {
		y := &a.legs[k]
		at, sentAt := w.sinceBase(y.at), time.Duration(0)
		if p.At != 0 && y.read.PSN == last {
			sentAt = max(c.At, 1)
		} else {
			exact = false
		}
		legs = append(legs, mcast.LegACK{Leg: f.at[k], Acked: rocev2.MinPSN(last, y.read.PSN), Count: uint32(y.taken - y.was), At: at, SentAt: sentAt})
		acked = max(acked, at)
	}
	w.fast.legs = legs
	sent := a.unsaid()
	w.coreCalls++
	w.out.MaxResends = -1
	if !w.core.InputCovered(max(w.now, f.clock), f.id, c, legs, sent, &w.out) {
		return false
	}
	n := uint64(last.Sub(f.reported) + 1)
	f.reported, f.ends, f.movedAt, f.skipped = last.Next(), p.Ends, w.now, true
	f.status.Packets += n
	w.count.dataIn += n
	w.groups[f.id].source.note(x)
	w.meterPayload(f)
	w.meterCovered(f, c, hi.Prev(), exact)
	for k := range a.legs {
		y := &a.legs[k]
		w.noteTaken(f, y)
		y.told = fastpath.ACKWord{PSN: last, Count: y.read.Count}
	}
	w.noteAnswers(f, sent, acked)
	w.sendOwn()
	return true
}

// sinceBase is a time on CLOCK_MONOTONIC on the worker's clock, not in the future.
func (w *worker) sinceBase(at time.Duration) time.Duration {
	return min(max(at-w.fast.shared.base, 0), w.now)
}

// meterCovered is meterData for packets that all receivers have acknowledged; top is the newest that was forwarded. timed: the
// last one of them, and all ACKs of it, have their times.
func (w *worker) meterCovered(f *fastGroup, c *mcast.Covered, top rocev2.PSN, timed bool) {
	m := &w.meters.groups[f.id]
	if timed && !m.timing {
		m.forwarded(c.At, c.Last.Src, c.Last.PSN&rocev2.PSNMask)
	}
	m.reached(max(f.lookedAt, c.At), c.Last.Src, top)
	if m.outstanding {
		w.delays.watch(w.now, f.id)
	}
}

// openLimit has the programs move the limit. All that the core has been called for is done, and everything that it
// was to hear of before is reported.
func (w *worker) openLimit(f *fastGroup) {
	if f.acks.moves || w.tracing != nil { // a trace has each packet
		return
	}
	f.acks.moves, f.reportedFor = true, w.fast.taken-1
	f.ring.OpenLimit(w.core.Group(f.id).OffloadCeiling())
}

// closeLimit has the programs move the limit no more. What all receivers have acknowledged by now may have left the ring.
func (f *fastGroup) closeLimit() {
	if f.acks.moves {
		f.limit = f.ring.CloseLimit()
	}
}
