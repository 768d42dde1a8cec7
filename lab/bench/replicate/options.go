// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package replicate

import (
	"fmt"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/internal/cli/perf"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/bench/options"
)

// Options are the parameters of a run. Lists have no duplicates.
type Options struct {
	options.Common
	Replicas []int    // copies of each write
	Modes    []string // the modes of perf: group, unicasts, chain, tree
	Sizes    []int    // bytes of a write
	Depths   []int    // writes under way at a time
}

// defaults take about ten minutes.
func defaults() Options {
	return Options{
		Replicas: []int{3, 8}, Modes: []string{perf.Group, perf.Unicasts, perf.Chain}, Sizes: []int{4 << 10, 8 << 10, 64 << 10, 512 << 10}, Depths: []int{1, 32},
		Common: options.Common{Rounds: 3, Duration: 2 * time.Second, Rate: 100_000_000, MTU: 1024},
	}
}

// shared are the flags that other benchmarks have too.
var shared = []string{"rounds", "duration", "rate", "mtu", "fast-path"}

// quick are the flags that --quick sets, unless they are given.
var quick = map[string]string{"replicas": "3", "sizes": "8192,524288", "rounds": "1"}

// maxReplicas leaves a host for the sender.
const maxReplicas = lab.MaxHosts - 1

// check reports the first option that cannot be.
func (o *Options) check() error {
	within := func(list []int, least, most int) bool {
		return len(list) > 0 && slices.Min(list) >= least && slices.Max(list) <= most && !options.Duplicates(list)
	}
	switch {
	case !within(o.Replicas, 1, maxReplicas):
		return fmt.Errorf("--replicas %v: want different numbers from 1 to %d", o.Replicas, maxReplicas)
	case len(o.Modes) == 0 || options.Duplicates(o.Modes) || slices.ContainsFunc(o.Modes, func(m string) bool { return !slices.Contains(perf.Modes, m) }):
		return fmt.Errorf("--modes %v: want some of %v", o.Modes, perf.Modes)
	case !within(o.Sizes, 1, 8<<20):
		return fmt.Errorf("--sizes %v: want different numbers of bytes from 1 to %d", o.Sizes, 8<<20)
	case !within(o.Depths, 1, 256):
		return fmt.Errorf("--depths %v: want different numbers from 1 to 256", o.Depths)
	}
	return o.Common.Check(shared...)
}

// writeCase is one of the measurements of a round.
type writeCase struct {
	mode        string
	replicas    int
	size, depth int
}

func (c writeCase) String() string {
	return fmt.Sprintf("%d replicas, %s, %d bytes, depth %d", c.replicas, c.mode, c.size, c.depth)
}

// one is the case of one copy: a queue pair to one replica.
func (c writeCase) one() writeCase {
	c.mode, c.replicas = perf.Unicasts, 1
	return c
}

// by is the same with another mode.
func (c writeCase) by(mode string) writeCase {
	c.mode = mode
	return c
}

// cases are those of a round. The ones that are compared follow one another.
func (o *Options) cases() (list []writeCase) {
	for _, size := range o.Sizes {
		for _, depth := range o.Depths {
			c := writeCase{size: size, depth: depth}
			list = append(list, c.one())
			for _, n := range o.Replicas {
				for _, m := range o.Modes {
					c.replicas, c.mode = n, m
					if c != c.one() {
						list = append(list, c)
					}
				}
			}
		}
	}
	return list
}
