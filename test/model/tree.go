// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	"github.com/gleam-rdma/gleam/mcast"
)

// Tree is the arrangement of the switches. Host 0 is the source, A; the receivers are B,
// C and D.
type Tree uint8

// Trees. A change may replace one of those with the same links by another.
const (
	Flat   Tree = iota // all hosts at one switch
	Rack               // B and C behind a second switch, the others at the first
	Racks              // B behind a second switch, the other receivers behind a third
	Leaves             // A behind a second switch, B behind a third; C at the first, D beside A
	Spine              // A behind a second switch, the receivers behind a third

	// Three switches with a link between any two; one host at each, D at the third.
	Fork   // the second and the third below the first
	Chain  // the third below the second
	Turned // the second below the third

	// A at the first of four switches, the receivers at the last; the two others are between.
	Left  // the second is on the way
	Right // the third is on the way
)

// outside is the switch above one that is not in the tree.
const outside = -2

// shape is what a tree looks like.
type shape struct {
	text  string
	above []int   // the switch above, by switch
	links [][]int // the switches that it has a link to, by switch, in the order of its numbers for them
	home  []int   // the switch of each host
}

var (
	triangle = [][]int{{1, 2}, {0, 2}, {0, 1}}
	square   = [][]int{{1, 2}, {0, 3}, {0, 3}, {1, 2}}
)

var shapes = [...]shape{
	Flat:   {"1 switch", []int{-1}, [][]int{nil}, []int{0, 0, 0, 0}},
	Rack:   {"2 switches", []int{-1, 0}, [][]int{{1}, {0}}, []int{0, 1, 1, 0}},
	Racks:  {"3 switches", []int{-1, 0, 0}, [][]int{{1, 2}, {0}, {0}}, []int{0, 1, 2, 2}},
	Leaves: {"3 switches, the sources at leaves", []int{-1, 0, 0}, [][]int{{1, 2}, {0}, {0}}, []int{1, 2, 0, 1}},
	Spine:  {"3 switches, nobody at the first", []int{-1, 0, 0}, [][]int{{1, 2}, {0}, {0}}, []int{1, 2, 2, 2}},
	Fork:   {"3 switches, the others below the first", []int{-1, 0, 0}, triangle, []int{0, 1, 2, 2}},
	Chain:  {"3 switches in a row", []int{-1, 0, 1}, triangle, []int{0, 1, 2, 2}},
	Turned: {"3 switches in a row, the last two exchanged", []int{-1, 2, 0}, triangle, []int{0, 1, 2, 2}},
	Left:   {"4 switches, by way of the second", []int{-1, 0, outside, 1}, square, []int{0, 3, 3, 3}},
	Right:  {"4 switches, by way of the third", []int{-1, outside, 0, 2}, square, []int{0, 3, 3, 3}},
}

// String describes the tree.
func (t Tree) String() string { return shapes[t].text }

// homes returns the switches of the hosts.
func (c *Config) homes() []int {
	if c.Homes != nil {
		return c.Homes
	}
	return shapes[c.Tree].home[:c.Receivers+1]
}

// has reports whether switch sw is in the tree.
func (t Tree) has(sw int) bool { return shapes[t].above[sw] != outside }

// below reports whether switch a is directly below switch b.
func (t Tree) below(a, b int) bool { return shapes[t].above[a] == b }

// toward returns the neighbour of switch sw toward switch to, as sw numbers it; 0 is sw itself.
func (t Tree) toward(sw, to int) mcast.Neighbor {
	x := &shapes[t]
	next := x.above[sw]
	for y := to; y >= 0; y = x.above[y] {
		if y == sw {
			return 0
		}
		if x.above[y] == sw {
			next = y
			break
		}
	}
	return mcast.Neighbor(slices.Index(x.links[sw], next) + 1)
}

// near returns, by host, the neighbour of switch sw behind which it is: 0 is connected. It is
// nil if sw is not in the tree.
func (t Tree) near(sw int, homes []int) []mcast.Neighbor {
	if !t.has(sw) {
		return nil
	}
	var near []mcast.Neighbor
	for _, at := range homes {
		n := mcast.Neighbor(0)
		if at != sw {
			n = t.toward(sw, at)
		}
		near = append(near, n)
	}
	return near
}

// parent returns the neighbour above switch sw, 0 for the root. Where nobody is above it, it is
// the root of the group's tree.
func (t Tree) parent(sw int, homes []int) mcast.Neighbor {
	above := shapes[t].above[sw]
	if above < 0 {
		return 0
	}
	n := mcast.Neighbor(slices.Index(shapes[t].links[sw], above) + 1)
	if !slices.Contains(t.near(sw, homes), n) {
		return 0
	}
	return n
}
