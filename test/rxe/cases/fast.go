// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/testbed"
)

// fastPathOn is a line of configuration.
const fastPathOn = "fast_path: auto\n"

// fastTries bounds how often a case is repeated until XDP has replicated data at every switch:
// that begins when the first data has come, and emulation is slow.
const fastTries = 5

// fastCases are some of the tree's with the fast path, which the switches keep.
func fastCases() []testCase {
	const name = "two switches, fast path: "
	return []testCase{
		{name: name + "all operations, IPv4", run: inFastTree(treeOperations(false, 1024))},
		{name: name + "all operations, IPv6", run: inFastTree(treeOperations(true, 2048))},
		{name: name + "1 % lost at hosts and on the link", run: inFastTree(treeLossy("1%"))},
		{name: name + "every member the source in turn, twice", run: inFastTree(rotation)},
	}
}

// takeRedirects makes a veth's end take frames that XDP redirects to it.
func takeRedirects(ns *lab.Namespace, name string) error { return ns.SetFeature(name, lab.GRO, true) }

// turnOn turns the fast path on in both switches, which start again for that.
func (t *tree) turnOn(ctx context.Context) error {
	if t.fast {
		return nil
	}
	for _, h := range t.hosts {
		if err := takeRedirects(h.ns, h.link); err != nil {
			return err
		}
	}
	for i, d := range t.daemons {
		if err := takeRedirects(t.wire, wireName(i)); err != nil {
			return err
		}
		if err := d.configure(fastPathOn); err != nil {
			return err
		}
		if err := d.restart(ctx, false); err != nil {
			return err
		}
	}
	t.fast = true
	return t.neighbours(ctx)
}

// configure adds a line to the configuration, for the next start.
func (d *daemon) configure(line string) error {
	f, err := os.OpenFile(d.file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	return errors.Join(err, f.Close())
}

// inFastTree runs a case with the hosts of the tree, whose switches have the fast path, until
// both have taken it.
func inFastTree(run func(context.Context, *bench) error) func(context.Context, *bench) error {
	return inTree(func(ctx context.Context, b *bench) error {
		if err := b.tree.turnOn(ctx); err != nil {
			return err
		}
		before, err := b.tree.replicated(ctx)
		if err != nil {
			return err
		}
		for try := 1; ; try++ {
			if err := run(ctx, b); err != nil {
				return err
			}
			n, err := b.tree.replicated(ctx)
			switch {
			case err != nil:
				return err
			case n[0] > before[0] && n[1] > before[1]:
				b.note("replicated by XDP: %d packets at switch 1, %d at switch 2, in %d tries", n[0]-before[0], n[1]-before[1], try)
				return nil
			case try == fastTries:
				return fmt.Errorf("XDP has replicated %d packets at switch 1, %d at switch 2, in %d tries:\n%w", n[0]-before[0], n[1]-before[1], try, b.tree.whyNot(ctx))
			}
		}
	})
}

// replicated is the number of packets that XDP has replicated at each switch.
func (t *tree) replicated(ctx context.Context) (n [2]uint64, err error) {
	for i, d := range t.daemons {
		if n[i], err = testbed.FastPackets(ctx, d.client); err != nil {
			return n, err
		}
	}
	return n, nil
}

// whyNot returns what the switches say of their ports.
func (t *tree) whyNot(ctx context.Context) (err error) {
	for i, d := range t.daemons {
		ports, e := d.client.Ports(ctx)
		err = errors.Join(err, e)
		for _, p := range ports {
			err = errors.Join(err, fmt.Errorf("    switch %d, port %s: %+v", i+1, p.Name, p.FastPath))
		}
	}
	return err
}
