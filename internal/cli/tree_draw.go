// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"

	"github.com/gleam-rdma/gleam/internal/cli/drawing"
)

// Sizes of the picture of a group's tree, in pixels.
const (
	treeBoxWidth  = 190
	treeBoxHeight = 64
	treeGap       = 36
	treeLevel     = 210
)

// maxShown is the number of members that are drawn for each switch; the others are counted.
const maxShown = 12

// text draws the tree as text.
func (t *groupTree) text() *drawing.Branch {
	answered := 0
	for _, s := range t.Switches {
		if s.Group != nil {
			answered++
		}
	}
	root := &drawing.Branch{Text: fmt.Sprintf("group %s: %d of %d switches answer", t.Group, answered, len(t.Switches))}
	at := root
	if t.Source.IsValid() {
		at = &drawing.Branch{Text: fmt.Sprintf("%s (source)", t.Source)}
		root.Below = append(root.Below, at)
	}
	at.Below = append(at.Below, t.branch(t.start, ""))
	return root
}

// branch is the part of the tree from a switch on; by is the hop to it.
func (t *groupTree) branch(id, by string) *drawing.Branch {
	b := &drawing.Branch{Text: by + strings.Join(t.describe(id), "  ")}
	members, switches := t.below(id)
	shown, rest := shownMembers(members)
	for _, h := range shown {
		b.Below = append(b.Below, &drawing.Branch{Text: fmt.Sprintf("%s  %s", h.Member, strings.Join(t.hopText(h), ", "))})
	}
	if rest != "" {
		b.Below = append(b.Below, &drawing.Branch{Text: rest})
	}
	for _, h := range switches {
		b.Below = append(b.Below, t.branch(h.To, "["+strings.Join(t.hopText(h), ", ")+"]  "))
	}
	return b
}

// shownMembers returns the first members, and what there is to say of the others.
func shownMembers(list []*hop) (shown []*hop, rest string) {
	if len(list) <= maxShown {
		return list, ""
	}
	shown, others := list[:maxShown], list[maxShown:]
	dead, lag := 0, 0
	for _, h := range others {
		lag = max(lag, h.Lag)
		if !h.Live {
			dead++
		}
	}
	return shown, fmt.Sprintf("%d more members, %d of them not live, at most %d packets behind", len(others), dead, lag)
}

// describe says what a switch has answered.
func (t *groupTree) describe(id string) (list []string) {
	s := t.find(id)
	name := id
	if name == "" {
		name = "this switch"
	}
	list = append(list, name)
	if s.Group == nil {
		return append(list, "DOES NOT ANSWER: "+s.Error)
	}
	g := s.Group
	if g.Tree != nil && g.Tree.Parent == "" {
		list = append(list, "root")
	}
	list = append(list, fmt.Sprintf("%s, epoch %d", g.State, g.Epoch))
	if first := t.Switches[0].Group; first.Epoch != g.Epoch || first.Tree != nil && g.Tree != nil && first.Tree.Attempt != g.Tree.Attempt {
		list = append(list, "ANOTHER REGISTRATION of the group than at "+t.Switches[0].Switch)
	}
	if g.Source.IsValid() {
		list = append(list, fmt.Sprintf("acked %s, %d in flight", number24(g.AckPSN), g.Unacknowledged()))
	}
	if r := s.Rates; r != nil {
		list = append(list, "in "+rate(r.DataIn-r.Repeated, r.Goodput), fmt.Sprintf("out %.0f packets/s", r.Copies), fmt.Sprintf("feedback %.0f/s in, %.0f/s out", r.FeedbackIn, r.FeedbackOut))
	} else {
		list = append(list, fmt.Sprintf("%d packets in, %s, %d out", g.Counters.DataIn-g.Counters.Repeated, payload(float64(g.Counters.GoodBytes)), g.Counters.Copies))
	}
	if n := g.Counters.Repeated; n > 0 {
		list = append(list, fmt.Sprintf("%d packets repeated by the source", n))
	}
	if r := g.Repair; r != nil && r.Copies+r.NAKs > 0 {
		list = append(list, fmt.Sprintf("%d NAKs and RNR NAKs answered, %d packets repaired", r.NAKs, r.Copies))
	}
	if g.Tree != nil && g.Tree.Token != nil {
		list = append(list, "token "+g.Tree.Token.State)
	}
	return list
}

// hopText says what is known of a hop.
func (t *groupTree) hopText(h *hop) (list []string) {
	if h.Port != "" {
		list = append(list, "port "+h.Port)
	}
	if h.To != "" && h.State != "up" && h.State != "" {
		list = append(list, "LINK DOWN: "+h.Reason)
	}
	if h.Role != "" && h.Role != "receiver" {
		list = append(list, h.Role)
	}
	if h.To != "" && !h.Unknown {
		list = append(list, fmt.Sprintf("%d of %d members live", h.LiveMembers, h.Members))
	} else if !h.Live {
		list = append(list, "NOT LIVE")
	}
	if t.Source.IsValid() {
		list = append(list, "acked "+number24(h.AckPSN))
		if !h.Unknown {
			list = append(list, fmt.Sprintf("%d behind", h.Lag))
		}
	}
	if h.Pending != "" {
		list = append(list, "pending "+h.Pending)
	}
	if h.Awaited {
		list = append(list, "awaited")
	}
	list = append(list, costWords(h.Cost, h.Slow)...)
	if h.PacketRate > 0 {
		list = append(list, rate(h.PacketRate, h.ByteRate))
	}
	return list
}

// picture draws the tree with the source, or the root, at the top.
func (t *groupTree) picture() *drawing.Picture {
	p := &drawing.Picture{BoxWidth: treeBoxWidth, BoxHeight: treeBoxHeight}
	level := 0
	if t.Source.IsValid() {
		p.Boxes = append(p.Boxes, drawing.Box{Kind: drawing.Source, Text: []string{t.Source.String(), "source"}})
		level = 1
	}
	x, deepest := float64(treeGap), level
	top := t.place(p, t.start, level, &x, &deepest)
	if level == 1 {
		p.Boxes[0].At = drawing.Point{X: p.Boxes[top].At.X, Y: levelY(0)}
		p.Links = append(p.Links, drawing.Link{From: 0, To: top, Flow: drawing.Data})
	}
	p.Width, p.Height = x, levelY(deepest)+treeBoxHeight/2+treeGap
	return p
}

func levelY(level int) float64 { return treeGap + treeBoxHeight/2 + float64(level)*treeLevel }

// place draws a switch and what is below it, from x on, and returns its box.
func (t *groupTree) place(p *drawing.Picture, id string, level int, x *float64, deepest *int) int {
	*deepest = max(*deepest, level)
	s := t.find(id)
	box := drawing.Box{Kind: drawing.Switch, Text: t.boxText(s)}
	if s.Group == nil {
		box.Kind = drawing.Missing
	}
	at := len(p.Boxes)
	p.Boxes = append(p.Boxes, box)
	begin := *x
	var below []int
	members, switches := t.below(id)
	shown, rest := shownMembers(members)
	leaf := func(kind drawing.Kind, text []string) int {
		*deepest = max(*deepest, level+1)
		p.Boxes = append(p.Boxes, drawing.Box{At: drawing.Point{X: *x + treeBoxWidth/2, Y: levelY(level + 1)}, Kind: kind, Text: text})
		*x += treeBoxWidth + treeGap
		return len(p.Boxes) - 1
	}
	for _, h := range shown {
		kind := drawing.Member
		if !h.Live {
			kind = drawing.Missing
		}
		below = append(below, t.link(p, at, leaf(kind, []string{h.Member.String()}), h))
	}
	if rest != "" {
		n := len(members) - len(shown)
		below = append(below, t.link(p, at, leaf(drawing.Member, []string{fmt.Sprintf("%d more members", n)}), members[len(shown)]))
	}
	for _, h := range switches {
		below = append(below, t.link(p, at, t.place(p, h.To, level+1, x, deepest), h))
	}
	if len(below) == 0 {
		*x = begin + treeBoxWidth + treeGap
		p.Boxes[at].At = drawing.Point{X: begin + treeBoxWidth/2, Y: levelY(level)}
		return at
	}
	first, last := p.Boxes[below[0]].At.X, p.Boxes[below[len(below)-1]].At.X
	p.Boxes[at].At = drawing.Point{X: (first + last) / 2, Y: levelY(level)}
	return at
}

// link draws a hop, and returns the box that it leads to.
func (t *groupTree) link(p *drawing.Picture, from, to int, h *hop) int {
	flow := drawing.Data
	if !h.Live || h.To != "" && h.State != "up" && h.State != "" {
		flow = drawing.Broken
	}
	p.Links = append(p.Links, drawing.Link{From: from, To: to, Flow: flow, Label: wrapped(t.hopText(h))})
	return to
}

// wrapped puts words into lines that fit beside each other below a switch.
func wrapped(words []string) (lines []string) {
	const most = 26
	for _, w := range words {
		if i := len(lines) - 1; i >= 0 && len(lines[i])+len(w)+2 <= most {
			lines[i] += ", " + w
		} else {
			lines = append(lines, w)
		}
	}
	return lines
}

// boxText is what a switch's box has room for.
func (t *groupTree) boxText(s *treeSwitch) []string {
	name := s.Switch
	if name == "" {
		name = "this switch"
	}
	if s.Group == nil {
		return []string{name, "does not answer"}
	}
	list := []string{name}
	if s.Switch == t.Root && t.Root != "" {
		list[0] += " (root)"
	}
	if r := s.Rates; r != nil {
		list = append(list, "in "+rate(r.DataIn-r.Repeated, r.Goodput))
	}
	if r := s.Group.Repair; r != nil {
		list = append(list, fmt.Sprintf("%d repaired, %d NAKs", r.Copies, r.NAKs))
	}
	if s.Group.Source.IsValid() {
		list = append(list, "acked "+number24(s.Group.AckPSN))
	}
	return list
}
