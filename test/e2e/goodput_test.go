// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/test/labtest"
)

// minGoodput is the share of the goodput that has to be left under a flood, relative to
// the goodput beside as many harmless frames, or to that without any: less means that
// the attack costs more than its frames do. The race detector makes the switch's share
// of the CPU several times as large as that of the generator.
var minGoodput = map[bool]float64{false: 0.9, true: 0.4}[raceEnabled]

// floodSlice is the duration of a flood before the next kind. The machine's other work
// changes within seconds, and concerns neighbouring slices alike.
const floodSlice = 200 * time.Millisecond

// Rounds of a measurement, each with a slice of every kind: the least, and the most if
// the median does not suffice before.
const (
	leastRounds = 3
	mostRounds  = 24
)

// floodRounds is how many rounds to measure: as many as GLEAM_FLOODS has slices, such as
// 20s; 0 if it is not set.
func floodRounds(t testing.TB) int {
	s := os.Getenv("GLEAM_FLOODS")
	if s == "" {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatalf("GLEAM_FLOODS: %v", err)
	}
	return max(leastRounds, int(d/floodSlice))
}

// slice is the progress of a transfer in one slice of time.
type slice struct {
	goodput float64 // bytes a second
	cpu     float64 // ns for each byte, of this process without the generator
	used    float64 // these ns in all
	frames  int     // frames of the flood
}

// perFrame is the CPU time of a frame of the flood, in ns, without that of the
// transfer, whose cost for each byte is that of o.
func (s *slice) perFrame(o *slice) float64 { return s.used * (1 - o.cpu/s.cpu) / float64(s.frames) }

// measure watches the transfer for a slice, beside a flood of the frames (nil: none).
func (w *watch) measure(t testing.TB, a *attacker, rate int, frame func(i int) []byte) (s slice, f *flood) {
	t.Helper()
	cpu, n := processTime(), w.done.Load()
	if frame != nil {
		f = a.flood(rate, 0, frame)
	}
	s.goodput = w.goodput(floodSlice)
	used := processTime() - cpu
	bytes := w.done.Load() - n
	if f != nil {
		s.frames, _ = f.end(t)
		used -= f.cpu
	}
	s.used, s.cpu = float64(used), float64(used)/float64(max(bytes, 1))
	return s, f
}

// withstands watches a transfer while a floods at the rate, and checks that it loses
// nothing but the CPU time that generating the frames takes: goodput is compared with
// that of a slice without a flood, and with that beside as many harmless frames.
func (r *rig) withstands(t *testing.T, a *attacker, rate int, frame func(i int) []byte) {
	t.Helper()
	machine := labtest.Watch()
	w := r.watch()
	w.goodput(floodSlice / 2) // the first messages: neighbours are resolved, buffers grow
	none := a.beside
	if none == nil {
		none = [][]byte{a.harmless(len(frame(0)))}
	}
	var x contest
	rounds := floodRounds(t)
	most := mostRounds
	if rounds > 0 {
		most = rounds
	}
	for x.rounds() < most && (x.rounds() < max(rounds, leastRounds) || !x.passed()) {
		s, _ := w.measure(t, a, 0, nil)
		x.calm = append(x.calm, s)
		harmless := func() {
			s, f := w.measure(t, a, rate, func(i int) []byte { return none[i%len(none)] })
			x.harmless, x.beside, x.besides = append(x.harmless, s), x.beside+f.cpu, x.besides+f.sent
		}
		hostile := func() {
			s, f := w.measure(t, a, rate, func(i int) []byte { return frame(x.frames + i) })
			x.hostile = append(x.hostile, s)
			x.frames, x.cpu, x.took = x.frames+f.sent, x.cpu+f.cpu, x.took+f.took
		}
		if x.rounds()%2 == 1 {
			harmless()
			hostile()
		} else {
			hostile()
			harmless()
		}
	}
	w.end(t)
	t.Logf("%v; other programs used %.2f CPUs", &x, machine.Others())
	if rounds > 0 {
		t.Logf("parts of harmless by round: %.3f", x.shares(x.harmless))
	}
	if !x.passed() {
		t.Run("goodput", func(t *testing.T) { // a subtest of its own, so that the others' checks go on if it is skipped
			machine.Timing(t, "%v: want %.0f %% of one of them", &x, 100*minGoodput)
		})
	}
}

// contest is the progress of a transfer without a flood, beside harmless and beside
// hostile frames, in turn.
type contest struct {
	calm, harmless, hostile []slice
	frames, besides         int // hostile and harmless ones
	took, cpu, beside       time.Duration
}

func (x *contest) rounds() int { return len(x.calm) }

func (x *contest) passed() bool {
	return x.share(x.harmless) >= minGoodput || x.share(x.calm) >= minGoodput
}

// share is the median ratio of the hostile slices to others of the same round.
func (x *contest) share(of []slice) float64 { return middle(x.shares(of)) }

func (x *contest) shares(of []slice) (list []float64) {
	for i, s := range x.hostile {
		list = append(list, s.goodput/of[i].goodput)
	}
	return list
}

func (x *contest) String() string {
	goodput := func(list []slice) float64 {
		return median(list, func(s slice) float64 { return s.goodput }) / 1e6
	}
	shares := x.shares(x.harmless)
	slices.Sort(shares)
	n := len(shares)
	perFrame := func(list []slice) float64 {
		var ns []float64
		for i := range list {
			ns = append(ns, list[i].perFrame(&x.calm[i]))
		}
		return middle(ns)
	}
	return fmt.Sprintf("%d hostile frames at %.0f/s in %d rounds: goodput %.1f MB/s before, %.1f beside harmless frames, %.1f beside these; %.0f %% of before, %.1f %% of harmless (half of the rounds %.0f to %.0f %%); a harmless frame costs %.0f ns of CPU beside %.0f of the generator, a hostile one %.0f beside %.0f",
		x.frames, float64(x.frames)/x.took.Seconds(), x.rounds(), goodput(x.calm), goodput(x.harmless), goodput(x.hostile),
		100*x.share(x.calm), 100*x.share(x.harmless), 100*shares[n/4], 100*shares[n-1-n/4],
		perFrame(x.harmless), float64(x.beside)/float64(x.besides), perFrame(x.hostile), float64(x.cpu)/float64(x.frames))
}

func median(list []slice, of func(slice) float64) float64 {
	var values []float64
	for _, s := range list {
		values = append(values, of(s))
	}
	return middle(values)
}

func middle(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// processTime is the CPU time of this process, with the kernel's immediate work for its
// frames.
func processTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // fails for a bad argument only
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
