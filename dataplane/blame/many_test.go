// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package blame

import (
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"pgregory.net/rapid"
)

// manyMembers are two samples of a group of 1024 members, each of which was waited for a little and has a
// round trip of its own.
func manyMembers() (from, until *Sample) {
	from, until = &Sample{At: 0}, &Sample{At: 4 * time.Second, Busy: 4 * time.Second, Packets: 1e6}
	for i := range 1024 {
		r := Reading{Receives: true}
		from.Members = append(from.Members, r)
		r.Waited[mcast.Lost], r.NAKs, r.RNRNAKs, r.RTT = 4500, uint32(3000+i), uint32(2+i), uint32(100+i)
		until.Members = append(until.Members, r)
	}
	return from, until
}

// BenchmarkJudge judges manyMembers.
func BenchmarkJudge(b *testing.B) {
	from, until := manyMembers()
	var j Judge
	var to []Verdict
	b.ReportAllocs()
	for b.Loop() {
		to = j.Verdicts(from, until, to[:0])
	}
}

// A judgement of many members takes no memory after the first one: it runs between batches of packets.
func TestJudgesWithoutMemory(t *testing.T) {
	var j Judge
	from, until := manyMembers()
	to := j.Verdicts(from, until, nil)
	if n := testing.AllocsPerRun(3, func() { to = j.Verdicts(from, until, to[:0]) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// The better third of the others is the one that sorting them finds, for every member.
func TestBetterThirdOfTheOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 12).Draw(t, "members")
		w := window{Judge: new(Judge), a: &Sample{}, b: &Sample{}}
		var all []uint32
		for range n {
			v := uint32(rapid.IntRange(0, 6).Draw(t, "value"))
			w.a.Members = append(w.a.Members, Reading{Receives: true})
			w.b.Members = append(w.b.Members, Reading{Receives: true, RTT: v})
			all = append(all, v)
		}
		for i := range n {
			others := slices.Delete(slices.Clone(all), i, i+1)
			slices.Sort(others)
			if got, want := w.others(i, roundTrips), others[(len(others)-1)/3]; got != want {
				t.Fatalf("%v without member %d: %d, want %d", all, i, got, want)
			}
		}
	})
}
