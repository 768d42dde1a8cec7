// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"slices"
	"testing"

	"github.com/gleam-rdma/gleam/rocev2"
)

// TestTargetsAreAList compares targets with a list of all target messages over long runs,
// in which legs are added, change their members, and sources change.
func TestTargetsAreAList(t *testing.T) {
	type entry struct {
		psn int
		leg int
		at  target
	}
	for seed := range uint64(10) {
		rng := random(seed)
		legs, acked := 2, 0
		x := newTargets(legs)
		base := rocev2.PSN(0xFFFFF0)
		var list []entry           // target messages that name a leg
		inFlight := map[int]bool{} // PSNs of target messages above acked
		for step := range 3000 {
			switch rng(20) {
			case 0:
				if legs < 6 {
					x.addLeg()
					legs++
				}
			case 1:
				leg := rng(legs)
				x.forgetLeg(leg)
				list = slices.DeleteFunc(list, func(e entry) bool { return e.leg == leg })
			case 2:
				if rng(10) == 0 {
					x.reset()
					list, inFlight = nil, map[int]bool{}
				}
			case 3, 4, 5:
				acked += rng(12)
				x.fold(base.Add(int32(acked)))
				for psn := range inFlight {
					if psn <= acked {
						delete(inFlight, psn)
					}
				}
			default:
				psn := acked + 1 + rng(50)
				u := x.insert(base.Add(int32(psn)))
				if full := !inFlight[psn] && len(inFlight) == maxTargetMessages; (u == nil) != full {
					t.Fatalf("step %d: message at %d of %d in flight: refused %v", step, psn, len(inFlight), u == nil)
				}
				if u == nil {
					continue
				}
				inFlight[psn] = true
				list = slices.DeleteFunc(list, func(e entry) bool { return e.psn == psn })
				for leg := range legs {
					if u.legs[leg] != (target{}) {
						t.Fatalf("step %d: a new message names %+v", step, u.legs[leg])
					}
					if rng(2) == 0 {
						u.legs[leg] = target{uint64(step), uint32(leg), true}
						list = append(list, entry{psn, leg, u.legs[leg]})
					}
				}
				if !x.named {
					t.Fatalf("step %d: no source has named targets", step)
				}
			}
			if int(x.count) != len(inFlight) {
				t.Fatalf("step %d: %d messages, want %d", step, x.count, len(inFlight))
			}
			at := acked + 1 + rng(52)
			for leg := range legs {
				var want target
				last := -1
				for _, e := range list {
					if e.leg == leg && e.psn < at && e.psn > last {
						want, last = e.at, e.psn
					}
				}
				if got := x.find(leg, base.Add(int32(at))); got != want {
					t.Fatalf("step %d: leg %d, WRITE at %d: %+v, want %+v", step, leg, at, got, want)
				}
			}
		}
	}
}
