// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package tree is about the tree that the data of a group takes through a fabric: how few
// links it could take, and pictures of the one that was counted.
package tree

import (
	"math"
	"slices"

	"github.com/gleam-rdma/gleam/lab/fabric"
)

// maxTerminals bounds the time that Optimal takes.
const maxTerminals = 12

// Optimal returns the least number of links between switches that join all the given ones,
// of which there are at least one. It does not know that of more than 12 switches: then it
// returns false. (A minimum Steiner tree, by the algorithm of Dreyfus and Wagner.)
func Optimal(t *fabric.Topology, switches []string) (links int, known bool) {
	slices.Sort(switches)
	switches = slices.Compact(switches)
	if len(switches) > maxTerminals {
		return 0, false
	}
	next := adjacent(t)
	k := len(switches) - 1 // switches[k] is the root, the others are joined to it
	// cost[set][v] is the least number of links that join v and the switches of the set.
	cost := make([][]int, 1<<k)
	for set := range cost {
		cost[set] = make([]int, len(t.Switches))
		for v := range cost[set] {
			cost[set][v] = math.MaxInt32
		}
	}
	number := make(map[string]int)
	for i, s := range t.Switches {
		number[s] = i
	}
	for v := range t.Switches {
		cost[0][v] = 0
	}
	for set := 1; set < 1<<k; set++ {
		for i, s := range switches[:k] {
			if set == 1<<i {
				cost[set][number[s]] = 0
			}
		}
		for part := (set - 1) & set; part > 0; part = (part - 1) & set {
			for v := range t.Switches {
				cost[set][v] = min(cost[set][v], cost[part][v]+cost[set&^part][v])
			}
		}
		spread(cost[set], next)
	}
	return cost[len(cost)-1][number[switches[k]]], true
}

// spread lowers each cost to at most one more than those of the neighbours.
func spread(cost []int, next [][]int) {
	queue := make([]int, 0, len(cost))
	for v := range cost {
		queue = append(queue, v)
	}
	for len(queue) > 0 {
		v := queue[0]
		queue = queue[1:]
		for _, n := range next[v] {
			if cost[v]+1 < cost[n] {
				cost[n] = cost[v] + 1
				queue = append(queue, n)
			}
		}
	}
}

// adjacent returns the neighbours among the switches of each switch, by their numbers.
func adjacent(t *fabric.Topology) [][]int {
	next := make([][]int, len(t.Switches))
	for _, l := range t.Links {
		a, b := slices.Index(t.Switches, l.A), slices.Index(t.Switches, l.B)
		if a >= 0 && b >= 0 {
			next[a], next[b] = append(next[a], b), append(next[b], a)
		}
	}
	return next
}
