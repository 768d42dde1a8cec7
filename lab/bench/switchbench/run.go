// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/gleam-rdma/gleam/lab"
)

// Factors of the offered load, relative to a row's measured throughput.
const (
	overload = 1.5 // a load by which the row, not the offer, is the bottleneck
	lossLoad = 0.9 // where loss is measured
)

// switchBench is one run of the benchmark.
type switchBench struct {
	opts          Options
	log           func(format string, args ...any)
	meter         meter
	worker        int // CPUs; -1 any
	generator     int
	rows          []measuredRow
	result        *Result
	generatorCost generatorCost // the generator's cost in this round
}

// Run measures all rows and cases. say gets progress messages.
func Run(ctx context.Context, o Options, say func(format string, args ...any)) (*Result, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	b := &switchBench{opts: o, log: say, meter: meter{softirqThreads: softirqThreads()}, rows: o.rows(), result: newResult(&o)}
	var err error
	if b.worker, b.generator, err = lab.TwoCPUs(); err != nil {
		return nil, err
	}
	others, err := machineLoad(ctx)
	if err != nil {
		return nil, err
	}
	if others > busyShare {
		b.result.warn(b.log, fmt.Sprintf("other programs take %.0f %% of this machine's CPU time: the rows share it with them, and their ratios say less", 100*others))
	}
	for _, p := range o.Payloads {
		for _, l := range o.Legs {
			if err := b.measureCase(ctx, benchCase{p, l}); err != nil {
				return nil, err
			}
		}
	}
	b.result.judge()
	for _, w := range b.result.unsteady() {
		b.result.warn(b.log, w)
	}
	return b.result, nil
}

// measurement is one row in one case.
type measurement struct {
	row         measuredRow
	testbed     *testbed
	reason      string  // why it is not measured; "" if it is
	best        float64 // the highest measured in_pps
	in          []float64
	out         []float64
	offered     []float64
	threadNS    []float64
	softirqNS   []float64
	loss        []float64
	fast        []float64
	repeated    []float64
	unsaturated int // rounds in which all that was offered was taken
}

func (x *measurement) String() string { return fmt.Sprintf("%s, %s", x.row.name, x.testbed.benchCase) }

// measureCase measures all rows of one case.
func (b *switchBench) measureCase(ctx context.Context, c benchCase) (err error) {
	stages := make(map[*method]*testbed)
	defer func() {
		for _, s := range stages {
			err = errors.Join(err, s.Close())
		}
	}()
	b.log("%s: setting up", c)
	zero, _, err := b.open(ctx, generatorMethod, c, stages)
	if err != nil {
		return err
	}
	var measurements []*measurement
	for _, r := range b.rows {
		x := &measurement{row: r}
		if x.testbed, x.reason, err = b.open(ctx, r.method, c, stages); err != nil {
			return err
		}
		measurements = append(measurements, x)
	}
	runtime.GC() // garbage of the setup
	for round := range b.opts.Rounds {
		b.log("%s: round %d of %d", c, round+1, b.opts.Rounds)
		if b.generatorCost, err = b.meter.measureGenerator(ctx, zero, max(b.opts.Duration/4, 50*time.Millisecond)); err != nil {
			return err
		}
		for _, x := range measurements {
			if x.reason != "" {
				continue
			}
			if err := b.saturate(ctx, x); err != nil {
				return err
			}
			if err := b.measureLoss(ctx, x); err != nil {
				return err
			}
		}
	}
	for _, x := range measurements {
		b.result.Rows = append(b.result.Rows, x.result(c))
	}
	if c == targetCase && b.opts.Latency {
		return b.latency(ctx, measurements)
	}
	return nil
}

// open returns the testbed of a method, set up and probed, or the reason for which
// there is none.
func (b *switchBench) open(ctx context.Context, w *method, c benchCase, stages map[*method]*testbed) (*testbed, string, error) {
	if s := stages[w]; s != nil {
		return s, s.unservable, nil
	}
	if w.unservable != nil {
		if why := w.unservable(c); why != "" {
			return nil, why, nil
		}
	}
	s, err := openTestbed(w, c, b.worker, b.generator)
	var cannot *unservableError
	if errors.As(err, &cannot) {
		return nil, cannot.reason, nil
	}
	if err != nil {
		return nil, "", err
	}
	stages[w] = s
	s.unservable, err = b.meter.probe(ctx, s)
	return s, s.unservable, err
}

// pace is the offered rate of a row, with its rhythm of ACKs.
func (r *measuredRow) pace(rate float64) pace {
	return pace{rate: rate, ackEvery: r.ackEvery, ackJump: 4096, window: r.window}
}

// warm is the time for which a measurement waits for a steady state.
func (b *switchBench) warm() time.Duration { return min(b.opts.Duration/4, 100*time.Millisecond) }

// saturate measures one row with more than it can take. Where it turns out to
// take all of it, which is so when the machine was busy before, more is offered.
func (b *switchBench) saturate(ctx context.Context, x *measurement) error {
	legs := float64(x.testbed.benchCase.legs)
	if x.best == 0 {
		o, err := b.measure(ctx, x, 0, b.opts.Duration/2)
		if err != nil {
			return err
		}
		x.best = o.outRate() / legs
	}
	var o *outcome
	full := false
	for try, rate := 0, overload*x.best; try < saturateTries && !full; try++ {
		var err error
		if o, err = b.measure(ctx, x, rate, b.opts.Duration); err != nil {
			return err
		}
		x.best = max(x.best, o.outRate()/legs)
		if full = o.saturated(x.row.method, rate, legs); !full && o.offeredRate() < 0.8*rate {
			break // the generator has no more
		}
		rate *= 1.5
	}
	if !full {
		x.unsaturated++
	}
	x.fast = append(x.fast, float64(o.fast)/max(1, float64(o.copies)/legs))
	own, soft := o.costs(x.row.method, b.generatorCost)
	x.in, x.out, x.offered = append(x.in, o.outRate()/legs), append(x.out, o.outRate()), append(x.offered, o.offeredRate())
	x.threadNS, x.softirqNS = append(x.threadNS, own), append(x.softirqNS, soft)
	return nil
}

// saturateTries is how often more is offered in one round.
const saturateTries = 5

// saturated reports whether the offered rate was above the throughput: frames were
// lost, or the method slowed down the generator on its CPU.
func (o *outcome) saturated(w *method, rate, legs float64) bool {
	return o.outRate()/legs < 0.97*o.offeredRate() || !w.user && o.offeredRate() < 0.95*rate
}

// measureLoss measures one row's loss at a little less than the throughput just
// measured, which changes with the machine's other load.
func (b *switchBench) measureLoss(ctx context.Context, x *measurement) error {
	o, err := b.measure(ctx, x, lossLoad*x.in[len(x.in)-1], b.opts.Duration)
	if err != nil {
		return err
	}
	x.loss = append(x.loss, o.loss())
	x.repeated = append(x.repeated, float64(o.repeated)/float64(o.copies))
	return nil
}

// A measurement without any received frame is repeated measureTries times, each time twice as long up to
// longestTry: a busy machine may not have run the generator, or the method's threads, at all.
const (
	measureTries = 10
	longestTry   = 2 * time.Second
)

// errStarved is the cause where nothing ran, or arrived, in measureTries measurements.
var errStarved = errors.New("the machine is too busy")

// untilSeen repeats a measurement of d until it has seen something.
func untilSeen(d time.Duration, name fmt.Stringer, measure func(time.Duration) (seen bool, err error)) error {
	for range measureTries {
		if seen, err := measure(d); err != nil || seen {
			return err
		}
		d = max(d, min(2*d, longestTry))
	}
	return fmt.Errorf("%s: nothing was sent, or arrived, in %d measurements of up to %v: %w", name, measureTries, d, errStarved)
}

// measure is one measurement of a row at a rate; 0 is as fast as it goes.
func (b *switchBench) measure(ctx context.Context, x *measurement, rate float64, d time.Duration) (o *outcome, err error) {
	err = untilSeen(d, x, func(d time.Duration) (bool, error) {
		if o, err = b.meter.run(ctx, x.testbed, x.row.pace(rate), b.warm(), d); err != nil {
			return false, err
		}
		return o.copies > 0, nil
	})
	return o, err
}
