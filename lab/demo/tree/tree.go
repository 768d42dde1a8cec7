// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"io"
	"slices"

	"github.com/gleam-rdma/gleam/internal/cli/drawing"
	"github.com/gleam-rdma/gleam/lab/fabric"
)

// Hop is a direction of a link, with the share of the group's packets that went over it: 1
// if each went once.
type Hop struct {
	From, To string
	Share    float64
}

// Tree is what was counted in a fabric.
type Tree struct {
	Topology *fabric.Topology
	Source   string   // a host
	Members  []string // hosts, the source among them
	Hops     []Hop    // those that had packets of the group, those to and from hosts included
	Marks    []Mark
}

// Mark is a switch, or a link, that has failed or restarted.
type Mark struct {
	Node   string
	To     string // the other end of a link; "": the switch Node
	Failed bool   // true: it failed; false: it restarted
}

// failed is the mark of a switch that has failed.
const failed = "failed"

// mark returns what is to be said of a node; "": nothing.
func (t *Tree) mark(node string) string {
	for _, m := range t.Marks {
		switch {
		case m.Node != node || m.To != "":
		case m.Failed:
			return failed
		default:
			return "restarted"
		}
	}
	return ""
}

// cut reports whether the link between two nodes has failed, by itself.
func (t *Tree) cut(a, b string) bool {
	return slices.ContainsFunc(t.Marks, func(m Mark) bool {
		return m.Failed && (m.Node == a && m.To == b || m.Node == b && m.To == a)
	})
}

// least is the share below which a hop is not of the tree: single packets, such as probes.
const least = 0.005

// below returns the hops of the tree that go on from a node, in the topology's order.
func (t *Tree) below(node string) []Hop {
	var hops []Hop
	for _, h := range t.Hops {
		if h.From == node && h.Share >= least {
			hops = append(hops, h)
		}
	}
	return hops
}

// WriteText draws the tree with a line for each node, indented. A node that the data has
// reached on two ways has its branches at the first one.
func (t *Tree) WriteText(w io.Writer) error {
	root := &drawing.Branch{Text: t.Source + " (source)"}
	t.grow(root, t.Source, map[string]bool{t.Source: true})
	return root.Write(w)
}

// grow adds to a branch what is below a node.
func (t *Tree) grow(b *drawing.Branch, node string, seen map[string]bool) {
	for _, h := range t.below(node) {
		c := &drawing.Branch{Text: h.To}
		b.Below = append(b.Below, c)
		if !slices.Contains(t.Topology.Hosts, h.From) && !slices.Contains(t.Topology.Hosts, h.To) {
			c.Text += fmt.Sprintf("  %.3f", h.Share)
		}
		if t.cut(h.From, h.To) {
			c.Text += "  link failed"
		}
		if m := t.mark(h.To); m != "" {
			c.Text += "  " + m
		}
		if seen[h.To] {
			c.Text += "  (again)"
			continue
		}
		seen[h.To] = true
		t.grow(c, h.To, seen)
	}
}
