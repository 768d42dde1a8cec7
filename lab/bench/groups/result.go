// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/gleam-rdma/gleam/lab/bench/machine"
	"github.com/gleam-rdma/gleam/lab/bench/stat"
)

// Result has the measurements; its JSON is the output of -o json.
type Result struct {
	Machine machine.Machine `json:"machine"`
	Groups  int             `json:"groups"`
	Members int             `json:"members"` // members of each group
	Payload int             `json:"payload"`

	Seconds      float64 `json:"seconds"`       // the time in which all groups were made
	MemoryBefore int64   `json:"memory_before"` // resident bytes of gleamd, its packet memory included
	MemoryAfter  int64   `json:"memory_after"`

	// Packets of the source a second, each of which all receivers got, by round: into one
	// group, and into all in turn.
	OnePPS []float64 `json:"one_pps"`
	AllPPS []float64 `json:"all_pps"`
	// gleamd's CPU time for each of these packets and the ACKs of it, in microseconds. It says
	// more than the speed where other programs run beside.
	OneCPU []float64 `json:"one_cpu_us"`
	AllCPU []float64 `json:"all_cpu_us"`

	// With --fast-path: the part of these packets that XDP has replicated.
	OneFast []float64   `json:"one_fast,omitempty"`
	AllFast []float64   `json:"all_fast,omitempty"`
	Fast    *FastGroups `json:"fast,omitempty"`
}

// FastGroups are the groups on the fast path, when the last round had ended.
type FastGroups struct {
	Ever  int            `json:"ever"`  // groups of which XDP has replicated packets
	Now   int            `json:"now"`   // groups that are on it
	Slots map[int]int    `json:"slots"` // groups by the slots of their rings
	Why   map[string]int `json:"words"` // groups that are off it, by what keeps them off
}

// target is the least ratio of the speed with all groups to that with one.
const target = 0.9

// ratio is the median of the rounds' ratios.
func (r *Result) ratio() float64 {
	var all []float64
	for i := range r.AllPPS {
		all = append(all, r.AllPPS[i]/r.OnePPS[i])
	}
	return stat.Median(all)
}

// writeTable writes r for people.
func (r *Result) writeTable(w io.Writer) error {
	fmt.Fprintf(w, "%s; medians of %d rounds\n\n", r.Machine, len(r.AllPPS))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	n := float64(r.Groups)
	fmt.Fprintf(t, "%d groups of %d members, by envelopes\t%.1f s\t%.1f ms for each\n", r.Groups, r.Members, r.Seconds, 1e3*r.Seconds/n)
	fmt.Fprintf(t, "gleamd's memory for them\t%.1f MB\t%.1f KB for each\n", float64(r.MemoryAfter-r.MemoryBefore)/1e6, float64(r.MemoryAfter-r.MemoryBefore)/1e3/n)
	one, all := stat.Median(r.OnePPS), stat.Median(r.AllPPS)
	copies := float64(r.Members - 1)
	fmt.Fprintf(t, "packets of %d bytes into one of them\t%.1f kpps in\t%.1f kpps out\t%.1f µs of CPU time for each in\n", r.Payload, one/1e3, one*copies/1e3, stat.Median(r.OneCPU))
	fmt.Fprintf(t, "into all of them in turn\t%.1f kpps in\t%.1f kpps out\t%.1f µs\n", all/1e3, all*copies/1e3, stat.Median(r.AllCPU))
	if f := r.Fast; f != nil {
		fmt.Fprintf(t, "groups that XDP has replicated\t%d of %d\t%d at the end\t%.1f %% of the packets into all, %.1f %% of those into one\n", f.Ever, r.Groups, f.Now, 100*stat.Median(r.AllFast), 100*stat.Median(r.OneFast))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	verdict := "met"
	if r.ratio() < target {
		verdict = "missed"
	}
	_, err := fmt.Fprintf(w, "\nTarget  %s  speed with %d groups against that with one: %.3f (≥ %g)\n", verdict, r.Groups, r.ratio(), target)
	return err
}
