// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package blame finds the members that cost their group time, and why, from what the core has
// counted of them (mcast.Cost). It has no clock, and nothing of one judgement counts in another: the
// same readings have the same verdicts.
//
// In each round trip one member is the last to acknowledge. That alone costs the group nothing. A member is named if the
// group's ACK has waited for it beyond the others for a real part of the time in which packets
// were outstanding, and if it has shown a fault meanwhile that the others have not: losses,
// RNR NAKs, silence, a full port, or a round trip several times theirs. One that loses many packets, unlike the
// others, is named before that costs time: what is lost in the middle of a message is repaired before its end.
package blame

import (
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/mcast"
)

// Cause says why a member costs its group time.
type Cause uint8

const (
	None Cause = iota
	Loss
	NotReady
	NoAnswer
	SlowLink
	Path
)

// String returns the cause's name in the API.
func (c Cause) String() string {
	return [...]string{"", api.SlowLoss, api.SlowNotReady, api.SlowNoAnswer, api.SlowLink, api.SlowPath}[c]
}

// Reading is what was counted of one member by some time, in a form that is kept of many. Waited
// is in µs and wraps; the rest counts up.
type Reading struct {
	Waited                                    [mcast.NumFaults]uint32
	NAKs, RNRNAKs, Repaired, Probes, Spurious uint32
	RTT, PathRTT                              uint32 // µs; 0: not measured
	Alone                                     uint32 // µs for which it is waited for now
	Receives                                  bool
}

// Of returns the reading of a cost.
func Of(c *mcast.Cost) Reading {
	r := Reading{
		NAKs: uint32(c.NAKs), RNRNAKs: uint32(c.RNRNAKs), Repaired: uint32(c.Repaired), Probes: uint32(c.Probes), Spurious: uint32(c.Spurious),
		RTT: micros(c.RTT), PathRTT: micros(c.PathRTT), Alone: micros(c.Alone), Receives: c.Receives,
	}
	for f := range r.Waited {
		r.Waited[f] = micros(c.Waited[f])
	}
	return r
}

func micros(d time.Duration) uint32 { return uint32(d / time.Microsecond) }

// Sample is what was read of a group at one time.
type Sample struct {
	At      time.Duration
	Busy    time.Duration // the time in which packets were outstanding, so far
	Packets uint64        // packets of the source, so far
	Members []Reading     // readings by MemberID
}

// Verdict is a member that costs its group time.
type Verdict struct {
	Member                          mcast.MemberID
	Cause                           Cause
	Waited                          time.Duration // time for which the ACK waited for it beyond the others, because of Cause; Loss may have none
	Over                            time.Duration // the time in which Waited was counted
	NAKs, RNRNAKs, Repaired, Probes uint32        // counts in that time
	RTT, OthersRTT                  time.Duration // the last ones; of Path and SlowLink
}

// The thresholds. Those of shares are of the time in which packets were outstanding.
const (
	leastWait = time.Millisecond // less is nobody's business

	faultShare  = 4000 // 1/faultShare: of the wait for a member that has lost packets, or was not ready, unlike the others
	silentShare = 2    // 1/silentShare: of the wait for one that is silent
	silentTime  = 8    // 1/silentTime of all time: likewise
	slowShare   = 2    // 1/slowShare: of the wait for one whose link or path is slow

	leastLosses   = 3   // the fewest losses in the window
	leastLossRate = 400 // packets per loss at most
	manyLosses    = 16  // losses in the window for which a member is named whatever they have cost,
	manyLossRate  = 200 // packets per loss at most, in that case
	leastRNRNAKs  = 2
	better        = 4 // the others have better times less
	slowRTT       = 4 // times the round trip of others: slow
)

// Comparable reports whether the counters of two samples are of the same members.
func Comparable(a, b *Sample) bool {
	if len(a.Members) != len(b.Members) || b.At <= a.At || b.Busy < a.Busy || b.Packets < a.Packets {
		return false
	}
	for i := range b.Members {
		x, y := &a.Members[i], &b.Members[i]
		if y.NAKs < x.NAKs || y.RNRNAKs < x.RNRNAKs || y.Repaired < x.Repaired || y.Probes < x.Probes || y.Spurious < x.Spurious {
			return false
		}
		for f := range y.Waited {
			if int32(y.Waited[f]-x.Waited[f]) < 0 {
				return false
			}
		}
	}
	return true
}

// metric is a number that is compared with that of the other members.
type metric uint8

const (
	losses     metric = iota // times that the member has shown that it lacks a packet
	rnrNAKs                  // RNR NAKs that it has sent
	roundTrips               // its smoothed round trip, in µs
	numMetrics
)

// Judge judges, in memory that it uses again. The zero value is ready.
type Judge struct {
	sorted [numMetrics][]uint32 // the values of the members that receive, ascending; empty until one is compared
}

// Verdicts appends the members that have cost their group time between two comparable samples to
// to, the costliest first.
func (j *Judge) Verdicts(a, b *Sample, to []Verdict) []Verdict {
	w := window{Judge: j, a: a, b: b, over: b.At - a.At, busy: b.Busy - a.Busy}
	for m := range j.sorted {
		j.sorted[m] = j.sorted[m][:0]
	}
	n := 0
	for i := range b.Members {
		if w.receives(i) {
			n++
		}
	}
	if n < 2 {
		return to // beyond whom?
	}
	for i := range b.Members {
		if v := w.judge(i); v.Cause != None {
			to = append(to, v)
		}
	}
	slices.SortStableFunc(to, func(x, y Verdict) int { return int((y.Waited - x.Waited) / time.Microsecond) })
	return to
}

// window is what has happened between two samples.
type window struct {
	*Judge
	a, b       *Sample
	over, busy time.Duration
}

func (w *window) receives(i int) bool { return w.a.Members[i].Receives && w.b.Members[i].Receives }

// waited returns for how long member i was waited for because of f.
func (w *window) waited(i int, f mcast.Fault) time.Duration {
	return time.Duration(w.b.Members[i].Waited[f]-w.a.Members[i].Waited[f]) * time.Microsecond
}

// value returns a metric of member i. It shows that it lacks a packet by a NAK, or by its silence until
// the packet was sent again.
func (w *window) value(i int, m metric) uint32 {
	x, y := &w.a.Members[i], &w.b.Members[i]
	switch m {
	case losses:
		probes, late := y.Probes-x.Probes, y.Spurious-x.Spurious
		return y.NAKs - x.NAKs + probes - min(probes, late)
	case rnrNAKs:
		return y.RNRNAKs - x.RNRNAKs
	}
	return y.RTT
}

// others returns a metric of the better third of the members other than i, which receives: two of three
// may be at fault at once.
func (w *window) others(i int, m metric) uint32 {
	s := w.sorted[m]
	if len(s) == 0 {
		for k := range w.b.Members {
			if w.receives(k) {
				s = append(s, w.value(k, m))
			}
		}
		slices.Sort(s)
		w.sorted[m] = s
	}
	rank := (len(s) - 2) / 3
	if w.value(i, m) <= s[rank] {
		rank++ // its own value is before that of the others
	}
	return s[rank]
}

// judge returns the verdict on member i.
func (w *window) judge(i int) (v Verdict) {
	if !w.receives(i) || w.busy <= 0 {
		return v
	}
	x, y := &w.a.Members[i], &w.b.Members[i]
	v = Verdict{Member: mcast.MemberID(i), Over: w.over, NAKs: y.NAKs - x.NAKs, RNRNAKs: w.value(i, rnrNAKs), Repaired: y.Repaired - x.Repaired, Probes: y.Probes - x.Probes}
	total := time.Duration(0)
	for f := range mcast.NumFaults {
		total += w.waited(i, f)
	}
	packets, lacks := w.b.Packets-w.a.Packets, w.value(i, losses)
	many := lacks >= manyLosses && uint64(lacks)*manyLossRate >= packets && lacks >= better*w.others(i, losses)
	if total < max(leastWait, w.busy/faultShare) && !many {
		return v
	}
	consider := func(c Cause, t, least time.Duration) {
		if t >= max(least, leastWait) && t > v.Waited {
			v.Cause, v.Waited = c, t
		}
	}
	stood := w.waited(i, mcast.StoodStill) // also before the answer that has come since
	silence := w.waited(i, mcast.ProbedAgain)
	plain := w.waited(i, mcast.NoFault)
	probed := w.waited(i, mcast.Probed)
	lost := w.waited(i, mcast.Lost)
	late := v.Probes > 0 && 2*(y.Spurious-x.Spurious) >= v.Probes // it answers all, and too late
	if still := time.Duration(y.Alone) * time.Microsecond; still >= mcast.Standstill && v.NAKs == 0 && v.RNRNAKs == 0 {
		silence, plain, lost, late = silence+plain+lost, 0, 0, false // nobody asks without local repair
	}
	if lacks >= leastLosses && uint64(lacks)*leastLossRate >= packets && lacks >= better*w.others(i, losses) {
		if v.NAKs >= leastLosses && !late {
			lost += silence // what was sent again was lost again
			silence = 0
		}
		consider(Loss, lost+probed, w.busy/faultShare)
	} else {
		plain += lost // a wait that a few losses do not explain
	}
	if n := v.RNRNAKs; n >= leastRNRNAKs && n >= better*w.others(i, rnrNAKs) {
		consider(NotReady, w.waited(i, mcast.NotReady), w.busy/faultShare)
	}
	if !late {
		stood += silence + probed
	}
	consider(NoAnswer, stood, max(w.busy/silentShare, w.over/silentTime))
	others := w.others(i, roundTrips)
	c, slow := SlowLink, w.waited(i, mcast.PortFull)
	if others != 0 && y.RTT >= slowRTT*others {
		v.RTT, v.OthersRTT = time.Duration(y.RTT)*time.Microsecond, time.Duration(others)*time.Microsecond
		if slow == 0 && y.PathRTT >= y.RTT/2 {
			c = Path // it is as long with nothing in the way
		}
		slow, plain = slow+plain, 0
	}
	consider(c, slow, w.busy/slowShare)
	if late {
		consider(SlowLink, slow+plain+silence+probed, max(w.busy/silentShare, w.over/silentTime))
	}
	if v.Cause == None && many {
		v.Cause, v.Waited = Loss, lost+probed
	}
	return v
}
