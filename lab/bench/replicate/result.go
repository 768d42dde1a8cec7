// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package replicate

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/gleam-rdma/gleam/config/linkrate"
	"github.com/gleam-rdma/gleam/internal/cli/perf"
	"github.com/gleam-rdma/gleam/lab/bench/machine"
	"github.com/gleam-rdma/gleam/lab/bench/stat"
)

// Result is the outcome of a run.
type Result struct {
	Machine machine.Machine `json:"machine"`
	Rate    linkrate.Rate   `json:"link_bit_s"`
	PathMTU int             `json:"path_mtu"`
	Rounds  int             `json:"rounds"`
	Seconds float64         `json:"seconds"` // the time of one measurement
	Rows    []Row           `json:"rows"`
}

// Row has the figures of one case: medians of the rounds. Ratios are of figures of the same round.
type Row struct {
	Bytes    int    `json:"bytes"`
	Depth    int    `json:"depth"`
	Replicas int    `json:"replicas"`
	Mode     string `json:"mode"`

	IOPS float64 `json:"iops"`
	MBs  float64 `json:"mb_s"`
	P50  float64 `json:"p50_usec"`
	P99  float64 `json:"p99_usec"`
	P999 float64 `json:"p99_9_usec"`
	Link float64 `json:"link_bytes_per_byte"` // frames that the sender's link carried, headers included

	OfOne      float64 `json:"iops_of_one_copy"`        // IOPS against those of one copy
	OfUnicasts float64 `json:"iops_of_unicasts"`        // against as many unicasts; 0: not measured
	P50OfThem  float64 `json:"p50_latency_of_unicasts"` // latency against theirs
	Resent     uint64  `json:"sender_retransmitted_packets"`
}

// summarize makes the rows, in the order of the cases.
func summarize(o *Options, here machine.Machine, samples map[writeCase][]*perf.Size) *Result {
	r := &Result{Machine: here, Rate: o.Rate, PathMTU: o.MTU, Rounds: o.Rounds, Seconds: o.Duration.Seconds()}
	for _, c := range o.cases() {
		list, one, unicasts := samples[c], samples[c.one()], samples[c.by(perf.Unicasts)]
		of := func(f func(round int, z *perf.Size) float64) float64 {
			var vs []float64
			for i, z := range list {
				vs = append(vs, f(i, z))
			}
			return stat.Median(vs)
		}
		row := Row{
			Bytes: c.size, Depth: c.depth, Replicas: c.replicas, Mode: c.mode,
			IOPS: of(func(_ int, z *perf.Size) float64 { return z.All.IOPS }),
			MBs:  of(func(_ int, z *perf.Size) float64 { return z.All.MBs }),
			P50:  of(func(_ int, z *perf.Size) float64 { return z.All.Typical }),
			P99:  of(func(_ int, z *perf.Size) float64 { return z.All.P99 }),
			P999: of(func(_ int, z *perf.Size) float64 { return z.All.P999 }),
			Link: of(func(_ int, z *perf.Size) float64 {
				return float64(z.SenderLinkBytes) / float64(z.Bytes*z.Iterations)
			}),
			OfOne: of(func(i int, z *perf.Size) float64 { return z.All.IOPS / one[i].All.IOPS }),
		}
		if unicasts != nil {
			row.OfUnicasts = of(func(i int, z *perf.Size) float64 { return z.All.IOPS / unicasts[i].All.IOPS })
			row.P50OfThem = of(func(i int, z *perf.Size) float64 { return z.All.Typical / unicasts[i].All.Typical })
		}
		for _, z := range list {
			row.Resent += z.Retransmitted
		}
		r.Rows = append(r.Rows, row)
	}
	return r
}

// writeTable writes r for people.
func (r *Result) writeTable(w io.Writer) error {
	fmt.Fprintf(w, "%s\n", r.Machine)
	fmt.Fprintf(w, "writes to replicas, each host's link %v, path MTU %d; medians of %d rounds of %g s\n\n", r.Rate, r.PathMTU, r.Rounds, r.Seconds)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "bytes\tdepth\treplicas\tmode\tIOPS\tMB/s\tp50\tp99\tp99.9\tlink\tof one copy\tof unicasts\tp50 of theirs\t")
	fmt.Fprintln(t, "\t\t\t\t\t\tms\tms\tms\tbytes/byte\tIOPS\tIOPS\t\t")
	for _, x := range r.Rows {
		unicasts, latency := "-", "-"
		if x.OfUnicasts > 0 && x.Mode != perf.Unicasts {
			unicasts, latency = fmt.Sprintf("%.2f", x.OfUnicasts), fmt.Sprintf("%.2f", x.P50OfThem)
		}
		fmt.Fprintf(t, "%d\t%d\t%d\t%s\t%.1f\t%.2f\t%.2f\t%.2f\t%.2f\t%.3f\t%.3f\t%s\t%s\t\n", x.Bytes, x.Depth, x.Replicas, x.Mode,
			x.IOPS, x.MBs, x.P50/1000, x.P99/1000, x.P999/1000, x.Link, x.OfOne, unicasts, latency)
	}
	return t.Flush()
}
