// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package notation is how the transcripts of package mcast, and the traces of the model, write PSNs, the
// copies of a switch, and a switch with its members.
//
// A PSN less than 100 from 0 is decimal, on both sides of the wrap: -1 is 2^24-1, the one before 0.
// Every other one is hexadecimal: 0x200, 0x7ffffe.
//
// Copies are a line for each call of the switch:
//
//	copy B,C 5              PSN 5 to B, then to C
//	copy B 0x205 C 0x305    each in the PSNs of its own queue pair
//	copy N1 1..3; N1 4(ar)  1, 2 and 3 to N1, then 4, which asks for an ACK
//	copy B,C 5, kept        what else the call did with the packet
//
// Calls that differ only in that PSNs follow each other are one line:
//
//	copy B,C 0..9           ten calls: 0 to B, 0 to C, 1 to B, 1 to C, …
//	copy N1 1..3 at once    among several calls: one call
//	drop: no_source, 3 times
package notation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gleam-rdma/gleam/rocev2"
)

// PSN writes a PSN.
func PSN(n rocev2.PSN) string {
	if d := n.Sub(0); -100 < d && d < 100 {
		return strconv.Itoa(int(d))
	}
	return fmt.Sprintf("%#x", uint32(n))
}

// ParsePSN reads a PSN, which has one form only.
func ParsePSN(s string) (rocev2.PSN, error) {
	v, err := strconv.ParseInt(s, 0, 32)
	if err != nil {
		return 0, err
	}
	n := rocev2.PSN(v) & rocev2.PSNMask
	if PSN(n) != s {
		return 0, fmt.Errorf("PSN %s: write %s", s, PSN(n))
	}
	return n, nil
}

// Copy is a packet that leaves by a leg.
type Copy struct {
	Leg string
	PSN rocev2.PSN
	Set string // what the switch sets in it, in parentheses
}

// Call is what one call of a switch does.
type Call struct {
	First  []string // lines before the copies
	Copies []Copy
	Then   []string
	Kept   []string // words about the packet itself
	Last   []string
}

// Answer is the answer to a command: the calls of the switch, one after the other.
type Answer struct {
	lines []line
	calls int
}

// line is a text, or copies and a text.
type line struct {
	parts []part
	text  string
	times int
}

// part is a sequence of copies, which repeats with the next PSNs.
type part struct {
	copies []Copy
	times  int
}

// Add appends a call.
func (a *Answer) Add(c *Call) {
	a.calls++
	a.add(nil, c.First...)
	kept := strings.Join(c.Kept, ", ")
	if len(c.Copies) > 0 && len(c.Then) == 0 {
		a.add(parts(c.Copies), kept)
		kept = ""
	} else if len(c.Copies) > 0 {
		a.add(parts(c.Copies), "")
	}
	a.add(nil, c.Then...)
	if kept != "" {
		a.add(nil, kept)
	}
	a.add(nil, c.Last...)
}

func (a *Answer) add(p []part, texts ...string) {
	for _, s := range texts {
		a.lines = append(a.lines, line{p, s, 1})
	}
}

// WriteTo writes the answer, and empties it.
func (a *Answer) WriteTo(w *strings.Builder) {
	for i := 0; i < len(a.lines); {
		l := &a.lines[i]
		for i++; i < len(a.lines) && l.follow(&a.lines[i]); i++ {
		}
		w.WriteString(l.String(a.calls > 1) + "\n")
	}
	*a = Answer{}
}

// follow makes l the line of its calls and that of m, if they are alike.
func (l *line) follow(m *line) bool {
	if l.text != m.text || len(l.parts) != len(m.parts) {
		return false
	}
	if len(l.parts) > 0 {
		p, q := &l.parts[0], &m.parts[0]
		if len(l.parts) > 1 || q.times > 1 || p.times != l.times || !follows(p.copies, q.copies, l.times) {
			return false
		}
		p.times++
	}
	l.times++
	return true
}

func (l *line) String(several bool) string {
	if len(l.parts) == 0 && l.times > 1 {
		return fmt.Sprintf("%s, %d times", l.text, l.times)
	} else if len(l.parts) == 0 {
		return l.text
	}
	s := "copy " + join(l.parts)
	if several && l.times == 1 && slices.ContainsFunc(l.parts, func(p part) bool { return p.times > 1 }) {
		s += " at once"
	}
	if l.text != "" {
		s += ", " + l.text
	}
	return s
}

// List writes packets that leave together.
func List(c []Copy) string { return join(parts(c)) }

// follows reports whether d is c with PSNs that are n later.
func follows(c, d []Copy, n int) bool {
	return slices.EqualFunc(c, d, func(c, d Copy) bool {
		return c.Leg == d.Leg && c.Set == d.Set && c.PSN.Add(int32(n)) == d.PSN
	})
}

// parts finds what repeats in the copies of one call.
func parts(c []Copy) (all []part) {
	single := 0
	for i := 0; i < len(c); {
		most := part{nil, 1}
		for k := 1; i+2*k <= len(c); k++ {
			n := 1
			for i+(n+1)*k <= len(c) && follows(c[i:i+k], c[i+n*k:i+(n+1)*k], n) {
				n++
			}
			if n > 1 && n*k > len(most.copies)*most.times {
				most = part{c[i : i+k], n}
			}
		}
		if most.times == 1 {
			i++
			continue
		}
		if single < i {
			all = append(all, part{c[single:i], 1})
		}
		all = append(all, most)
		i += len(most.copies) * most.times
		single = i
	}
	if single < len(c) {
		all = append(all, part{c[single:], 1})
	}
	return all
}

func join(parts []part) string {
	var w strings.Builder
	for i, p := range parts {
		if i > 0 {
			w.WriteString("; ")
		}
		for k, c := range p.copies {
			w.WriteString(c.Leg)
			if k+1 < len(p.copies) && c.PSN == p.copies[k+1].PSN && c.Set == p.copies[k+1].Set {
				w.WriteByte(',') // and the next leg
				continue
			}
			w.WriteString(" " + PSN(c.PSN))
			if p.times > 1 {
				w.WriteString(".." + PSN(c.PSN.Add(int32(p.times-1))))
			}
			w.WriteString(c.Set)
			if k+1 < len(p.copies) {
				w.WriteByte(' ')
			}
		}
	}
	return w.String()
}

// Behind is a neighbour of a switch, with the members behind it.
type Behind struct {
	Name    string
	Parent  bool
	Levels  int // levels of switches behind the neighbour
	Members []string
}

// Figure draws a switch with its own members and its neighbours, the root of the tree on the left.
//
//	A -- N1 -- switch -- B, C
//	                  -- N2, 2 levels -- D
func Figure(own []string, neighbours []Behind) string {
	var w strings.Builder
	var below []string
	if len(own) > 0 {
		below = append(below, strings.Join(own, ", "))
	}
	for _, n := range neighbours {
		name, members := n.Name, strings.Join(n.Members, ", ")
		if n.Levels > 0 {
			name += fmt.Sprintf(", %d level%s", n.Levels, strings.Repeat("s", min(n.Levels-1, 1)))
		}
		switch {
		case !n.Parent:
			below = append(below, name+" -- "+members)
		case members == "":
			w.WriteString(name + " -- ")
		default:
			w.WriteString(members + " -- " + name + " -- ")
		}
	}
	w.WriteString("switch")
	indent := strings.Repeat(" ", w.Len())
	for i, s := range below {
		if i > 0 {
			w.WriteString("\n" + indent)
		}
		w.WriteString(" -- " + s)
	}
	return w.String() + "\n"
}
