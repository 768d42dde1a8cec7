// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/gleam-rdma/gleam/lab/bench/chart"
	"github.com/gleam-rdma/gleam/lab/bench/machine"
	"github.com/gleam-rdma/gleam/lab/bench/stat"
)

// Result has the measurements; its JSON is the output of -o json.
type Result struct {
	Machine  machine.Machine `json:"machine"`
	Payload  int             `json:"payload"`  // bytes of a packet
	Parallel int             `json:"parallel"` // groups that are registered at once
	Rows     []Row           `json:"rows"`     // the rows of each number of members in turn, by groups
}

// Row is what was measured with one number of groups.
type Row struct {
	Groups  int `json:"groups"`
	Members int `json:"members"` // members of each group, the source included

	NanosPerPacket         float64 `json:"ns_per_packet"`            // gleamd's CPU time for a packet into all groups in turn and the ACKs of it
	BytesPerGroup          float64 `json:"bytes_per_group"`          // resident memory of gleamd
	RegistrationsPerSecond float64 `json:"registrations_per_second"` // groups made by envelopes, with all hosts on this machine
	RegistrationCPU        float64 `json:"registration_cpu_us"`      // gleamd's part of the CPU time of one, in microseconds

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
func (r *Row) ratio() float64 {
	var all []float64
	for i := range r.AllPPS {
		all = append(all, r.AllPPS[i]/r.OnePPS[i])
	}
	return stat.Median(all)
}

// summarize sets what follows from the measurements.
func (r *Row) summarize() {
	r.NanosPerPacket = 1e3 * stat.Median(r.AllCPU)
	r.BytesPerGroup = float64(r.MemoryAfter-r.MemoryBefore) / float64(r.Groups)
	r.RegistrationsPerSecond = float64(r.Groups) / r.Seconds
}

// writeTable writes r for people: a row alone with all that was measured, several side by side.
func (r *Result) writeTable(w io.Writer) error {
	fmt.Fprintf(w, "%s; medians of %d rounds, registrations %d at a time\n\n", r.Machine, len(r.Rows[0].AllPPS), r.Parallel)
	if len(r.Rows) == 1 {
		return r.Rows[0].writeTable(w, r.Payload)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "members\tgroups\tns a packet\tof one group's\tkpps in\tof one group's\tbytes a group\tregistrations/s\tµs of gleamd for one\t\n")
	for i := range r.Rows {
		x := &r.Rows[i]
		fmt.Fprintf(t, "%d\t%d\t%.0f\t%.2f\t%.1f\t%.3f\t%.0f\t%.0f\t%.0f\t\n", x.Members, x.Groups, x.NanosPerPacket, stat.Median(x.AllCPU)/stat.Median(x.OneCPU),
			stat.Median(x.AllPPS)/1e3, x.ratio(), x.BytesPerGroup, x.RegistrationsPerSecond, x.RegistrationCPU)
	}
	return t.Flush()
}

// draw draws the rows into a file, unless its name is empty.
func (r *Result) draw(file string) error {
	if file == "" {
		return nil
	}
	var panels []chart.Chart
	for _, p := range []struct {
		title, y string
		of       func(*Row) float64
	}{
		{"CPU time of gleamd for a packet into all groups in turn", "ns", func(x *Row) float64 { return x.NanosPerPacket }},
		{"Memory of gleamd for a group", "bytes", func(x *Row) float64 { return x.BytesPerGroup }},
		{"Registrations", "groups/s", func(x *Row) float64 { return x.RegistrationsPerSecond }},
	} {
		l := &chart.Lines{Axes: chart.Axes{Title: p.title, X: "groups", Y: p.y, LogX: true}}
		for i := range r.Rows {
			x := &r.Rows[i]
			name := fmt.Sprintf("%d members", x.Members)
			if n := len(l.Series); n == 0 || l.Series[n-1].Name != name {
				l.Series = append(l.Series, chart.Series{Name: name})
			}
			s, v := &l.Series[len(l.Series)-1], p.of(x)
			s.Points = append(s.Points, chart.Point{X: float64(x.Groups), Y: v, Low: v, High: v})
		}
		panels = append(panels, l)
	}
	return chart.Save(file, panels...)
}

// writeTable writes r with all that was measured.
func (r *Row) writeTable(w io.Writer, payload int) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	n := float64(r.Groups)
	fmt.Fprintf(t, "%d groups of %d members, by envelopes\t%.1f s\t%.1f ms for each\t%.0f µs of gleamd's CPU time\n", r.Groups, r.Members, r.Seconds, 1e3*r.Seconds/n, r.RegistrationCPU)
	fmt.Fprintf(t, "gleamd's memory for them\t%.1f MB\t%.1f KB for each\n", float64(r.MemoryAfter-r.MemoryBefore)/1e6, float64(r.MemoryAfter-r.MemoryBefore)/1e3/n)
	one, all := stat.Median(r.OnePPS), stat.Median(r.AllPPS)
	copies := float64(r.Members - 1)
	fmt.Fprintf(t, "packets of %d bytes into one of them\t%.1f kpps in\t%.1f kpps out\t%.1f µs of CPU time for each in\n", payload, one/1e3, one*copies/1e3, stat.Median(r.OneCPU))
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
