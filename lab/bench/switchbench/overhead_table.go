// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// writeTable writes a result for people.
func (r *Overhead) writeTable(w io.Writer) error {
	m := r.Machine
	fmt.Fprintf(w, "%d × %s, Linux %s, %s, gleam %s; medians of %d rounds of %g s\n", m.CPUs, m.CPU, m.Kernel, m.Go, m.Commit, r.Rounds, r.Seconds)
	for _, text := range r.Warnings {
		fmt.Fprintf(w, "WARNING: %s\n", text)
	}
	fmt.Fprintf(w, "\n%s: gleamd without observation takes %.1f kpps in, at %.0f ns of its CPU time for each.\n", benchCase{r.Payload, r.Legs}, r.InPPS/1e3, r.CPU)
	fmt.Fprintf(w, "Other programs took %.0f %% of the CPUs before the run.\n\n", 100*r.Others)
	interval := "95 % interval"
	if r.Rounds < minIntervalRounds {
		interval = "lowest, highest"
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "OBSERVATION\tCPU TIME\t%s\tPACKETS/S\t%s\tCOST\n", interval, interval)
	for i := range r.Observations {
		o := &r.Observations[i]
		fmt.Fprintf(t, "%s\t%.4f\t%s\t%.4f\t%s\t%s\n", o.Name, o.CPU.Median, o.CPU.interval(), o.InPPS.Median, o.InPPS.interval(), o.Verdict)
	}
	fmt.Fprintln(t)
	for i := range r.Observations {
		fmt.Fprintf(t, "%s\t%s\n", r.Observations[i].Name, r.Observations[i].What)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "\nEach number is with the observation, as a ratio to without: CPU time of gleamd for\neach packet in, and packets in a second.")
	return err
}

func (r Ratio) interval() string { return fmt.Sprintf("%.4f to %.4f", r.Low, r.High) }
