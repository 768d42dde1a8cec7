// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"html"
	"io"
	"os"
	"strings"

	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/lab/sim"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/lab/simulate/spec"
)

// groupTree is the tree of a group, to be shown.
type groupTree struct {
	title    string
	name     func(topology.Node) string
	branches []sim.Branch
	children [][]int
}

// treeOf returns the tree of a group in a phase, which is counted from 1.
func treeOf(p *spec.Point, t *topology.Topology, phase, group int, after bool) (*groupTree, error) {
	if phase < 1 || phase > p.Phases() {
		return nil, cli.UsageErrorf("--phase %d: want 1 to %d", phase, p.Phases())
	}
	ph, err := p.Phase(t, phase-1)
	if err != nil {
		return nil, err
	}
	if len(ph.Config.Program.Groups()) == 0 {
		return nil, cli.UsageErrorf("--group: %s has no groups; is its algorithm not group?", ph.Name)
	}
	branches, err := sim.Tree(ph.Config, group, after)
	if err != nil {
		return nil, err
	}
	x := &groupTree{title: fmt.Sprintf("%s, group %d", ph.Name, group), name: t.Name, branches: branches, children: make([][]int, len(branches))}
	for i, b := range branches {
		if b.Parent >= 0 {
			x.children[b.Parent] = append(x.children[b.Parent], i)
		}
	}
	return x, nil
}

// write writes the tree in one of the forms.
func (x *groupTree) write(w io.Writer, dot bool, svg string) error {
	if svg != "" {
		if err := os.WriteFile(svg, []byte(x.svg()), 0o666); err != nil {
			return fmt.Errorf("simulate: --svg: %w", err)
		}
		return nil
	}
	text := x.text()
	if dot {
		text = x.dot()
	}
	_, err := io.WriteString(w, text)
	return err
}

// members returns the names of the members at a switch, not more than a few.
func (x *groupTree) members(i, most int) string {
	var names []string
	for _, m := range x.branches[i].Members {
		names = append(names, x.name(m))
	}
	if n := len(names); n > most {
		return fmt.Sprintf("%d hosts, %s to %s", n, names[0], names[n-1])
	}
	return strings.Join(names, " ")
}

func (x *groupTree) text() string {
	var b strings.Builder
	var show func(i, depth int)
	show = func(i, depth int) {
		line := strings.Repeat("  ", depth) + x.name(x.branches[i].Switch)
		if m := x.members(i, 8); m != "" {
			line += ": " + m
		}
		fmt.Fprintln(&b, line)
		for _, c := range x.children[i] {
			show(c, depth+1)
		}
	}
	show(0, 0)
	return b.String()
}

func (x *groupTree) dot() string {
	var b strings.Builder
	fmt.Fprintf(&b, "graph %q {\n  node [shape=box];\n", x.title)
	for i, br := range x.branches {
		if br.Parent >= 0 {
			fmt.Fprintf(&b, "  %q -- %q;\n", x.name(x.branches[br.Parent].Switch), x.name(br.Switch))
		}
		if m := x.members(i, 8); m != "" {
			fmt.Fprintf(&b, "  %q -- %q;\n  %q [shape=plaintext];\n", x.name(br.Switch), m, m)
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// Sizes of the picture, in pixels.
const (
	treeColumn = 110
	treeRow    = 80
	treeBox    = 80
)

// svg draws the root on top, and the members of each switch below it.
func (x *groupTree) svg() string {
	var shapes strings.Builder
	column, deepest := 0, 0
	var place func(i, depth int) (at float64)
	place = func(i, depth int) (at float64) {
		deepest = max(deepest, depth)
		y := 50 + depth*treeRow
		var below []float64
		for _, c := range x.children[i] {
			below = append(below, place(c, depth+1))
		}
		if len(below) == 0 {
			at = float64(column*treeColumn + treeColumn/2)
			column++
		} else {
			at = (below[0] + below[len(below)-1]) / 2
		}
		for _, to := range below {
			fmt.Fprintf(&shapes, "<line x1=\"%.0f\" y1=\"%d\" x2=\"%.0f\" y2=\"%d\" stroke=\"#888\"/>\n", at, y+12, to, y+treeRow-12)
		}
		fmt.Fprintf(&shapes, "<rect x=\"%.0f\" y=\"%d\" width=\"%d\" height=\"24\" rx=\"3\" fill=\"#fff\" stroke=\"#333\"/>\n<text x=\"%.0f\" y=\"%d\">%s</text>\n", at-treeBox/2, y-12, treeBox, at, y+4, html.EscapeString(x.name(x.branches[i].Switch)))
		if m := x.members(i, 2); m != "" {
			fmt.Fprintf(&shapes, "<text x=\"%.0f\" y=\"%d\" font-size=\"9\" fill=\"#06c\">%s</text>\n", at, y+26, html.EscapeString(m))
		}
		return at
	}
	place(0, 0)
	width, height := max(column, 2)*treeColumn, 50+(deepest+1)*treeRow
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"12\" text-anchor=\"middle\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n<text x=\"%d\" y=\"20\">%s</text>\n%s</svg>\n",
		width, height, width/2, html.EscapeString(x.title), shapes.String())
}
