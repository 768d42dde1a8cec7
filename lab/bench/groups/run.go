// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/bench/machine"
	"github.com/gleam-rdma/gleam/lab/testbed"
)

// runDir holds a directory for each run.
const runDir = "/run/gleam-bench-groups"

// umemFrames are those of gleamd, a power of two: for the rings of all ports and for what is in
// flight.
const umemFrames = 1 << 16

// fastMemory is what the rings of all groups on the fast path share.
const fastMemory = 64 << 20

// run is one run under way.
type run struct {
	opts   *Options
	log    io.Writer
	bed    *testbed.Testbed
	groups []*group
	res    *Row
}

// Run makes the groups and measures, for each number of members and of groups.
func Run(ctx context.Context, o Options, m machine.Machine, log io.Writer) (*Result, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	res := &Result{Machine: m, Payload: o.Payload, Parallel: o.Parallel}
	for _, members := range o.Members {
		for _, groups := range o.Groups {
			row, err := runOne(ctx, &o, groups, members, log)
			if err != nil {
				return nil, fmt.Errorf("%d groups of %d members: %w", groups, members, err)
			}
			res.Rows = append(res.Rows, *row)
		}
	}
	return res, nil
}

// runOne makes groups and measures.
func runOne(ctx context.Context, o *Options, groups, members int, log io.Writer) (_ *Row, err error) {
	worker, pumpCPU, err := lab.TwoCPUs()
	if err != nil {
		return nil, err
	}
	r := &run{opts: o, log: log, res: &Row{Groups: groups, Members: members}}
	more := ""
	if o.FastPath {
		more = fmt.Sprintf("fast_path_memory: %d\n", fastMemory)
	}
	r.bed, err = testbed.Build(ctx, testbed.Config{
		Dir: runDir, Star: lab.StarConfig{Hosts: members}, Gleamd: o.Gleamd, Groups: groups, Frames: umemFrames, FastPath: o.FastPath,
		// One master registers all groups.
		Envelope: fmt.Sprintf("  lease_max: %v\n", lease), Limits: "  envelopes_per_port: 0\n  envelopes_per_address: 0\n",
		// The receivers are no queue pairs: they answer no probe, whether of their PSN or
		// because they are silent. A worker that spins would have CPU time for nothing.
		More: fmt.Sprintf("psn_probe: 0s\nrepair: {timeout: 10s}\nworker: {cpu: %d, spin: 0s}\n", worker) + more,
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.bed.Close()) }()
	mk, err := newMaker(o, r.bed)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, mk.close()) }()
	if err := r.register(ctx, mk); err != nil {
		return nil, err
	}
	if err := r.forward(ctx, pumpCPU); err != nil {
		return nil, err
	}
	r.res.summarize()
	return r.res, nil
}

// register makes the groups, and measures the time and gleamd's memory.
func (r *run) register(ctx context.Context, mk *maker) error {
	before, err := r.bed.Gleamd.Process.Resident()
	if err != nil {
		return err
	}
	cpuBefore, err := r.bed.Gleamd.Process.CPUTime()
	if err != nil {
		return err
	}
	var done atomic.Int64
	start := time.Now()
	r.groups, err = mk.make(ctx, r.res.Groups, func() {
		if n := done.Add(1); n%1000 == 0 {
			fmt.Fprintf(r.log, "%d groups after %.1f s\n", n, time.Since(start).Seconds())
		}
	})
	r.res.Seconds = time.Since(start).Seconds()
	if err != nil {
		return err
	}
	after, err := r.bed.Gleamd.Process.Resident()
	if err != nil {
		return err
	}
	cpuAfter, err := r.bed.Gleamd.Process.CPUTime()
	if err != nil {
		return err
	}
	r.res.RegistrationCPU = float64((cpuAfter - cpuBefore).Microseconds()) / float64(r.res.Groups)
	r.res.MemoryBefore, r.res.MemoryAfter = before, after
	fmt.Fprintf(r.log, "gleamd's memory: %.1f MB, and %.1f MB with %d groups\n", float64(before)/1e6, float64(after)/1e6, r.res.Groups)
	s, err := r.bed.Client.Stats(ctx)
	if err == nil && s.Groups != r.res.Groups {
		err = fmt.Errorf("gleamd has %d groups, not %d", s.Groups, r.res.Groups)
	}
	return err
}

// forward measures the packets a second into one group, and into all in turn.
func (r *run) forward(ctx context.Context, cpu int) (err error) {
	s, err := newSinks(r.bed.Star.Hosts, r.res.Groups)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	p, err := newPump(r.opts, s, r.bed.Star)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	ended := make(chan error)
	go func() { ended <- r.rounds(ctx, p, cpu) }()
	if err := <-ended; err != nil {
		return r.explain(ctx, err)
	}
	return nil
}

// explain adds what gleamd did not serve to an error.
func (r *run) explain(ctx context.Context, err error) error {
	if s, serr := r.bed.Client.Stats(ctx); serr == nil {
		err = fmt.Errorf("%w\ngleamd dropped %v, and did not serve %v", err, s.Drops, s.Normal)
	}
	if ports, perr := r.bed.Client.Ports(ctx); perr == nil {
		err = fmt.Errorf("%w\nport of the source: %+v", err, ports[0])
	}
	return err
}

// rounds runs in a goroutine of its own, whose thread ends with it: it stays on a CPU.
func (r *run) rounds(ctx context.Context, p *pump, cpu int) error {
	runtime.LockOSThread()
	if err := lab.StayOn(cpu); err != nil {
		return err
	}
	for _, warm := range [][]*group{r.groups[:1], r.groups} {
		if _, err := p.run(ctx, warm, r.opts.Duration/4, len(warm)); err != nil {
			return err
		}
	}
	before, err := r.bed.Client.Stats(ctx)
	if err != nil {
		return err
	}
	sent := p.sent
	for range r.opts.Rounds {
		one, oneCPU, oneFast, err := r.measure(ctx, p, r.groups[:1])
		if err != nil {
			return err
		}
		all, allCPU, allFast, err := r.measure(ctx, p, r.groups)
		if err != nil {
			return err
		}
		fmt.Fprintf(r.log, "one group: %.1f kpps in, %.1f µs of CPU time for each; %d groups: %.1f kpps in, %.1f µs; %d NAKs so far\n", one/1e3, oneCPU, len(r.groups), all/1e3, allCPU, p.asked)
		if r.opts.FastPath {
			if err := r.countFast(ctx); err != nil {
				return err
			}
			r.res.OneFast, r.res.AllFast = append(r.res.OneFast, oneFast), append(r.res.AllFast, allFast)
			fmt.Fprintf(r.log, "by XDP: one group %.1f %%, %d groups %.1f %% of the packets; %d of these groups now, their rings by slots %v\n",
				100*oneFast, len(r.groups), 100*allFast, r.res.Fast.Now, r.res.Fast.Slots)
		}
		r.res.OnePPS, r.res.AllPPS = append(r.res.OnePPS, one), append(r.res.AllPPS, all)
		r.res.OneCPU, r.res.AllCPU = append(r.res.OneCPU, oneCPU), append(r.res.AllCPU, allCPU)
	}
	after, err := r.bed.Client.Stats(ctx)
	if err != nil {
		return err
	}
	return r.res.account(before, after, p.sent-sent)
}

// measure returns the packets a second, gleamd's CPU time for each in microseconds, and what part of them XDP has
// replicated.
func (r *run) measure(ctx context.Context, p *pump, groups []*group) (pps, cpu, fast float64, err error) {
	before, err := r.bed.Gleamd.Process.CPUTime()
	if err != nil {
		return 0, 0, 0, err
	}
	fastBefore, err := testbed.FastPackets(ctx, r.bed.Client)
	if err != nil {
		return 0, 0, 0, err
	}
	sent := p.sent
	if pps, err = p.run(ctx, groups, r.opts.Duration, 0); err != nil {
		return 0, 0, 0, err
	}
	after, err := r.bed.Gleamd.Process.CPUTime()
	if err != nil {
		return 0, 0, 0, err
	}
	fastAfter, err := testbed.FastPackets(ctx, r.bed.Client)
	n := float64(p.sent - sent)
	return pps, float64((after - before).Microseconds()) / n, float64(fastAfter-fastBefore) / n, err
}

// countFast counts the groups that XDP has ever replicated, and those that it replicates now.
func (r *run) countFast(ctx context.Context) error {
	list, err := r.bed.Client.Groups(ctx)
	if err != nil {
		return err
	}
	x := FastGroups{Slots: make(map[int]int), Why: make(map[string]int)}
	for i := range list {
		g := &list[i]
		f := g.FastPath
		if f == nil {
			return fmt.Errorf("group %s says nothing of the fast path", g.IP)
		}
		if f.Packets > 0 {
			x.Ever++
		}
		if f.Way == api.WayFast {
			x.Now++
		} else {
			x.Why[f.Word]++
		}
		x.Slots[f.Ring]++
	}
	r.res.Fast = &x
	return nil
}

// notOfData counts envelopes and what is for the kernel: hosts of many groups send those together.
var notOfData = []string{"rate_limit", "slow_path_full"}

// account checks that gleamd has counted what was sent, and that it lost nothing.
func (r *Row) account(before, after *api.Stats, sent uint64) error {
	if n := after.Rx - before.Rx; n != sent {
		return fmt.Errorf("gleamd has counted %d packets of %d", n, sent)
	}
	want := sent * uint64(r.Members-1)
	if n := after.Copies - before.Copies; n < want || n > want+want/100 { // a receiver that waits for a core is probed
		return fmt.Errorf("gleamd has made %d copies of %d packets for %d receivers", n, sent, r.Members-1)
	}
	for reason, n := range after.Drops {
		if !slices.Contains(notOfData, reason) && n > before.Drops[reason] {
			return fmt.Errorf("gleamd has dropped %d packets: %s", n-before.Drops[reason], reason)
		}
	}
	return nil
}
