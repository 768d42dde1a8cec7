// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// Rows are compared with each other, so the machine's other load is reported.
const (
	busyShare = 0.1 // the share of all CPUs that others may take before the run
	spread    = 0.3 // the share of a row's median that its rounds may lie apart
)

// loadTime is how long others are watched before the run.
const loadTime = 300 * time.Millisecond

// warn adds a warning to the result, and prints it at once.
func (r *Result) warn(say func(format string, args ...any), text string) {
	r.Warnings = append(r.Warnings, text)
	say("WARNING: %s", text)
}

// unsteady names the rows whose rounds lie so far apart that their medians mean little.
func (r *Result) unsteady() (texts []string) {
	for i := range r.Rows {
		x := &r.Rows[i]
		if len(x.In) < 2 || x.InPPS <= 0 {
			continue
		}
		low, high := slices.Min(x.In), slices.Max(x.In)
		if (high-low)/x.InPPS > spread {
			texts = append(texts, fmt.Sprintf("%s, %s: rounds of %.1f to %.1f kpps; something else runs on this machine, and ratios say less: try again with more --rounds",
				x.Name, benchCase{x.Payload, x.Legs}, low/1e3, high/1e3))
		}
	}
	return texts
}

// machineLoad is the share of all CPUs' time that is taken now, while the benchmark
// does nothing.
func machineLoad(ctx context.Context) (float64, error) {
	before, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	select {
	case <-time.After(loadTime):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	after, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	return cpuShare(string(before), string(after)), nil
}

// cpuShare is the share of CPU time between two readings of /proc/stat that was neither
// idle nor spent waiting for disks; 0 if they lack it.
func cpuShare(before, after string) float64 {
	var sum, idle float64
	for i, n := range cpuTimes(after) {
		d := n
		if old := cpuTimes(before); i < len(old) {
			d -= old[i]
		}
		sum += d
		if i == 3 || i == 4 { // idle, iowait
			idle += d
		}
	}
	if sum <= 0 {
		return 0
	}
	return 1 - idle/sum
}

// cpuTimes are user, nice, system, idle, iowait, irq, softirq and steal of all CPUs
// together, in ticks. What guests take is in user already.
func cpuTimes(stat string) (ticks []float64) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return nil
	}
	for _, f := range fields[1:9] {
		var n float64
		if _, err := fmt.Sscan(f, &n); err != nil {
			return nil
		}
		ticks = append(ticks, n)
	}
	return ticks
}
