// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package drawing draws switches, hosts and the ways of data between them: as SVG, for
// Graphviz, and trees as text.
package drawing

import (
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
	"unicode"
)

// Colours are Okabe and Ito's, which differ for colour-blind people too.
const (
	blue  = "#0072b2"
	red   = "#d55e00"
	green = "#009e73"
	grey  = "#bbbbbb"
	black = "#444444"

	failure = "#cc0000"
	notice  = "#b8860b"
)

// Kind is the kind of what a box stands for.
type Kind int

// Kinds of boxes.
const (
	Switch  Kind = iota
	Host         // a host that is no member
	Member       // a host
	Source       // a host
	Missing      // a switch, or a member, that is lost
)

// Flow is what a link carries.
type Flow int

// Flows.
const (
	Idle   Flow = iota // no data
	Data               // data, from From to To
	Broken             // data that does not arrive
)

// Point is a place in a picture, in pixels.
type Point struct{ X, Y float64 }

// Box is a switch or a host. Lines of text stand in it.
type Box struct {
	At     Point // its middle
	Kind   Kind
	Text   []string
	Note   string // above it, with emphasis: what has happened to it; "": nothing
	Failed bool   // what Note is about is a failure
}

// Link joins two boxes, by their indexes.
type Link struct {
	From, To int
	Flow     Flow
	Label    []string // lines
	Cut      bool     // true: it has failed: a cross is over it
}

// Picture is what is drawn. All boxes have one size.
type Picture struct {
	Width, Height       float64
	BoxWidth, BoxHeight float64
	Boxes               []Box
	Links               []Link
}

// maxText bounds a line of text: some of it is what a switch has answered.
const maxText = 300

// Clean makes a line of text harmless for terminals and files.
func Clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
	if r := []rune(s); len(r) > maxText {
		s = string(r[:maxText]) + "…"
	}
	return s
}

const lineHeight = 13

// WriteSVG draws the picture as SVG.
func (p *Picture) WriteSVG(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" font-family="sans-serif" font-size="11">`+"\n", p.Width, p.Height)
	b.WriteString(`<rect width="100%" height="100%" fill="white"/>` + "\n")
	fmt.Fprintf(&b, `<defs><marker id="data" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="5" markerHeight="5" orient="auto"><path d="M0 0L8 4L0 8z" fill="%s"/></marker></defs>`+"\n", blue)
	for _, flow := range []Flow{Idle, Broken, Data} { // data above the rest
		for _, l := range p.Links {
			if l.Flow == flow {
				p.drawLink(&b, &l)
			}
		}
	}
	for _, l := range p.Links {
		p.drawLabel(&b, &l)
	}
	for _, l := range p.Links {
		if l.Cut {
			cross(&b, p.Boxes[l.From].At, p.Boxes[l.To].At)
		}
	}
	for i := range p.Boxes {
		p.drawBox(&b, &p.Boxes[i])
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// ends returns the points at the edges of its boxes between which a link is drawn.
func (p *Picture) ends(l *Link) (from, to Point) {
	from, to = p.Boxes[l.From].At, p.Boxes[l.To].At
	half := p.BoxHeight / 2
	if from.Y > to.Y {
		half = -half
	}
	return Point{from.X, from.Y + half}, Point{to.X, to.Y - half}
}

func (p *Picture) drawLink(b *strings.Builder, l *Link) {
	style := `stroke="` + grey + `"`
	from, to := p.ends(l)
	switch l.Flow {
	case Idle:
		from, to = p.Boxes[l.From].At, p.Boxes[l.To].At
	case Data:
		style = `stroke="` + blue + `" stroke-width="2.5" marker-end="url(#data)"`
	case Broken:
		style = `stroke="` + red + `" stroke-width="2.5" stroke-dasharray="6 4"`
	}
	fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" %s/>`+"\n", from.X, from.Y, to.X, to.Y, style)
}

// drawLabel writes a link's label off its middle, where the links of two boxes cross.
func (p *Picture) drawLabel(b *strings.Builder, l *Link) {
	from, to := p.ends(l)
	const share = 0.7
	for i, s := range l.Label {
		y := from.Y + (to.Y-from.Y)*share + 4 + float64(i)*lineHeight - float64(len(l.Label)-1)*lineHeight/2
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle" stroke="white" stroke-width="3" paint-order="stroke">%s</text>`+"\n",
			from.X+(to.X-from.X)*share, y, html.EscapeString(Clean(s)))
	}
}

// cross draws a cross in the middle of a link.
func cross(b *strings.Builder, from, to Point) {
	const arm = 9
	fmt.Fprintf(b, `<path d="M%.1f %.1fl%d %dm0 %dl%d %d" stroke="%s" stroke-width="3" fill="none"/>`+"\n",
		(from.X+to.X)/2-arm, (from.Y+to.Y)/2-arm, 2*arm, 2*arm, -2*arm, -2*arm, 2*arm, failure)
}

func (p *Picture) drawBox(b *strings.Builder, x *Box) {
	fill, text, line, round := "white", "black", black, 2
	switch x.Kind {
	case Host:
		round = 10
	case Member:
		fill, text, round = green, "white", 10
	case Source:
		fill, text, round = red, "white", 10
	case Missing:
		text, line = red, red
	}
	width := 1.0
	switch {
	case x.Note != "" && x.Failed:
		fill, line, width = "#fbdddd", failure, 2.5
	case x.Note != "":
		line, width = notice, 2.5
	}
	fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.0f" height="%.0f" rx="%d" fill="%s" stroke="%s" stroke-width="%v"/>`+"\n",
		x.At.X-p.BoxWidth/2, x.At.Y-p.BoxHeight/2, p.BoxWidth, p.BoxHeight, round, fill, line, width)
	if x.Note != "" {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle" fill="%s" stroke="white" stroke-width="3" paint-order="stroke">%s</text>`+"\n",
			x.At.X, x.At.Y-p.BoxHeight/2-5, line, html.EscapeString(Clean(x.Note)))
	}
	for i, s := range x.Text {
		y := x.At.Y + 4 + float64(i)*lineHeight - float64(len(x.Text)-1)*lineHeight/2
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle" fill="%s">%s</text>`+"\n", x.At.X, y, text, html.EscapeString(Clean(s)))
	}
}

// WriteDot writes the picture as a graph in Graphviz' language.
func (p *Picture) WriteDot(w io.Writer) error {
	var b strings.Builder
	b.WriteString("digraph tree {\n  node [fontname=\"sans-serif\", fontsize=11];\n  edge [fontname=\"sans-serif\", fontsize=10];\n")
	for i := range p.Boxes {
		x := &p.Boxes[i]
		style := [...]string{
			Switch: "shape=box", Host: "shape=ellipse", Member: `shape=ellipse, style=filled, fillcolor="` + green + `", fontcolor=white`,
			Source: `shape=ellipse, style=filled, fillcolor="` + red + `", fontcolor=white`, Missing: `shape=box, color="` + red + `", fontcolor="` + red + `"`,
		}[x.Kind]
		fmt.Fprintf(&b, "  n%d [%s, label=%s];\n", i, style, dotText(x.Text))
	}
	for i := range p.Links {
		l := &p.Links[i]
		style := [...]string{Idle: `dir=none, color="` + grey + `"`, Data: `color="` + blue + `", penwidth=2`, Broken: `color="` + red + `", style=dashed`}[l.Flow]
		fmt.Fprintf(&b, "  n%d -> n%d [%s, label=%s];\n", l.From, l.To, style, dotText(l.Label))
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// dotText is a string of Graphviz' language with a line break between lines.
func dotText(lines []string) string {
	r := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	all := slices.Clone(lines)
	for i := range all {
		all[i] = r.Replace(Clean(all[i]))
	}
	return `"` + strings.Join(all, `\n`) + `"`
}

// Branch is a part of a tree as text: a line, and what is below it.
type Branch struct {
	Text  string
	Below []*Branch
}

// Write writes the branch, a line for each part, indented.
func (x *Branch) Write(w io.Writer) error {
	var b strings.Builder
	b.WriteString(Clean(x.Text) + "\n")
	x.below(&b, "")
	_, err := io.WriteString(w, b.String())
	return err
}

func (x *Branch) below(b *strings.Builder, indent string) {
	for i, c := range x.Below {
		line, more := "├─ ", "│  "
		if i == len(x.Below)-1 {
			line, more = "└─ ", "   "
		}
		b.WriteString(indent + line + Clean(c.Text) + "\n")
		c.below(b, indent+more)
	}
}
