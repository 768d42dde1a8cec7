// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/gleam-rdma/gleam/rocev2"
)

// TestTargetsAreThoseOfTheLastUpdateBefore: targets finds the same as a list of all target
// messages, for every leg.
func TestTargetsAreThoseOfTheLastUpdateBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const legs = 3
		x := newTargets(legs)
		a := rocev2.PSN(rapid.Uint32Range(0, rocev2.PSNMask).Draw(t, "a"))
		type entry struct {
			psn rocev2.PSN
			at  target
		}
		var said [legs][]entry // entries by leg, in no order, one for each PSN
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				psn := a.Add(int32(rapid.IntRange(1, 40).Draw(t, "ahead")))
				u := x.insert(psn)
				if u == nil {
					continue
				}
				for leg := range legs {
					for i, e := range said[leg] {
						if e.psn == psn {
							said[leg] = append(said[leg][:i], said[leg][i+1:]...)
							break
						}
					}
					if rapid.Bool().Draw(t, "names") {
						v := target{rapid.Uint64().Draw(t, "va"), rapid.Uint32().Draw(t, "key"), true}
						u.legs[leg] = v
						said[leg] = append(said[leg], entry{psn, v})
					}
				}
			case 2:
				a = a.Add(int32(rapid.IntRange(0, 10).Draw(t, "acked")))
				x.fold(a)
			case 3:
				f := a.Add(int32(rapid.IntRange(1, 45).Draw(t, "write")))
				for leg := range legs {
					var want target
					var best rocev2.PSN
					for _, e := range said[leg] {
						if e.psn.Less(f) && (!want.set || best.Less(e.psn)) {
							want, best = e.at, e.psn
						}
					}
					if got := x.find(leg, f); got != want {
						t.Fatalf("leg %d, WRITE at %06x: %v, want %v", leg, uint32(f), got, want)
					}
				}
			}
		}
	})
}

func TestTargetsRefuseMoreThanTheyHold(t *testing.T) {
	x := newTargets(1)
	for i := range maxTargetMessages {
		if x.insert(rocev2.PSN(2*i)) == nil {
			t.Fatalf("update %d refused", i)
		}
	}
	if x.insert(1) != nil || x.insert(0) == nil {
		t.Error("a full ring takes a new update, or refuses one that it has")
	}
	x.fold(0)
	if x.insert(1) == nil {
		t.Error("refused although one was acknowledged")
	}
}
