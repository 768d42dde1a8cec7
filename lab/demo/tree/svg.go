// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"io"
	"slices"

	"github.com/gleam-rdma/gleam/internal/cli/drawing"
)

// Sizes of the picture, in pixels.
const (
	boxWidth   = 44
	boxHeight  = 22
	gap        = 8
	levelSpace = 110
	edge       = 24
)

// WriteSVG draws the fabric, hosts at the bottom, with the links of the tree emphasized. Those
// between switches have their shares beside them.
func (t *Tree) WriteSVG(w io.Writer) error {
	at, width, height := t.layout()
	p := drawing.Picture{Width: width, Height: height, BoxWidth: boxWidth, BoxHeight: boxHeight}
	index := make(map[string]int)
	for _, n := range slices.Concat(t.Topology.Switches, t.Topology.Hosts) {
		index[n] = len(p.Boxes)
		p.Boxes = append(p.Boxes, drawing.Box{At: at[n], Kind: t.kind(n), Text: []string{n}, Note: t.mark(n), Failed: t.mark(n) == failed})
	}
	for _, l := range t.Topology.Links {
		p.Links = append(p.Links, drawing.Link{From: index[l.A], To: index[l.B], Cut: t.cut(l.A, l.B)})
	}
	for _, h := range t.Hops {
		if h.Share < least {
			continue
		}
		l := drawing.Link{From: index[h.From], To: index[h.To], Flow: drawing.Data}
		if !slices.Contains(t.Topology.Hosts, h.From) && !slices.Contains(t.Topology.Hosts, h.To) {
			l.Label = []string{fmt.Sprintf("%.2f", h.Share)}
		}
		p.Links = append(p.Links, l)
	}
	return p.WriteSVG(w)
}

// kind returns what a node is.
func (t *Tree) kind(n string) drawing.Kind {
	switch {
	case !slices.Contains(t.Topology.Hosts, n):
		return drawing.Switch
	case n == t.Source:
		return drawing.Source
	case slices.Contains(t.Members, n):
		return drawing.Member
	}
	return drawing.Host
}

// layout places the nodes: hosts at the bottom, below their switch, then the switches by
// their distance to the nearest switch with hosts.
func (t *Tree) layout() (at map[string]drawing.Point, width, height float64) {
	at = make(map[string]drawing.Point)
	top := t.Topology
	hostsOf := make(map[string][]string)
	for _, l := range top.Links {
		if slices.Contains(top.Hosts, l.B) {
			hostsOf[l.A] = append(hostsOf[l.A], l.B)
		}
		if slices.Contains(top.Hosts, l.A) {
			hostsOf[l.B] = append(hostsOf[l.B], l.A)
		}
	}
	level := t.levels(hostsOf)
	highest := slices.Max(level)
	y := func(level int) float64 { return edge + float64(highest-level)*levelSpace + boxHeight/2 }
	x := float64(edge)
	for i, s := range top.Switches {
		if level[i] > 0 {
			continue
		}
		begin := x
		for _, h := range hostsOf[s] {
			at[h] = drawing.Point{X: x + boxWidth/2, Y: y(-1)}
			x += boxWidth + gap
		}
		x = max(x, begin+boxWidth+gap)
		at[s] = drawing.Point{X: (begin + x - gap) / 2, Y: y(0)}
		x += 2 * gap
	}
	width = x - 3*gap + edge
	for l := 1; l <= highest; l++ {
		var names []string
		for i, s := range top.Switches {
			if level[i] == l {
				names = append(names, s)
			}
		}
		width = max(width, 2*edge+float64(len(names)*(boxWidth+gap)))
		for i, s := range names {
			at[s] = drawing.Point{X: width * (float64(i) + 0.5) / float64(len(names)), Y: y(l)}
		}
	}
	return at, width, y(-1) + boxHeight/2 + edge
}

// levels returns the distance of each switch to the nearest one with hosts.
func (t *Tree) levels(hostsOf map[string][]string) []int {
	level := make([]int, len(t.Topology.Switches))
	for i, s := range t.Topology.Switches {
		if len(hostsOf[s]) == 0 {
			level[i] = len(t.Topology.Switches)
		}
	}
	spread(level, adjacent(t.Topology))
	return level
}
