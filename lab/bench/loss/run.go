// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package loss

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/bench/machine"
	"github.com/gleam-rdma/gleam/lab/bench/stat"
	"github.com/gleam-rdma/gleam/lab/testbed"
)

// runDir holds a directory for each run: gleamd's configuration, key and socket.
const runDir = "/run/gleam-lab/bench-loss"

// warmUp is the time of traffic before a measurement: memory is touched for the first
// time, neighbours are resolved.
const warmUp = 100 * time.Millisecond

// sustains is the share of its link's rate that a sender has to reach without
// loss: below, the machine and not the link is the bottleneck.
const sustains = 0.95

// lossBench is one run of the benchmark.
type lossBench struct {
	opts    *Options
	log     io.Writer
	start   time.Time
	elapsed time.Duration // the time in measurements of the plan
	done    int           // the number of these
	result  *Result
}

// Run does all measurements. say gets progress messages.
func Run(ctx context.Context, o Options, here machine.Machine, say io.Writer) (*Result, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	b := &lossBench{opts: &o, log: say, start: time.Now(), result: &Result{
		Machine: here, PathMTU: o.MTU, MessageSize: o.MessageSize, Depth: o.Depth,
		TimeoutMS: float64(int(4096)<<o.Timeout) / 1e6, RepairTimeoutMS: float64(o.RepairTimeout) / 1e6, Rounds: o.Rounds, Seconds: o.Duration.Seconds(), Seed: o.Seed,
	}}
	for _, n := range o.Receivers {
		if err := b.measureReceivers(ctx, n); err != nil {
			return nil, err
		}
	}
	return b.result, nil
}

func (b *lossBench) printf(format string, args ...any) { fmt.Fprintf(b.log, format+"\n", args...) }

// measureReceivers does all measurements with that number of receivers, in a lab of
// their own.
func (b *lossBench) measureReceivers(ctx context.Context, receivers int) (err error) {
	c := testbed.Config{
		Dir: runDir, Gleamd: b.opts.Gleamd, FastPath: b.opts.FastPath, More: fmt.Sprintf("repair: {timeout: %v}\n", b.opts.RepairTimeout),
		Star: lab.StarConfig{Hosts: receivers + 2, MTU: testbed.PortMTU(b.opts.MTU)}, // the sender, and the control receiver
	}
	st, err := testbed.Build(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	link := Link{Receivers: receivers}
	if link.Unpaced, err = b.calibrate(ctx, st, receivers); err != nil {
		return fmt.Errorf("measure how fast this machine is: %w", err)
	}
	link.Mbits = b.rate(link.Unpaced, receivers)
	b.result.Links = append(b.result.Links, link)
	samples, err := b.rounds(ctx, st, receivers, link.Mbits)
	if err != nil {
		return err
	}
	cases := b.opts.cases(receivers)
	goodputs := make(map[lossCase][]float64)
	for i, c := range cases {
		for _, m := range samples[i] {
			goodputs[c] = append(goodputs[c], m.goodput)
		}
	}
	for i, c := range cases {
		b.result.Rows = append(b.result.Rows, summarize(c, samples[i], goodputs[c.withoutLoss()]))
	}
	return nil
}

// passes are how often calibrate measures; the first is short, to warm up.
const passes = 3

// calibrate measures the unpaced maximum of every kind of connection: the best
// of some interleaved tries, because whatever else the machine does only makes
// it slower.
func (b *lossBench) calibrate(ctx context.Context, st *testbed.Testbed, receivers int) (found []Max, err error) {
	s, err := open(ctx, b.opts, st, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	for pass := range passes {
		i := 0
		for _, c := range b.opts.cases(receivers) {
			if c.loss > 0 {
				continue
			}
			d := max(b.opts.Duration/passes, warmUp)
			if pass == 0 {
				found = append(found, Max{Mode: c.mode, Repair: c.repair})
				d = warmUp
			}
			m, err := s.measure(c, d, 0)
			if err != nil {
				return nil, fmt.Errorf("%s, unpaced: %w", c, err)
			}
			found[i].Goodput = max(found[i].Goodput, m.goodput)
			i++
		}
	}
	for _, m := range found {
		b.printf("%s, unpaced: %s MB/s", lossCase{receivers: receivers, mode: m.Mode, repair: m.Repair}, megabytes(m.Goodput))
	}
	return found, nil
}

// rate is that of the sender's link in Mbit/s: the option's, or a share of the slowest
// kind of group's maximum; unicasts, which copy at the sender, share it.
func (b *lossBench) rate(unpaced []Max, receivers int) float64 {
	if b.opts.Rate > 0 {
		return b.opts.Rate
	}
	least := 0.0
	for _, m := range unpaced {
		goodput := m.Goodput
		if m.Mode == Unicast {
			if len(b.opts.Repair) > 0 {
				continue
			}
			goodput *= float64(receivers + 1)
		}
		if least == 0 || goodput < least {
			least = goodput
		}
	}
	s := endpoints{o: b.opts}
	wire := float64(s.wireBytes()) / float64(b.opts.MessageSize)
	return max(least*wire*8/1e6*b.opts.Load, minRate)
}

// rounds measures every case once in each round. Each round begins with another case,
// so that the machine's other load affects all of them.
func (b *lossBench) rounds(ctx context.Context, st *testbed.Testbed, receivers int, mbits float64) (samples [][]sample, err error) {
	s, err := open(ctx, b.opts, st, int64(mbits*1e6))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	cases := b.opts.cases(receivers)
	for _, c := range cases {
		if c.loss == 0 {
			if _, err := s.measure(c, warmUp, 0); err != nil {
				return nil, fmt.Errorf("%s: %w", c, err)
			}
		}
	}
	samples = make([][]sample, len(cases))
	for round := range b.opts.Rounds {
		for k := range cases {
			i := (k + round*len(cases)/b.opts.Rounds) % len(cases)
			began := time.Now()
			m, err := s.measure(cases[i], b.opts.Duration, b.seed(cases[i], round))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", cases[i], err)
			}
			samples[i] = append(samples[i], m)
			b.elapsed += time.Since(began)
			b.done++
		}
		b.progress(receivers, round)
	}
	b.warn(s, cases, samples, mbits)
	return samples, nil
}

// seed is the same for all kinds of connections: they lose the same frames, as far as
// they send the same. Different seeds are 128 apart, and a receiver's number is less.
func (b *lossBench) seed(c lossCase, round int) uint64 {
	n := b.opts.Seed*1_000_003 + uint64(round)
	for i, l := range b.opts.Loss {
		if l == c.loss {
			n = n*31 + uint64(i)
		}
	}
	for i, v := range b.opts.Burst {
		if v == c.burst {
			n = n*31 + uint64(i)
		}
	}
	return n * 128
}

// progress prints the state of the run.
func (b *lossBench) progress(receivers, round int) {
	left := b.opts.measurements() - b.done
	guess := (b.elapsed / time.Duration(b.done) * time.Duration(left)).Round(time.Second)
	b.printf("%d receivers: round %d of %d done after %v; about %v left", receivers, round+1, b.opts.Rounds,
		time.Since(b.start).Round(time.Second), guess)
}

// warn prints a warning if the machine was too slow for the link's rate.
func (b *lossBench) warn(s *endpoints, cases []lossCase, samples [][]sample, mbits float64) {
	for i, c := range cases {
		if c.loss > 0 {
			continue
		}
		var reached []float64
		for _, m := range samples[i] {
			streams := 1.
			if c.mode == Unicast {
				streams = float64(len(s.hosts) - 1)
			}
			reached = append(reached, m.goodput*streams*float64(s.wireBytes())/float64(b.opts.MessageSize)*8/1e6)
		}
		if got := stat.Median(reached); got < sustains*mbits {
			b.printf("WARNING: %s: the sender reaches %.1f of its link's %.1f Mbit/s; the machine is the bottleneck, and ratios say less: give a lower --rate or --load", c, got, mbits)
		}
	}
}
