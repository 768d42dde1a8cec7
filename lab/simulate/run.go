// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package simulate is `gleam sim`: it reads what is to be simulated, runs package sim,
// and writes results, tables and charts.
package simulate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/gleam-rdma/gleam/lab/sim"
	"github.com/gleam-rdma/gleam/lab/sim/parallel"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/lab/sim/workload"
	"github.com/gleam-rdma/gleam/lab/simulate/spec"
)

// options of a run.
type options struct {
	partitions int           // goroutines; 0: one for each CPU
	watchdog   time.Duration // simulated time without any completion after which a run ends; 0: never
	verify     bool          // run again with one partition, and compare
	flows      io.Writer     // nil: no file of flows
	observed   *observation
	silent     bool
	stderr     io.Writer
	build      string
}

// runPoint simulates a point. An interrupt leads to a partial result without an error, and a run in which nothing
// moves any more to one with an error.
func runPoint(ctx context.Context, p *spec.Point, o options) (*Result, error) {
	t, err := p.Network()
	if err != nil {
		return nil, err
	}
	parts := max(1, min(o.partitions, t.Pods))
	res := &Result{Study: p.Name(), Vars: vars(p), Address: p.Address, Build: o.build, Partitions: parts}
	began := time.Now()
	var hops uint64
	formulas := true
	var failed error
	for i := range p.Phases() {
		x := phaseRun{options: o, name: strings.TrimSpace(p.String())}
		out, err := x.simulate(ctx, p, t, i, parts)
		if out == nil {
			return nil, err
		}
		res.addMode(out.Mode)
		res.Phases = append(res.Phases, *out)
		res.JCT += out.JCT
		res.Analytic += out.Analytic
		formulas = formulas && out.Analytic > 0
		hops += out.Hops
		if failed = err; err != nil || out.Done < out.Flows {
			res.Partial = true
			break
		}
		if o.verify && parts > 1 {
			if err := x.compare(ctx, p, t, i, out.Hash); err != nil {
				return nil, err
			}
		}
	}
	if !formulas {
		res.Analytic = 0
	}
	res.Wall = time.Since(began).Seconds()
	res.HopsPerS = float64(hops) / max(res.Wall, 1e-9)
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err == nil {
		res.RSS = usage.Maxrss << 10
	}
	return res, failed
}

// phaseRun is the simulation of one phase.
type phaseRun struct {
	options
	name  string
	err   error
	moved int64         // completions and deliveries when the watchdog last looked
	since topology.Time // the time when they last changed
	exact bool          // the phase ends when packets have mixed with those of a train
}

// compare runs a phase with one partition.
func (x *phaseRun) compare(ctx context.Context, p *spec.Point, t *topology.Topology, i int, hash string) error {
	again := phaseRun{options: x.options, name: x.name + " (one partition)"}
	again.flows, again.observed = nil, nil
	one, err := again.simulate(ctx, p, t, i, 1)
	if err != nil || ctx.Err() != nil {
		return err
	}
	if one.Hash != hash {
		return fmt.Errorf("phase %s: hash %s with several partitions, but %s with one: report this as a bug, with the file", one.Name, hash, one.Hash)
	}
	return nil
}

// errDisplaced is the end of a phase whose trains have mixed with other packets.
var errDisplaced = errors.New("packets mixed with those of trains")

// simulate runs a phase. Where trains are to be exact and were not, it runs again without.
func (x *phaseRun) simulate(ctx context.Context, p *spec.Point, t *topology.Topology, i, parts int) (*Phase, error) {
	ph, err := p.Phase(t, i)
	if err != nil {
		return nil, err
	}
	if ph.Config.Train <= 1 || p.Inexact() {
		return x.run(ctx, ph, t, parts)
	}
	var lines bytes.Buffer
	first := phaseRun{options: x.options, name: x.name, exact: true}
	if x.flows != nil {
		first.flows = &lines
	}
	out, err := first.run(ctx, ph, t, parts)
	if errors.Is(err, errDisplaced) {
		if ph, err = p.Phase(t, i); err != nil { // its programs have state
			return nil, err
		}
		ph.Config.Train = 1
		return x.run(ctx, ph, t, parts)
	}
	if x.flows != nil {
		if _, failed := x.flows.Write(lines.Bytes()); err == nil {
			err = failed
		}
	}
	return out, err
}

func (x *phaseRun) run(ctx context.Context, ph *spec.Phase, t *topology.Topology, parts int) (*Phase, error) {
	cfg := ph.Config
	cfg.Partitions = parts
	rec := newRecord(parts, ph, x.flows)
	cfg.Record = rec.completed
	var err error
	if cfg.Taps, err = x.observed.begin(ph.Name, t); err != nil {
		return nil, err
	}
	saveMemory()
	s, err := sim.New(cfg)
	if err != nil {
		return nil, err
	}
	total := cfg.Program.Flows()
	line := newProgress(x.stderr, x.silent)
	name := strings.TrimSpace(x.name + " " + ph.Name)
	parallel.Run(s, math.MaxInt64, func() bool {
		rec.write()
		now, more := s.Next()
		if more {
			x.observed.write(s, now)
		}
		x.watch(now, s, t, ph)
		if x.exact && s.Displaced() > 0 {
			x.err = errDisplaced
		}
		if line.due() {
			r := s.Result()
			line.line(name, now, &r, total, s.UnderWay())
		}
		return x.err == nil && rec.err == nil && ctx.Err() == nil
	})
	line.end()
	rec.write()
	r := s.Result()
	x.observed.write(s, s.Now()+1)
	if x.exact && r.Displaced > 0 {
		x.err = errDisplaced
	}
	if x.err == nil && ctx.Err() == nil && r.Completed < total {
		x.err = fmt.Errorf("%s: nothing is under way any more, but %d of %d flows are completed%s", name, r.Completed, total, waiting(s, t, ph))
	}
	out := phaseResult(s, ph, &r, rec, total, t)
	if x.err != nil || rec.err != nil {
		return out, fmt.Errorf("simulate: %w", firstError(x.err, rec.err))
	}
	return out, nil
}

// saveMemory has garbage collected sooner than is usual: the registration of groups leaves twice as much of
// it as it takes memory, and a run leaves next to none.
func saveMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
}

// garbagePercent is the garbage that there may be before it is collected, of what is in use.
const garbagePercent = 25

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// watch ends a run in which no flow has moved for long.
func (x *phaseRun) watch(now topology.Time, s *sim.Simulation, t *topology.Topology, ph *spec.Phase) {
	if n := s.Moved(); n != x.moved {
		x.moved, x.since = n, now
	}
	limit := topology.Time(x.watchdog.Nanoseconds()) * topology.Nanosecond
	if x.watchdog > 0 && now-x.since > limit {
		x.err = fmt.Errorf("no flow was delivered or completed in the last %v of simulated time, at %.3f ms%s", x.watchdog, now.Seconds()*1e3, waiting(s, t, ph))
	}
}

// waiter says what a host waits for.
type waiter interface {
	Waiting(host topology.Node) string
}

// waiting lists what some groups and hosts wait for.
func waiting(s *sim.Simulation, t *topology.Topology, ph *spec.Phase) string {
	var b strings.Builder
	for _, line := range s.Stalled(8) {
		fmt.Fprintf(&b, "\n  %s", line)
	}
	left := 8
	for _, p := range ph.Programs {
		w, ok := p.Program.(waiter)
		for h := 0; ok && h < t.Hosts && left > 0; h++ {
			if text := w.Waiting(topology.Node(h)); text != "" {
				fmt.Fprintf(&b, "\n  host %s: %s", t.Name(topology.Node(h)), text)
				left--
			}
		}
	}
	return b.String()
}

// modeOf says how packets were simulated.
func modeOf(s *sim.Simulation, r *sim.Result) string {
	switch {
	case !s.Trains():
		return "packets"
	case r.Displaced == 0:
		return "trains, exact"
	}
	return "trains, not exact"
}

// phaseResult adds up what has happened.
func phaseResult(s *sim.Simulation, ph *spec.Phase, r *sim.Result, rec *record, total int64, t *topology.Topology) *Phase {
	out := &Phase{
		Mode: modeOf(s, r), Displaced: r.Displaced,
		Name: ph.Name, JCT: micro(r.LastDelivered), Completed: micro(r.LastCompleted), Flows: total, Done: r.Completed, Failed: r.Failed,
		Events: r.Events, Hops: r.Hops, NoRoute: r.NoRoute, Damaged: r.Damaged, Hash: fmt.Sprintf("%016x", r.Hash),
	}
	for n := range t.Hosts + t.Switches {
		for i, st := range s.PortStats(topology.Node(n)) {
			out.Dropped += st.Dropped
			out.Lost += st.Lost
			out.Marked += st.Marked
			out.Queue = max(out.Queue, micro(st.Longest))
			if min(n, int(t.Ports(topology.Node(n))[i].Peer)) >= t.Hosts {
				out.Fabric = max(out.Fabric, st.Bytes)
			}
		}
	}
	for i := range ph.Programs {
		p, got := &ph.Programs[i], rec.program(i)
		one := Program{Kind: p.Kind, Algorithm: p.Algorithm, Flows: p.Flows(), Done: got.flows, Last: micro(got.last), P50: micro(got.quantile(0.5)), P99: micro(got.quantile(0.99)), Max: micro(got.longest)}
		if p.Bytes > 0 && got.last > 0 && p.Kind != "storage" {
			one.Goodput = float64(p.Bytes) * 8 / got.last.Seconds() / 1e9
		}
		if w := rec.writes[i]; w != nil {
			one.Writes = w.result(s, len(ph.Programs) == 1)
		}
		if w, ok := p.Program.(*workload.Sync); ok {
			one.Whole = w.Whole()
			for _, h := range w.Trainers() {
				one.Sent = max(one.Sent, s.PortStats(h)[0].Bytes)
			}
		}
		one.Analytic = micro(formula(p, &ph.Config))
		if i == 0 {
			out.Analytic = one.Analytic
		}
		out.Programs = append(out.Programs, one)
	}
	return out
}
