// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/gleam-rdma/gleam/lab/sim/topology"
)

// List is a program of flows at given times, without reactions: a trace or background.
type List struct {
	flows  []Flow
	groups [][]topology.Node
}

// NewList returns the flows as a program, by time and, for equal times, in their order.
// Their keys are set here.
func NewList(flows []Flow, groups [][]topology.Node) (*List, error) {
	l := &List{flows: slices.Clone(flows), groups: groups}
	if len(flows) < 1 || len(flows) > maxJobs*maxSeq {
		return nil, fmt.Errorf("workload: %d flows; want 1 to %d", len(flows), maxJobs*maxSeq)
	}
	slices.SortStableFunc(l.flows, func(a, b Flow) int { return int(max(-1, min(1, a.After-b.After))) })
	for i := range l.flows {
		f := &l.flows[i]
		switch {
		case f.Bytes < 0 || f.Bytes > MaxBytes:
			return nil, fmt.Errorf("workload: flow %d has %d bytes; want 0 to %d", i, f.Bytes, int64(MaxBytes))
		case f.After < 0:
			return nil, fmt.Errorf("workload: flow %d starts at %d ps; want 0 or later", i, f.After)
		case f.Group == None && f.To == f.Source:
			return nil, fmt.Errorf("workload: flow %d goes from host %d to itself", i, f.Source)
		case f.Group != None && (f.Group < 0 || int(f.Group) >= len(groups)):
			return nil, fmt.Errorf("workload: flow %d goes to group %d; there are %d", i, f.Group, len(groups))
		case f.Group != None && !slices.Contains(groups[f.Group], f.Source):
			return nil, fmt.Errorf("workload: flow %d: its source, host %d, is not in group %d", i, f.Source, f.Group)
		}
		f.Key = makeKey(i>>seqBits, 0, i&(maxSeq-1))
	}
	return l, nil
}

// Groups implements Program.
func (l *List) Groups() [][]topology.Node { return l.groups }

// Flows implements Program.
func (l *List) Flows() int64 { return int64(len(l.flows)) }

// Start implements Program.
func (l *List) Start(emit func(Flow)) {
	for _, f := range l.flows {
		emit(f)
	}
}

// Delivered implements Program.
func (*List) Delivered(Flow, topology.Node, func(Flow)) {}

// Completed implements Program.
func (*List) Completed(Flow, func(Flow)) {}

// Permutation returns one flow of the given length from each host to another one. Each host
// receives one flow.
func Permutation(hosts []topology.Node, bytes int64, at topology.Time, seed uint64) (*List, error) {
	if len(hosts) < 2 {
		return nil, fmt.Errorf("workload: a permutation of %d hosts; want 2 or more", len(hosts))
	}
	// Sattolo's shuffle makes one cycle of all hosts: no host sends to itself.
	random := rand.New(rand.NewPCG(seed, uint64(len(hosts))))
	to := slices.Clone(hosts)
	for i := len(to) - 1; i > 0; i-- {
		j := random.IntN(i)
		to[i], to[j] = to[j], to[i]
	}
	flows := make([]Flow, len(hosts))
	for i, h := range hosts {
		flows[i] = Flow{Source: h, To: to[i], Group: None, Bytes: bytes, After: at}
	}
	return NewList(flows, nil)
}

// Incast returns a flow from each of the sources to one host at the same time.
func Incast(sources []topology.Node, to topology.Node, bytes int64, at topology.Time) (*List, error) {
	flows := make([]Flow, len(sources))
	for i, h := range sources {
		flows[i] = Flow{Source: h, To: to, Group: None, Bytes: bytes, After: at}
	}
	return NewList(flows, nil)
}
