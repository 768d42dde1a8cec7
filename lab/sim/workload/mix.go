// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"

	"github.com/gleam-rdma/gleam/lab/sim/topology"
)

// Mix runs programs beside each other.
type Mix struct {
	programs []Program
	group    []int32 // number of each program's first group
	groups   [][]topology.Node
}

// NewMix returns the programs as one. Each one's flows have its number in their keys.
func NewMix(programs ...Program) (*Mix, error) {
	if len(programs) == 0 || len(programs) > maxPrograms {
		return nil, fmt.Errorf("workload: %d programs at a time; want 1 to %d", len(programs), maxPrograms)
	}
	m := &Mix{programs: programs}
	for _, p := range programs {
		m.group = append(m.group, int32(len(m.groups)))
		m.groups = append(m.groups, p.Groups()...)
	}
	return m, nil
}

// Groups implements Program.
func (m *Mix) Groups() [][]topology.Node { return m.groups }

// Flows implements Program.
func (m *Mix) Flows() (n int64) {
	for _, p := range m.programs {
		n += p.Flows()
	}
	return n
}

// Start implements Program.
func (m *Mix) Start(emit func(Flow)) {
	for i, p := range m.programs {
		p.Start(m.outward(i, emit))
	}
}

// Delivered implements Program.
func (m *Mix) Delivered(f Flow, at topology.Node, emit func(Flow)) {
	i := ProgramOf(f.Key)
	m.programs[i].Delivered(m.inward(i, f), at, m.outward(i, emit))
}

// Completed implements Program.
func (m *Mix) Completed(f Flow, emit func(Flow)) {
	i := ProgramOf(f.Key)
	m.programs[i].Completed(m.inward(i, f), m.outward(i, emit))
}

// outward numbers the flows and groups of program i.
func (m *Mix) outward(i int, emit func(Flow)) func(Flow) {
	return func(f Flow) {
		f.Key |= uint64(i) << (64 - programBits)
		if f.Group != None {
			f.Group += m.group[i]
		}
		emit(f)
	}
}

// inward undoes outward.
func (m *Mix) inward(i int, f Flow) Flow {
	f.Key &^= (maxPrograms - 1) << (64 - programBits)
	if f.Group != None {
		f.Group -= m.group[i]
	}
	return f
}
