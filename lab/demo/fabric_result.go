// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/gleam-rdma/gleam/lab/demo/tree"
	"github.com/gleam-rdma/gleam/lab/fabric"
)

// Tree is how the group's packets went through a fabric, as counted on its links. Frames that
// a link lost are counted too.
type Tree struct {
	Packets uint64      `json:"packets"` // data packets of the payload
	Links   []LinkCount `json:"links"`   // each direction of each link

	// InnerData are the frames with data of the group on all links between switches,
	// MostPerLink the most in one direction of one of them.
	InnerData   uint64 `json:"inner_data"`
	MostPerLink uint64 `json:"most_per_link"`
	// OptimalLinks is the number of links between switches in the smallest tree that joins
	// the members' switches: not known for more than 12 of these.
	OptimalLinks *int `json:"optimal_links,omitempty"`

	SourceFeedback  uint64   `json:"source_feedback"`  // ACKs, NAKs and CNPs that the source got in the group's transfer
	UnicastFeedback uint64   `json:"unicast_feedback"` // feedback that the source got in the transfer to one receiver by unicast
	Members         []string `json:"group_members"`

	topology *fabric.Topology
	source   string
	marks    []tree.Mark
}

// LinkCount has what one end of a link sent during the group's transfer.
type LinkCount struct {
	From      string `json:"from"`
	To        string `json:"to"`
	Inner     bool   `json:"inner"` // true: the link is between switches
	Data      uint64 `json:"data"`  // frames of the group
	DataBytes uint64 `json:"data_bytes"`
	Feedback  uint64 `json:"feedback"`
	Envelopes uint64 `json:"envelopes"`
}

// optimal is the number of data frames on links between switches in the smallest tree.
func (t *Tree) optimal() uint64 { return uint64(*t.OptimalLinks) * t.Packets }

// allData is the number of data frames on all links, those of the hosts included.
func (t *Tree) allData() (n uint64) {
	for i := range t.Links {
		n += t.Links[i].Data
	}
	return n
}

// picture returns what can be drawn.
func (t *Tree) picture() *tree.Tree {
	p := &tree.Tree{Topology: t.topology, Source: t.source, Members: t.Members, Marks: t.marks}
	for _, l := range t.Links {
		p.Hops = append(p.Hops, tree.Hop{From: l.From, To: l.To, Share: float64(l.Data) / float64(t.Packets)})
	}
	return p
}

// write writes t for people.
func (t *Tree) write(w io.Writer, drawn bool) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	title := fmt.Sprintf("\nLINK\tDATA FRAMES\tOF %d PACKETS\tFEEDBACK\tENVELOPES\n", t.Packets)
	for _, l := range t.Links {
		if l.Inner && l.Data+l.Feedback+l.Envelopes > 0 {
			fmt.Fprint(tw, title)
			title = ""
			fmt.Fprintf(tw, "%s → %s\t%d\t%.4fx\t%d\t%d\n", l.From, l.To, l.Data, float64(l.Data)/float64(t.Packets), l.Feedback, l.Envelopes)
		}
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if t.OptimalLinks != nil {
		fmt.Fprintf(tw, "\nbetween switches\t%d data frames", t.InnerData)
		if n := t.optimal(); n > 0 {
			fmt.Fprintf(tw, ", %.4fx the smallest tree's %d (%s)", float64(t.InnerData)/float64(n), n, plural(*t.OptimalLinks, "link"))
		}
		fmt.Fprintln(tw)
		links := *t.OptimalLinks + len(t.Members)
		all := uint64(links) * t.Packets
		fmt.Fprintf(tw, "on all links\t%d data frames, %.4fx the smallest tree's %d (%s)\n", t.allData(), float64(t.allData())/float64(all), all, plural(links, "link"))
	}
	fmt.Fprintf(tw, "feedback to the source\t%d packets, %s one unicast receiver's %d\n", t.SourceFeedback,
		ratio(int64(t.SourceFeedback), int64(t.UnicastFeedback)), t.UnicastFeedback)
	if err := tw.Flush(); err != nil || drawn {
		return err
	}
	fmt.Fprintln(w)
	return t.picture().WriteText(w)
}

// plural is a number with a noun.
func plural(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case noun == "switch":
		return fmt.Sprintf("%d switches", n)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// writeDisturbances says what happened in mid-transfer, and what it has cost.
func (r *Result) writeDisturbances(w io.Writer) error {
	if len(r.Disturbances) == 0 {
		return nil
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	routed := slices.ContainsFunc(r.Disturbances, func(d Disturbance) bool { return d.RoutedMS > 0 })
	header := "\nIN MID-TRANSFER\tAFTER\tTOOK\tTO RESUME\tAT"
	if routed {
		header += "\tALL ROUTES AFTER"
	}
	fmt.Fprintln(tw, header)
	for _, d := range r.Disturbances {
		fmt.Fprintf(tw, "%s\t%s\t%.0f ms\t%.0f ms\t%s", d.Name, plural(d.After, "message"), d.TookMS, d.ResumeMS, cmp.Or(d.Receiver, "-"))
		switch {
		case d.RoutedMS > 0:
			fmt.Fprintf(tw, "\t%.0f ms", d.RoutedMS)
		case routed:
			fmt.Fprint(tw, "\t-")
		}
		fmt.Fprintln(tw)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "TO RESUME is the longest time for which a receiver got nothing new: %.0f ms before all this\n", r.Disturbances[0].BeforeMS)
	return err
}
