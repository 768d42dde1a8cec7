// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
)

// withState adds a folder for the state of switch i to a configuration.
func (m *machine) withState(text string, i int) (string, error) {
	dir := filepath.Join(m.state, fmt.Sprintf("state-%d", i))
	return text + "state: " + dir + "\n", os.Mkdir(dir, 0o700)
}

// restart ends the switch, by SIGTERM or kill -9, and starts it again.
func (d *daemon) restart(ctx context.Context, kill bool) error {
	if !kill {
		if err := d.process.Stop(10 * time.Second); err != nil {
			return err
		}
		return d.start(ctx)
	}
	if err := d.process.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-d.process.Done()
	return d.start(ctx)
}

const (
	restartMessages = 64
	restartTimeout  = 16 // 268 ms
	// restartLimit is how long a switch may be away: emulation needs some seconds for the start
	// of a program.
	restartLimit = 30 * time.Second
	// restartStall is the longest time without a completion after the switch is there again.
	restartStall = 8 * time.Second
)

// restartCases are a restart of each switch in the middle of a transfer, from a host of the
// first switch and from one of the second.
func restartCases(name string) (cs []testCase) {
	for i := range 2 {
		for _, kill := range []bool{false, true} {
			how := "SIGTERM"
			if kill {
				how = "kill -9"
			}
			cs = append(cs, testCase{
				name: fmt.Sprintf("%sswitch %d restarts in mid-transfer, %s", name, i+1, how),
				run:  inTree(func(ctx context.Context, b *bench) error { return b.restartInTree(ctx, i, kill) }),
			})
		}
	}
	return cs
}

// restartInTree transfers once from a host of each switch, and restarts a switch meanwhile. No
// queue pair changes.
func (b *bench) restartInTree(ctx context.Context, i int, kill bool) error {
	spec := groupSpec{number: 3, hosts: b.hosts, mtu: 1024, timeout: restartTimeout}
	return withGroup(ctx, &spec, func(g *group) error {
		before := g.pairs()
		for g.from = range 2 {
			var away time.Duration
			stall, err := g.interrupted(ctx, func() error {
				begin := time.Now()
				err := b.tree.daemons[i].restart(ctx, kill)
				away = time.Since(begin)
				return err
			})
			if err != nil {
				return fmt.Errorf("source host %d: %w", g.source().index, err)
			}
			b.note("source at switch %d: longest stall %v, restart %v", g.from+1, stall.Round(time.Millisecond), away.Round(time.Millisecond))
			if stall > away+restartStall {
				return fmt.Errorf("the source waited for %v, want at most %v more than the restart, %v", stall, restartStall, away)
			}
		}
		for n, info := range g.pairs() {
			if info != before[n] {
				return fmt.Errorf("host %d: the queue pair was %+v and is %+v", g.members[n].index, before[n], info)
			}
		}
		return nil
	})
}

// interrupted transfers, does something when a quarter of the messages are complete, and returns
// the longest time without a completion from then on.
func (g *group) interrupted(ctx context.Context, do func() error) (stall time.Duration, err error) {
	var msgs []message
	for i := range restartMessages {
		msgs = append(msgs, message{dataOps[i%len(dataOps)], 40000 + i})
	}
	bt, err := g.newBatch(msgs...)
	if err != nil {
		return 0, err
	}
	for _, r := range g.receivers() {
		if err := bt.receive(r); err != nil {
			return 0, err
		}
	}
	if err := bt.post(); err != nil {
		return 0, err
	}
	var last time.Time
	did := make(chan error, 1)
	for done := range msgs {
		if done == len(msgs)/4 {
			last = time.Now()
			go func() { did <- do() }()
		}
		var wcs [1]endpoint.Completion
		if _, err := g.source().qp.Poll(ctx, wcs[:]); err != nil {
			return 0, fmt.Errorf("the source, with %d of %d messages complete: %w", done, len(msgs), err)
		}
		if err := wcs[0].Err(); err != nil {
			return 0, fmt.Errorf("the source, with %d of %d messages complete: %w", done, len(msgs), err)
		}
		if c := wcs[0]; c.ID != uint64(done) {
			return 0, fmt.Errorf("the source: completion %+v, want one of message %d", c, done)
		}
		if err := bt.arrived(done); err != nil {
			return 0, err
		}
		if !last.IsZero() {
			stall = max(stall, time.Since(last))
			last = time.Now()
		}
	}
	return stall, errors.Join(<-did, bt.compare(ctx))
}
