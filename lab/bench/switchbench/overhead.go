// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/bench/stat"
)

// The overhead of observations is measured in one gleamd, whose observations begin and end
// while it runs: two gleamds differ by more, as each has its memory elsewhere. Each
// measurement with an observation lies between two without, and its ratio is to their mean.

// overheadRounds is the default number of rounds: enough for an interval of about 1 %.
const overheadRounds = 40

// acceptedOverhead is the part of CPU time that an observation may cost.
const acceptedOverhead = 0.01

// Overhead is what observations cost gleamd: the JSON output of --overhead.
type Overhead struct {
	Machine      Machine       `json:"machine"`
	Rounds       int           `json:"rounds"`
	Seconds      float64       `json:"seconds"`          // the time of each measurement
	Payload      int           `json:"payload"`          // bytes
	Legs         int           `json:"legs"`             // receivers
	Others       float64       `json:"others"`           // share of all CPUs that other programs took before the run
	InPPS        float64       `json:"in_pps"`           // the packets in a second without observation; median
	CPU          float64       `json:"thread_ns_per_in"` // gleamd's CPU time for a packet
	Observations []Observation `json:"observations"`

	Warnings []string `json:"warnings,omitempty"`
}

// Observation is the cost of one observation.
type Observation struct {
	Name    string  `json:"name"`
	What    string  `json:"what"`
	CPU     Ratio   `json:"thread_ns"` // gleamd's CPU time for each packet in, with to without
	InPPS   Ratio   `json:"in_pps"`    // packets in a second, with to without
	Verdict Verdict `json:"verdict"`
}

// Ratio is the median of the rounds' ratios, with its confidence interval.
type Ratio struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"` // Low to High has the median with at least 95 %, with 6 rounds or more
	High   float64 `json:"high"`
}

// Verdict is whether CPU is at most 1 + acceptedOverhead.
type Verdict string

// The verdicts.
const (
	Within    Verdict = "at most 1 %"   // the whole interval is
	Beyond    Verdict = "more than 1 %" // none of it is
	Undecided Verdict = "not known"     // the interval has values on both sides
)

func newRatio(values []float64) Ratio {
	low, high := stat.MedianInterval(values)
	round := func(v float64) float64 { return math.Round(v*1e4) / 1e4 }
	return Ratio{round(stat.Median(values)), round(low), round(high)}
}

// minIntervalRounds is the number of rounds from which on a Ratio has an interval of 95 %.
const minIntervalRounds = 6

func judgeOverhead(cpu Ratio, rounds int) Verdict {
	switch {
	case rounds < minIntervalRounds:
		return Undecided
	case cpu.High <= 1+acceptedOverhead:
		return Within
	case cpu.Low > 1+acceptedOverhead:
		return Beyond
	}
	return Undecided
}

// load is one measurement of gleamd with more than it can take.
type load struct{ cpu, in float64 } // ns of its threads for each packet in; packets in a second

// between returns the ratios of with to the mean of what was measured before and after it.
func between(before, with, after load) (cpu, in float64) {
	return 2 * with.cpu / (before.cpu + after.cpu), 2 * with.in / (before.in + after.in)
}

// RunOverhead measures what observations cost gleamd. o has one case. say gets progress
// messages.
func RunOverhead(ctx context.Context, o Options, say func(format string, args ...any)) (_ *Overhead, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	c := benchCase{o.Payloads[0], o.Legs[0]}
	own := newResult(&o)
	r := &Overhead{Machine: own.Machine, Rounds: o.Rounds, Seconds: own.Seconds, Payload: c.payload, Legs: c.legs}
	b := &switchBench{opts: o, log: say, meter: meter{softirqThreads: softirqThreads()}, result: own}
	if b.worker, b.generator, err = lab.TwoCPUs(); err != nil {
		return nil, err
	}
	if r.Others, err = machineLoad(ctx); err != nil {
		return nil, err
	}
	if r.Others > busyShare {
		own.warn(say, fmt.Sprintf("other programs take %.0f %% of this machine's CPU time: intervals become wider", 100*r.Others))
	}
	stages := make(map[*method]*testbed)
	defer func() {
		for _, s := range stages {
			err = errors.Join(err, s.Close())
		}
	}()
	say("%s: setting up", c)
	zero, _, err := b.open(ctx, generatorMethod, c, stages)
	if err != nil {
		return nil, err
	}
	x := &measurement{row: measuredRow{name: gleamdRow, method: gleamdMethod, ackEvery: sparseAcks}}
	if x.testbed, x.reason, err = b.open(ctx, gleamdMethod, c, stages); err != nil {
		return nil, err
	}
	if x.reason != "" {
		return nil, fmt.Errorf("%s: %s", c, x.reason)
	}
	l, err := b.observeInTurn(ctx, x, zero)
	if err != nil {
		return nil, err
	}
	r.fill(l, own.Warnings)
	return r, nil
}

// overheadRatios are what was measured.
type overheadRatios struct {
	cpu, in [][]float64 // the ratios with to without, by observation and round
	without []load
}

// observeInTurn measures gleamd with each observation in each round, and without any between.
func (b *switchBench) observeInTurn(ctx context.Context, x *measurement, zero *testbed) (*overheadRatios, error) {
	l := &overheadRatios{cpu: make([][]float64, len(observations)), in: make([][]float64, len(observations))}
	last, err := b.observed(ctx, x, &observations[0])
	if err != nil {
		return nil, err
	}
	for round := range b.opts.Rounds {
		b.log("%s: round %d of %d", x.testbed.benchCase, round+1, b.opts.Rounds)
		if b.generatorCost, err = b.meter.measureGenerator(ctx, zero, max(b.opts.Duration/4, 50*time.Millisecond)); err != nil {
			return nil, err
		}
		for i := range observations {
			k := (i + round) % len(observations) // so that none is always behind the same one
			ob := &observations[k]
			with, err := b.observed(ctx, x, ob)
			if err != nil {
				return nil, err
			}
			next, err := b.observed(ctx, x, &observations[0])
			if err != nil {
				return nil, err
			}
			cpu, in := between(last, with, next)
			if ob.builtIn { // begin has taken it away
				cpu, in = 1/cpu, 1/in
			}
			l.cpu[k], l.in[k] = append(l.cpu[k], cpu), append(l.in[k], in)
			l.without, last = append(l.without, next), next
		}
	}
	return l, nil
}

// fill sets the numbers of r.
func (r *Overhead) fill(l *overheadRatios, warnings []string) {
	for k, ob := range observations {
		x := Observation{Name: ob.name, What: ob.what, CPU: newRatio(l.cpu[k]), InPPS: newRatio(l.in[k])}
		x.Verdict = judgeOverhead(x.CPU, r.Rounds)
		r.Observations = append(r.Observations, x)
	}
	var cpu, in []float64
	for _, x := range l.without {
		cpu, in = append(cpu, x.cpu), append(in, x.in)
	}
	r.CPU, r.InPPS, r.Warnings = math.Round(stat.Median(cpu)), math.Round(stat.Median(in)), warnings
}

// observed measures gleamd with an observation.
func (b *switchBench) observed(ctx context.Context, x *measurement, ob *observation) (l load, err error) {
	end, err := ob.begin(x.testbed)
	if err != nil {
		return l, fmt.Errorf("%s: %w", ob.name, err)
	}
	defer func() {
		if endErr := end(); endErr != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", ob.name, endErr))
		}
	}()
	runtime.GC() // what beginning has left costs once
	if err := b.saturate(ctx, x); err != nil {
		return l, err
	}
	n := len(x.in) - 1
	return load{cpu: x.threadNS[n] * float64(x.testbed.benchCase.legs), in: x.in[n]}, nil
}
