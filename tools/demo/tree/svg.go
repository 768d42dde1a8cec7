// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
)

// Sizes of the picture, in pixels.
const (
	boxWidth   = 44
	boxHeight  = 22
	gap        = 8
	levelSpace = 110
	edge       = 24
)

// Colours are Okabe and Ito's, which differ for colour-blind people too.
const (
	colourTree      = "#0072b2"
	colourSource    = "#d55e00"
	colourMember    = "#009e73"
	colourIdle      = "#bbbbbb"
	colourFailed    = "#cc0000"
	colourRestarted = "#b8860b"
)

// point is the middle of a node's box.
type point struct{ x, y float64 }

// WriteSVG draws the fabric, hosts at the bottom, with the links of the tree emphasized. Those
// between switches have their shares beside them.
func (t *Tree) WriteSVG(w io.Writer) error {
	at, width, height := t.layout()
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" font-family="sans-serif" font-size="11">`+"\n", width, height)
	b.WriteString(`<rect width="100%" height="100%" fill="white"/>` + "\n")
	fmt.Fprintf(&b, `<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="5" markerHeight="5" orient="auto"><path d="M0 0L8 4L0 8z" fill="%s"/></marker></defs>`+"\n", colourTree)
	for _, l := range t.Topology.Links {
		a, c := at[l.A], at[l.B]
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`+"\n", a.x, a.y, c.x, c.y, colourIdle)
	}
	for _, h := range t.Hops {
		if h.Share >= least {
			t.drawHop(&b, h, at[h.From], at[h.To])
		}
	}
	for _, m := range t.Marks {
		if m.To != "" {
			cross(&b, point{(at[m.Node].x + at[m.To].x) / 2, (at[m.Node].y + at[m.To].y) / 2})
		}
	}
	for _, n := range slices.Concat(t.Topology.Switches, t.Topology.Hosts) {
		t.drawNode(&b, n, at[n])
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// drawHop draws an arrow between the edges of two boxes.
func (t *Tree) drawHop(b *strings.Builder, h Hop, from, to point) {
	if from.y > to.y {
		from.y, to.y = from.y-boxHeight/2, to.y+boxHeight/2
	} else {
		from.y, to.y = from.y+boxHeight/2, to.y-boxHeight/2
	}
	fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="2.5" marker-end="url(#arrow)"/>`+"\n",
		from.x, from.y, to.x, to.y, colourTree)
	if !slices.Contains(t.Topology.Hosts, h.From) && !slices.Contains(t.Topology.Hosts, h.To) {
		// Off the middle, where the links of two nodes cross.
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle" stroke="white" stroke-width="3" paint-order="stroke">%.2f</text>`+"\n",
			from.x+(to.x-from.x)*0.7, from.y+(to.y-from.y)*0.7+4, h.Share)
	}
}

func (t *Tree) drawNode(b *strings.Builder, n string, p point) {
	fill, text, round := "white", "black", 2
	if slices.Contains(t.Topology.Hosts, n) {
		round = 10
		switch {
		case n == t.Source:
			fill, text = colourSource, "white"
		case slices.Contains(t.Members, n):
			fill, text = colourMember, "white"
		}
	}
	border, width, label := "#444444", 1.0, t.mark(n)
	switch label {
	case "failed":
		fill, border, width = "#fbdddd", colourFailed, 2.5
	case "restarted":
		border, width = colourRestarted, 2.5
	}
	fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%d" height="%d" rx="%d" fill="%s" stroke="%s" stroke-width="%v"/>`+"\n",
		p.x-boxWidth/2, p.y-boxHeight/2, boxWidth, boxHeight, round, fill, border, width)
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle" fill="%s">%s</text>`+"\n", p.x, p.y+4, text, html.EscapeString(n))
	if label != "" {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle" fill="%s" stroke="white" stroke-width="3" paint-order="stroke">%s</text>`+"\n",
			p.x, p.y-boxHeight/2-5, border, label)
	}
}

// cross draws a cross over what has failed.
func cross(b *strings.Builder, p point) {
	const arm = 9
	fmt.Fprintf(b, `<path d="M%.1f %.1fl%d %dm0 %dl%d %d" stroke="%s" stroke-width="3" fill="none"/>`+"\n",
		p.x-arm, p.y-arm, 2*arm, 2*arm, -2*arm, -2*arm, 2*arm, colourFailed)
}

// layout places the nodes: hosts at the bottom, below their switch, then the switches by
// their distance to the nearest switch with hosts.
func (t *Tree) layout() (at map[string]point, width, height float64) {
	at = make(map[string]point)
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
			at[h] = point{x + boxWidth/2, y(-1)}
			x += boxWidth + gap
		}
		x = max(x, begin+boxWidth+gap)
		at[s] = point{(begin + x - gap) / 2, y(0)}
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
			at[s] = point{width * (float64(i) + 0.5) / float64(len(names)), y(l)}
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
