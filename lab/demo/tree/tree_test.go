// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/lab/fabric"
)

func fatTree(t *testing.T, k int) *fabric.Topology {
	t.Helper()
	top, err := fabric.FatTree(k)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

func TestOptimal(t *testing.T) {
	four := fatTree(t, 4)
	for _, c := range []struct {
		top      *fabric.Topology
		switches string
		want     int
	}{
		{fabric.LeafSpine(4, 2, 3), "l1", 0},
		{fabric.LeafSpine(4, 2, 3), "l1 l1", 0},
		{fabric.LeafSpine(4, 2, 3), "l1 l2", 2},
		{fabric.LeafSpine(4, 2, 3), "l1 l2 l3 l4", 4},
		{fabric.LeafSpine(4, 2, 3), "s1 s2", 2},
		{fabric.LeafSpine(1, 3, 1), "s1 s2 s3", 3},
		{four, "e1-1 e1-2", 2},
		{four, "e1-1 e2-1", 4},
		{four, "e1-1 e1-2 e2-1", 5},
		{four, "e1-1 e1-2 e2-1 e2-2 e3-1 e3-2 e4-1 e4-2", 12}, // 8 below and 4 above the aggregation switches
	} {
		if got, known := Optimal(c.top, strings.Fields(c.switches)); got != c.want || !known {
			t.Errorf("%s: %d links, %v; want %d", c.switches, got, known, c.want)
		}
	}
	var many []string
	for i := range 13 {
		many = append(many, fmt.Sprintf("l%d", i+1))
	}
	if _, known := Optimal(fabric.LeafSpine(13, 1, 1), many); known {
		t.Error("13 switches: known")
	}
}

// counted is a tree through s1 of a fabric, where the host h5 is in no group, and where one
// packet went another way.
func counted() *Tree {
	return &Tree{
		Topology: fabric.LeafSpine(3, 2, 2), Source: "h1", Members: []string{"h1", "h2", "h3", "h6"},
		Hops: []Hop{
			{"h1", "l1", 1.1}, {"l1", "h2", 1}, {"l1", "s1", 1.004}, {"l1", "s2", 0.001}, {"s1", "l2", 1}, {"s1", "l3", 1},
			{"l2", "h3", 1}, {"l3", "h6", 1},
		},
	}
}

// marked is counted, with a link and a switch that have failed, and one that has restarted.
func marked() *Tree {
	x := counted()
	x.Hops = append(x.Hops, Hop{"l1", "s2", 0.5}, Hop{"s2", "l2", 0.5}, Hop{"s2", "l3", 0.5})
	x.Marks = []Mark{{Node: "s1", Failed: true}, {Node: "l3"}, {Node: "l2", To: "s2", Failed: true}}
	return x
}

func TestText(t *testing.T) {
	var b strings.Builder
	x := counted()
	if err := x.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	const want = `h1 (source)
└─ l1
   ├─ h2
   └─ s1  1.004
      ├─ l2  1.000
      │  └─ h3
      └─ l3  1.000
         └─ h6
`
	if b.String() != want {
		t.Errorf("%s\nwant\n%s", b.String(), want)
	}
	x.Marks = []Mark{{Node: "s1", Failed: true}, {Node: "l3"}, {Node: "l1", To: "s1", Failed: true}, {Node: "l2", To: "s2", Failed: true}}
	b.Reset()
	if err := x.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"└─ s1  1.004  link failed  failed\n", "├─ l2  1.000\n", "└─ l3  1.000  restarted\n"} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("%s\nwant in it %q", b.String(), line)
		}
	}
	x.Marks = nil
	// Data that went another way for some time, and back to where it came from.
	x.Hops = append(x.Hops, Hop{"l2", "s2", 0.5}, Hop{"s2", "l1", 0.5})
	b.Reset()
	if err := x.WriteText(&b); err != nil || !strings.Contains(b.String(), "l1  0.500  (again)") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// TestSVG: the picture is XML with every node, all within its bounds and none on another, and
// an arrow for each hop.
func TestSVG(t *testing.T) {
	for name, x := range map[string]*Tree{
		"leaf-spine":              counted(),
		"marks":                   marked(),
		"fat-tree":                {Topology: fatTree(t, 4), Source: "h1", Members: []string{"h1"}, Hops: []Hop{{"h1", "e1-1", 1}}},
		"more spines than leaves": {Topology: fabric.LeafSpine(1, 9, 1), Source: "h1"},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			if err := x.WriteSVG(&b); err != nil {
				t.Fatal(err)
			}
			for d := xml.NewDecoder(strings.NewReader(b.String())); ; {
				if _, err := d.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("%v\n%s", err, b.String())
				}
			}
			at, width, height := x.layout()
			nodes := append(x.Topology.Switches, x.Topology.Hosts...)
			for i, n := range nodes {
				p, ok := at[n]
				if !ok || p.X < boxWidth/2 || p.X > width-boxWidth/2 || p.Y < boxHeight/2 || p.Y > height-boxHeight/2 {
					t.Errorf("%s is at %v, %v, of %v by %v", n, p, ok, width, height)
				}
				if !strings.Contains(b.String(), ">"+n+"</text>") {
					t.Errorf("%s has no box", n)
				}
				for _, o := range nodes[:i] {
					if q := at[o]; max(p.X-q.X, q.X-p.X) < boxWidth && max(p.Y-q.Y, q.Y-p.Y) < boxHeight {
						t.Errorf("%s is on %s", n, o)
					}
				}
			}
			want := 0
			for _, h := range x.Hops {
				if h.Share >= least {
					want++
				}
			}
			if n := strings.Count(b.String(), "marker-end"); n != want {
				t.Errorf("%d arrows, want %d", n, want)
			}
		})
	}
}
