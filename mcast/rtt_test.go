// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"math"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// roundTrips returns what is measured of leg 1.
func roundTrips(s *Switch) (rtt, deviation time.Duration) {
	m := &s.groups[0].activity[1].recovery
	return m.rtt, m.rttVar
}

// measuring returns a group that measures round trips: with local repair, or because
// DeadAfter follows them.
func measuring(t *testing.T, repair bool) *repairRig {
	return newRepairRig(t, func(s *GroupSpec) {
		if !repair {
			s.Repair, s.DeadAfter, s.DeadAfterMax = RepairSpec{}, time.Minute, time.Hour
		}
	})
}

// TestR45_RoundTripsAreSmoothed: the mean and the mean deviation of the round trips are
// those of RFC 6298.
func TestR45_RoundTripsAreSmoothed(t *testing.T) {
	for _, repair := range []bool{true, false} {
		r := measuring(t, repair)
		var mean, deviation float64
		for i, d := range []time.Duration{1000, 5000, 200, 200, 90_000, 1, 8000, 8001, 7999, 123_456} {
			psn := rocev2.PSN(i)
			r.now += time.Millisecond
			r.data(psn, 0, 1000)
			r.now += d
			r.feedback("B", rocev2.SyndromeACK, psn)
			r.feedback("C", rocev2.SyndromeACK, psn)
			if x := float64(d); i == 0 {
				mean, deviation = x, x/2
			} else {
				deviation = 0.75*deviation + 0.25*math.Abs(mean-x)
				mean = 0.875*mean + 0.125*x
			}
			rtt, v := roundTrips(r.sw)
			if math.Abs(float64(rtt)-mean) > 8 || math.Abs(float64(v)-deviation) > 8 {
				t.Fatalf("repair %v, round trip %d of %v: %v and %v, want %.0f and %.0f ns", repair, i, d, rtt, v, mean, deviation)
			}
			mean, deviation = float64(rtt), float64(v)
		}
	}
}

// TestR45_WhatIsMeasured: one packet at a time is measured, from its only passage to the
// first ACK of it.
func TestR45_WhatIsMeasured(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		do   func(r *repairRig)
		want time.Duration
	}{
		"an ACK of it": {func(r *repairRig) {
			r.data(0, 0, 1000)
			r.now += ms
			r.feedback("B", rocev2.SyndromeACK, 0)
		}, ms},
		"an ACK beyond it": {func(r *repairRig) {
			r.data(0, 0, 1000)
			r.data(1, 0, 1000)
			r.now += ms
			r.feedback("B", rocev2.SyndromeACK, 1)
		}, ms},
		"an ACK below it": {func(r *repairRig) {
			for psn := range rocev2.PSN(2) {
				r.sw.Input(r.now, &Packet{Group: groupIP, DestQP: groupQPN, Src: ipOf("A"), Verified: true, Op: rocev2.SendOnly, PSN: psn, AckReq: psn == 1}, &r.out)
			}
			r.now += ms
			r.feedback("B", rocev2.SyndromeACK, 0)
		}, 0},
		"the second ACK": {func(r *repairRig) {
			r.data(0, 0, 1000)
			r.now += ms
			r.feedback("B", rocev2.SyndromeACK, 0)
			r.data(1, 0, 1000)
			r.now += 40 * ms
			r.feedback("B", rocev2.SyndromeACK, 1) // 0 is measured still, since C owes it
		}, ms},
		"the next one, when all have the first": {func(r *repairRig) {
			r.data(0, 0, 1000)
			r.feedback("B", rocev2.SyndromeACK, 0)
			r.feedback("C", rocev2.SyndromeACK, 0)
			r.now += ms
			r.data(1, 0, 1000)
			r.now += ms / 2
			r.data(2, 0, 1000)
			r.now += ms / 2
			r.feedback("B", rocev2.SyndromeACK, 2)
		}, ms},
		"without AckReq": {func(r *repairRig) {
			r.sw.Input(r.now, &Packet{Group: groupIP, DestQP: groupQPN, Src: ipOf("A"), Verified: true, Op: rocev2.SendOnly}, &r.out)
			r.now += ms
			r.feedback("B", rocev2.SyndromeACK, 0)
		}, 0},
		"a packet that passes again": {func(r *repairRig) {
			r.data(0, 0, 1000)
			r.data(1, 0, 1000)
			r.now += ms
			r.sw.Input(r.now, &Packet{Group: groupIP, DestQP: groupQPN, Src: ipOf("A"), Verified: true, Op: rocev2.SendOnly}, &r.out)
			r.now += ms
			r.feedback("B", rocev2.SyndromeACK, 1)
		}, 0},
		"a packet that passes again, with AckReq": {func(r *repairRig) {
			r.data(0, 0, 1000)
			r.now += ms
			r.data(0, 1, 1000)
			r.now += ms
			r.feedback("B", rocev2.SyndromeACK, 0)
		}, 0},
		"the packet after one that passes again": {func(r *repairRig) {
			r.data(0, 0, 1000)
			r.now += ms
			r.data(0, 1, 1000)
			r.now += 3 * ms
			r.data(1, 0, 1000)
			r.now += ms
			r.feedback("B", rocev2.SyndromeACK, 1)
		}, ms},
		"a packet that passes again, whose first passage asked for no ACK": {func(r *repairRig) {
			r.sw.Input(r.now, &Packet{Group: groupIP, DestQP: groupQPN, Src: ipOf("A"), Verified: true, Op: rocev2.SendOnly}, &r.out)
			r.now += ms
			r.data(0, 1, 1000)
			r.now += ms
			r.feedback("B", rocev2.SyndromeACK, 0)
		}, 0},
		"another packet that passes again": {func(r *repairRig) {
			r.sw.Input(r.now, &Packet{Group: groupIP, DestQP: groupQPN, Src: ipOf("A"), Verified: true, Op: rocev2.SendOnly}, &r.out)
			r.data(1, 0, 1000)
			r.now += ms
			r.data(0, 1, 1000)
			r.feedback("B", rocev2.SyndromeACK, 1)
		}, ms},
		"a pause": {func(r *repairRig) {
			r.data(0, 0, 1000)
			r.sw.SetPortPaused(3, 1)
			r.now += ms
			r.feedback("B", rocev2.SyndromeACK, 0)
		}, 0},
		"after a pause": {func(r *repairRig) {
			r.data(0, 0, 1000)
			r.sw.SetPortPaused(3, 1)
			r.now += ms
			r.data(1, 0, 1000)
			r.now += ms
			r.feedback("B", rocev2.SyndromeACK, 1)
		}, ms},
	} {
		for _, repair := range []bool{true, false} {
			r := measuring(t, repair)
			r.now = time.Second
			c.do(r)
			if got, _ := roundTrips(r.sw); got != c.want && (got > 0 || c.want > 0) {
				t.Errorf("%s, repair %v: %v, want %v", name, repair, got, c.want)
			}
		}
	}
	r := measuring(t, true)
	r.data(0, 0, 1000)
	r.data(1, 0, 1000)
	r.now += ms
	r.feedback("B", rocev2.SyndromeNAKSequence, 0) // both are sent again
	r.now += ms
	r.feedback("B", rocev2.SyndromeACK, 1)
	if got, _ := roundTrips(r.sw); got != 0 {
		t.Errorf("of packets that the store sent again: %v", got)
	}
}
