// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// writeTable writes a result for people.
func (r *Result) writeTable(w io.Writer) error {
	m := r.Machine
	fmt.Fprintf(w, "%d × %s, Linux %s, %s, gleam %s; medians of %d rounds of %g s\n", m.CPUs, m.CPU, m.Kernel, m.Go, m.Commit, r.Rounds, r.Seconds)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, text := range r.Warnings {
		fmt.Fprintf(w, "WARNING: %s\n", text)
	}
	var last benchCase
	for i := range r.Rows {
		x := &r.Rows[i]
		if c := (benchCase{x.Payload, x.Legs}); c != last {
			last = c
			fmt.Fprintf(t, "\n%s\tkpps in\tkpps out\tCPU ns/out\t(threads\tsoftirq)\tloss at 0.9\tby XDP\t\n", c)
		}
		if x.Reason != "" {
			fmt.Fprintf(t, "%s\t-\t-\t-\t-\t-\t-\t\t\n", x.Name)
			continue
		}
		least := ""
		if x.Unsaturated {
			least = "≥ "
		}
		fast := ""
		if x.Fast > 0 {
			fast = fmt.Sprintf("%.1f%%", 100*x.Fast)
		}
		fmt.Fprintf(t, "%s\t%s%.1f\t%.1f\t%.0f\t%.0f\t%.0f\t%s\t%s\t\n", x.Name, least, x.InPPS/1e3, x.OutPPS/1e3, x.CPU, x.Threads, x.Softirq, percent(x.Loss), fast)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	r.writeReasons(w)
	if slices.ContainsFunc(r.Rows, func(x Row) bool { return x.Unsaturated }) {
		fmt.Fprintln(w, "\n≥: the row took all that could be offered")
	}
	for i, l := range r.Latency {
		if i == 0 {
			fmt.Fprintf(w, "\nLatency, %s, a frame at a time\n", benchCase{l.Payload, l.Legs})
		}
		fmt.Fprintf(w, "  %-11s every %3g µs: p50 %.1f µs, p99 %.1f µs at the first receiver, %.1f and %.1f µs at the last (%d frames, %d lost)%s\n", l.Name, l.Gap, l.P50, l.P99, l.LastP50, l.LastP99, l.Samples, l.Lost, byXDP(l.Fast))
	}
	for i, x := range r.Targets {
		if i == 0 {
			fmt.Fprintf(w, "\nTargets, %s\n", targetCase)
		}
		verdict, sign := "missed", "≥"
		if x.Met {
			verdict = "met"
		}
		if x.AtMost {
			sign = "≤"
		}
		byCPU := ""
		if x.ByCPU > 0 {
			byCPU = fmt.Sprintf("; by CPU time %.2f", x.ByCPU)
		}
		fmt.Fprintf(w, "  %-6s  %-64s  %.3f (%s %g%s)\n", verdict, x.Name, x.Measured, sign, x.Bound, byCPU)
	}
	return nil
}

// writeReasons explains the dashes, each reason once.
func (r *Result) writeReasons(w io.Writer) {
	said := make(map[string]bool)
	for i := range r.Rows {
		x := &r.Rows[i]
		line := fmt.Sprintf("- %s, %d B: %s", x.Name, x.Payload, x.Reason)
		if x.Reason == "" || said[line] {
			continue
		}
		if len(said) == 0 {
			fmt.Fprintln(w)
		}
		said[line] = true
		fmt.Fprintln(w, line)
	}
}

// percent writes a share, so that 0 differs from a very small one.
func percent(share float64) string {
	switch {
	case share == 0:
		return "0"
	case share < 0.0001:
		return "<0.01%"
	}
	return fmt.Sprintf("%.2f%%", cmp.Or(share, 0)*100)
}

// byXDP shows the share of the packets that XDP has replicated.
func byXDP(share float64) string {
	if share == 0 {
		return ""
	}
	return fmt.Sprintf(", %.1f%% by XDP", 100*share)
}
