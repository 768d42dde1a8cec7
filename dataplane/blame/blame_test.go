// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package blame

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// what happens to a member in four seconds.
type what struct {
	lost, notReady, full, asked, again, plain, stood time.Duration
	naks, rnrs, probes, late                         uint64
	rtt, path, alone                                 time.Duration
	source                                           bool
}

const ms, us = time.Millisecond, time.Microsecond

// after returns the samples of a group before and after that, with the time in which packets were
// outstanding, and the number of packets.
func after(busy time.Duration, packets uint64, members ...what) (a, b Sample) {
	a, b = Sample{At: time.Hour, Busy: time.Minute, Packets: 1 << 40}, Sample{At: time.Hour + 4*time.Second, Busy: time.Minute + busy, Packets: 1<<40 + packets}
	for i, m := range members {
		was := mcast.Cost{NAKs: uint64(7 * i), RNRNAKs: 5, Probes: uint64(i), Receives: !m.source}
		for f := range was.Waited {
			was.Waited[f] = 71*time.Minute + 34*time.Second // the µs wrap in a second
		}
		is := was
		is.NAKs, is.RNRNAKs, is.Probes, is.Spurious, is.Repaired = is.NAKs+m.naks, is.RNRNAKs+m.rnrs, is.Probes+m.probes, is.Spurious+m.late, is.Repaired+8*m.naks
		for f, d := range map[mcast.Fault]time.Duration{mcast.Lost: m.lost, mcast.NotReady: m.notReady, mcast.PortFull: m.full, mcast.Probed: m.asked, mcast.ProbedAgain: m.again, mcast.NoFault: m.plain, mcast.StoodStill: m.stood} {
			is.Waited[f] += d
		}
		is.RTT, is.PathRTT, is.Alone = m.rtt, m.path, m.alone
		a.Members, b.Members = append(a.Members, Of(&was)), append(b.Members, Of(&is))
	}
	return a, b
}

// well is a member in whose way nothing is, and which is the last for some time.
func well(last time.Duration) what { return what{plain: last, rtt: 100 * us, path: 60 * us} }

func TestJudge(t *testing.T) {
	source := what{source: true, lost: time.Second, naks: 1000}
	for _, c := range []struct {
		name    string
		busy    time.Duration
		packets uint64
		members []what
		want    []Verdict // Member and Cause
	}{
		{"all well, saturated: one is the last nearly always", 4 * time.Second, 300_000, []what{source, well(2900 * ms), well(300 * ms), well(100 * ms)}, nil},
		{"all well, paced", 80 * ms, 4000, []what{source, well(50 * ms), well(10 * ms), well(2 * ms)}, nil},
		{"all lose alike", 4 * time.Second, 300_000, []what{source, {lost: time.Second, naks: 900}, {lost: 900 * ms, naks: 1000}, {lost: 800 * ms, naks: 950}}, nil},
		{"1 % lost, saturated", 4 * time.Second, 100_000, []what{source, well(900 * ms), {lost: 600 * ms, naks: 900}, well(900 * ms)}, []Verdict{{Member: 2, Cause: Loss}}},
		{"1 % lost, messages of 64 packets, paced", 400 * ms, 25_600, []what{source, well(20 * ms), {lost: 30 * ms, naks: 190, plain: 5 * ms}, well(20 * ms)}, []Verdict{{Member: 2, Cause: Loss}}},
		{"1 % lost, single packets, paced: only silence shows it", 60 * ms, 400, []what{source, well(20 * ms), {asked: 16 * ms, probes: 4}, well(10 * ms)}, []Verdict{{Member: 2, Cause: Loss}}},
		{"a host that comes to it late, and answers twice", 60 * ms, 400, []what{source, well(20 * ms), {asked: 16 * ms, probes: 4, late: 4}, well(10 * ms)}, nil},
		{"10 % lost, and what is sent again too", 4 * time.Second, 5000, []what{source, well(100 * ms), {lost: time.Second, again: 1500 * ms, asked: 100 * ms, naks: 400, probes: 200}, well(0)}, []Verdict{{Member: 2, Cause: Loss}}},
		{"1 % lost there by all", 4 * time.Second, 9000, []what{source, {lost: 100 * us, naks: 70}, {lost: 100 * us, naks: 90}, {lost: 200 * us, naks: 80}}, nil},
		{"0.4 % lost there", 4 * time.Second, 9000, []what{source, well(200 * us), {lost: 100 * us, naks: 36}, well(0)}, nil},
		{"1 % lost of few packets: nobody waits", 4 * time.Second, 1000, []what{source, well(200 * us), {lost: 100 * us, naks: 10}, well(0)}, nil},
		{"a few losses among very many packets", 4 * time.Second, 300_000, []what{source, well(100 * ms), {lost: 90 * ms, naks: 20}, well(0)}, nil},
		{"RNR of 5 ms", 4 * time.Second, 900, []what{source, well(0), {notReady: 3 * time.Second, rnrs: 500}, well(0)}, []Verdict{{Member: 2, Cause: NotReady}}},
		{"RNR of 30 ms, paced", 200 * ms, 400, []what{source, well(10 * ms), {notReady: 120 * ms, rnrs: 4}, well(5 * ms)}, []Verdict{{Member: 2, Cause: NotReady}}},
		{"all are not ready", 4 * time.Second, 900, []what{source, {notReady: time.Second, rnrs: 300}, {notReady: time.Second, rnrs: 300}, {notReady: time.Second, rnrs: 300}}, nil},
		{"a process that is stopped", 3 * time.Second, 100, []what{source, well(0), {again: 2900 * ms, probes: 6, alone: 2900 * ms}, well(0)}, []Verdict{{Member: 2, Cause: NoAnswer}}},
		{"the same, without local repair", 3 * time.Second, 100, []what{source, well(0), {plain: 2900 * ms, alone: 2900 * ms}, well(0)}, []Verdict{{Member: 2, Cause: NoAnswer}}},
		{"the same, after a loss", 3 * time.Second, 100, []what{source, well(0), {lost: 2900 * ms, alone: 2900 * ms}, well(0)}, []Verdict{{Member: 2, Cause: NoAnswer}}},
		{"the same, when it has gone on", 4 * time.Second, 1000, []what{source, well(0), {stood: 2900 * ms, again: 900 * ms, asked: 100 * ms, probes: 8, late: 8, rtt: 40 * ms}, well(0)}, []Verdict{{Member: 2, Cause: NoAnswer}}},
		{"a host that sleeps for some ms, paced", 60 * ms, 400, []what{source, well(10 * ms), {asked: 20 * ms, again: 20 * ms, probes: 2, late: 2}, well(5 * ms)}, nil},
		{"a port that is full", 4 * time.Second, 50_000, []what{source, well(0), {full: 3 * time.Second, plain: 500 * ms, rtt: 9 * ms}, well(0)}, []Verdict{{Member: 2, Cause: SlowLink}}},
		{"a slow link that was fast when it was idle", 4 * time.Second, 50_000, []what{source, well(0), {plain: 3500 * ms, rtt: 9 * ms, path: 80 * us}, well(0)}, []Verdict{{Member: 2, Cause: SlowLink}}},
		{"a slow link that was never idle", 4 * time.Second, 50_000, []what{source, well(0), {plain: 3500 * ms, rtt: 9 * ms}, well(0)}, []Verdict{{Member: 2, Cause: SlowLink}}},
		{"a slow link whose round trips are too long to be measured", 4 * time.Second, 1000, []what{source, well(0), {lost: 100 * ms, again: 3500 * ms, asked: 200 * ms, naks: 6, probes: 240, late: 200}, well(0)}, []Verdict{{Member: 2, Cause: SlowLink}}},
		{"1 % lost, and nearly all repaired before their messages end", 4 * time.Second, 9000, []what{source, well(100 * ms), {lost: 2 * ms, naks: 85, plain: 40 * ms}, well(60 * ms)}, []Verdict{{Member: 2, Cause: Loss}}},
		{"the same, and nobody waits for a repair", 4 * time.Second, 9000, []what{source, well(100 * ms), {lost: ms / 2, naks: 85, plain: 40 * ms}, well(60 * ms)}, []Verdict{{Member: 2, Cause: Loss}}},
		{"5 % lost, and the source waits for nobody", 4 * time.Second, 7000, []what{source, well(100 * ms), {lost: 6 * ms, plain: 40 * ms, naks: 500, probes: 30}, well(60 * ms)}, []Verdict{{Member: 2, Cause: Loss}}},
		{"the same, after two losses of which the first is not acknowledged yet", 4 * time.Second, 1000, []what{source, well(0), {lost: 3500 * ms, naks: 2, probes: 240, late: 240}, well(0)}, []Verdict{{Member: 2, Cause: SlowLink}}},
		{"a long way", 4 * time.Second, 50_000, []what{source, well(0), {plain: 3500 * ms, rtt: 9 * ms, path: 8 * ms}, well(0)}, []Verdict{{Member: 2, Cause: Path}}},
		{"a round trip three times as long", 4 * time.Second, 50_000, []what{source, well(0), {plain: 3500 * ms, rtt: 300 * us, path: 200 * us}, well(0)}, nil},
		{"two at once, the costlier first", 4 * time.Second, 100_000, []what{source, {lost: 400 * ms, naks: 900}, {notReady: 1500 * ms, rnrs: 90}, well(100 * ms)}, []Verdict{{Member: 2, Cause: NotReady}, {Member: 1, Cause: Loss}}},
		{"two that lose", 4 * time.Second, 100_000, []what{source, {lost: 400 * ms, naks: 900}, {lost: 700 * ms, naks: 1900}, well(100 * ms)}, []Verdict{{Member: 2, Cause: Loss}, {Member: 1, Cause: Loss}}},
		{"one receiver has nobody beside it", 4 * time.Second, 100_000, []what{source, {lost: 400 * ms, naks: 900}}, nil},
		{"nothing outstanding", 0, 0, []what{source, well(0), well(0)}, nil},
		{"nobody", 0, 0, nil, nil},
	} {
		a, b := after(c.busy, c.packets, c.members...)
		if !Comparable(&a, &b) {
			t.Errorf("%s: not comparable", c.name)
		}
		got := new(Judge).Verdicts(&a, &b, nil)
		if !slices.EqualFunc(got, c.want, func(x, y Verdict) bool { return x.Member == y.Member && x.Cause == y.Cause }) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// A verdict has the numbers of the time that was judged.
func TestVerdictHasNumbers(t *testing.T) {
	a, b := after(4*time.Second, 50_000, what{source: true}, well(0), what{lost: time.Second, asked: 10 * ms, naks: 400, probes: 3, rnrs: 1}, well(0))
	got := new(Judge).Verdicts(&a, &b, nil)
	want := Verdict{Member: 2, Cause: Loss, Waited: time.Second + 10*ms, Over: 4 * time.Second, NAKs: 400, RNRNAKs: 1, Repaired: 3200, Probes: 3}
	if len(got) != 1 || got[0] != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Members of which the same was counted are never named, however bad it is, and whatever their
// number. A member to which nothing has happened is never named, whatever happens to others.
func TestInnocentsAreNotNamed(t *testing.T) {
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 1))
		span := func() time.Duration { return time.Duration(r.Int64N(int64(4 * time.Second))) }
		bad := what{lost: span(), notReady: span(), full: span() * time.Duration(r.IntN(2)), asked: span(), again: span(), plain: span(), naks: r.Uint64N(2000), rnrs: r.Uint64N(500), probes: r.Uint64N(50), rtt: span(), path: span()}
		bad.full, bad.again, bad.asked = 0, 0, 0 // which say something without a comparison
		members := []what{{source: true}}
		for range 2 + r.IntN(9) {
			members = append(members, bad)
		}
		a, b := after(span()+1, r.Uint64N(100_000), members...)
		if got := new(Judge).Verdicts(&a, &b, nil); len(got) > 0 {
			t.Fatalf("seed %d: all alike: %+v", seed, got)
		}
		innocent := 1 + r.IntN(len(members)-1)
		for i := range members {
			if i != innocent && r.IntN(2) == 0 {
				members[i].again, members[i].full = span(), span()
			}
		}
		members[innocent] = well(span())
		a, b = after(span()+1, r.Uint64N(100_000), members...)
		for _, v := range new(Judge).Verdicts(&a, &b, nil) {
			if int(v.Member) == innocent && v.Cause != SlowLink && v.Cause != Path || v.Member == 0 {
				t.Fatalf("seed %d: member %d of %+v: %+v", seed, innocent, members, v)
			}
		}
	}
}

// Counters that began anew, other members, and a clock that stands still are not compared.
func TestNotComparable(t *testing.T) {
	for name, change := range map[string]func(a, b *Sample){
		"fewer NAKs":     func(a, b *Sample) { a.Members[1].NAKs = b.Members[1].NAKs + 1 },
		"fewer RNR NAKs": func(a, b *Sample) { a.Members[1].RNRNAKs = b.Members[1].RNRNAKs + 1 },
		"fewer repairs":  func(a, b *Sample) { a.Members[1].Repaired = b.Members[1].Repaired + 1 },
		"fewer probes":   func(a, b *Sample) { a.Members[1].Probes = b.Members[1].Probes + 1 },
		"fewer late":     func(a, b *Sample) { a.Members[1].Spurious = b.Members[1].Spurious + 1 },
		"less waited":    func(a, b *Sample) { a.Members[1].Waited[2] = b.Members[1].Waited[2] + 1 },
		"more members":   func(a, b *Sample) { b.Members = append(b.Members, Reading{}) },
		"no time":        func(a, b *Sample) { b.At = a.At },
		"less busy":      func(a, b *Sample) { b.Busy = a.Busy - 1 },
		"fewer packets":  func(a, b *Sample) { b.Packets = a.Packets - 1 },
	} {
		a, b := after(time.Second, 100, what{source: true}, well(0), well(0))
		if change(&a, &b); Comparable(&a, &b) {
			t.Errorf("%s: comparable", name)
		}
	}
}
