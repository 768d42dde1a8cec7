// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/gleam-rdma/gleam/sim/topology"
)

// Contiguous returns the hosts 0 to n-1.
func Contiguous(n int) []topology.Node {
	hosts := make([]topology.Node, n)
	for i := range hosts {
		hosts[i] = topology.Node(i)
	}
	return hosts
}

// Random returns n of so many hosts in a random order.
func Random(n, hosts int, seed uint64) ([]topology.Node, error) {
	if n > hosts {
		return nil, fmt.Errorf("workload: %d hosts are wanted of %d", n, hosts)
	}
	all := Contiguous(hosts)
	random := rand.New(rand.NewPCG(seed, uint64(hosts)))
	for i := range n {
		j := i + random.IntN(hosts-i)
		all[i], all[j] = all[j], all[i]
	}
	return slices.Clip(all[:n]), nil
}

// Rows returns hosts as the rows of a matrix; row g has the rank g modulo its length as its root.
func Rows(hosts []topology.Node, columns int) ([]Communicator, error) {
	if columns < 2 || len(hosts)%columns != 0 {
		return nil, fmt.Errorf("workload: %d hosts in rows of %d; want rows of 2 or more, all full", len(hosts), columns)
	}
	var cs []Communicator
	for row := range slices.Chunk(hosts, columns) {
		cs = append(cs, Communicator{Ranks: row, Root: len(cs) % columns})
	}
	return cs, nil
}

// Columns returns the columns of the matrix of Rows; column g has the rank g modulo its length
// as its root.
func Columns(hosts []topology.Node, columns int) ([]Communicator, error) {
	if columns < 1 || len(hosts)%columns != 0 || len(hosts)/columns < 2 {
		return nil, fmt.Errorf("workload: %d hosts in columns of a matrix with rows of %d; want columns of 2 or more, all full", len(hosts), columns)
	}
	rows := len(hosts) / columns
	cs := make([]Communicator, columns)
	for c := range cs {
		ranks := make([]topology.Node, rows)
		for r := range ranks {
			ranks[r] = hosts[r*columns+c]
		}
		cs[c] = Communicator{Ranks: ranks, Root: c % rows}
	}
	return cs, nil
}
