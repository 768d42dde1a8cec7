// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/gleam-rdma/gleam/lab/sim/topology"
)

// Contiguous returns the hosts 0 to n-1.
func Contiguous(n int) []topology.Node {
	hosts := make([]topology.Node, n)
	for i := range hosts {
		hosts[i] = topology.Node(i)
	}
	return hosts
}

// Random returns n of the hosts 0 to hosts-1, in a random order.
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

// AcrossPods returns all hosts leaf by leaf, such that leaves that follow each other are in
// different pods.
func AcrossPods(t *topology.Topology) []topology.Node {
	leaves := make([][][]topology.Node, t.Pods) // by pod
	last := topology.Node(None)
	for h := range t.Hosts {
		host := topology.Node(h)
		pod := t.Pod(host)
		if t.Leaf(host) != last {
			last = t.Leaf(host)
			leaves[pod] = append(leaves[pod], nil)
		}
		own := leaves[pod]
		own[len(own)-1] = append(own[len(own)-1], host)
	}
	hosts := make([]topology.Node, 0, t.Hosts)
	for i := 0; len(hosts) < t.Hosts; i++ {
		for _, own := range leaves {
			if i < len(own) {
				hosts = append(hosts, own[i]...)
			}
		}
	}
	return hosts
}
