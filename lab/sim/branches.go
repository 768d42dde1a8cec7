// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
)

// Branch is a switch of a group's tree.
type Branch struct {
	Switch  topology.Node
	Parent  int             // index of the branch above; below 0: this is the root
	Members []topology.Node // the members at this switch
}

// Tree returns the tree of a group, each branch behind its parent: the first one, or the last one after
// the topology's failures.
func Tree(cfg Config, group int, afterFailures bool) ([]Branch, error) {
	s, err := skeleton(cfg)
	if err != nil {
		return nil, err
	}
	if group < 0 || group >= len(s.groups) {
		return nil, fmt.Errorf("sim: group %d does not exist; there are %d, numbered from 0", group, len(s.groups))
	}
	if afterFailures {
		s.routeFailures()
	} else { // no later group has an influence
		s.groups = s.groups[:group+1]
	}
	b, err := s.plan()
	if err != nil {
		return nil, err
	}
	b.planRebuilds()
	t := b.trees[group]
	out := make([]Branch, len(t))
	for i := range t {
		out[i].Switch = topology.Node(t[i].node)
		for k, n := range t[i].legs {
			if n == envelope.NoNeighbour {
				out[i].Members = append(out[i].Members, s.groups[group][k])
			}
		}
		for _, c := range t[i].children {
			out[c.branch].Parent = i
		}
	}
	out[0].Parent = -1
	return out, nil
}

// MostGroups returns the greatest number of groups whose roots send over the same direction of a link.
func MostGroups(cfg Config) (most int, err error) {
	s, err := skeleton(cfg)
	if err != nil {
		return 0, err
	}
	b, err := s.plan()
	if err != nil {
		return 0, err
	}
	over := make([]int, len(s.ports))
	for _, t := range b.trees {
		for i := range t {
			for _, c := range t[i].children {
				n := s.firstPort[t[i].node] + uint32(c.neighbor) - 1
				over[n]++
				most = max(most, over[n])
			}
		}
	}
	return most, nil
}

// skeleton returns a simulation in which trees can be planned.
func skeleton(cfg Config) (*Simulation, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, err
	}
	s := &Simulation{cfg: cfg, groups: cfg.Program.Groups(), routes: cfg.Topology.Routes(nil)}
	s.build()
	return s, nil
}
