// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Restarts measures for how long the restart of a switch stops a group's data: it runs the demo of
// a leaf-spine again and again, with each of several builds in turn, and prints the distribution.
//
//	go run ./test/restarts -runs 20 -switches l2,s1,l2:kill -builds bin,../before/bin
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

// topology is the default of the flag of that name.
const topology = "--topology leaf-spine --leaves 4 --spines 2 --members 12"

func main() {
	runs := flag.Int("runs", 20, "restarts of each `N`")
	switches := flag.String("switches", "l2,s1", "what restarts, as the demo's --restart-switch has it, with commas between")
	builds := flag.String("builds", "bin", "`folders` with gleam and gleamd, with commas between")
	arguments := flag.String("demo", topology, "further `arguments` of the demo")
	flag.Parse()
	if err := measure(*runs, strings.Split(*switches, ","), strings.Split(*builds, ","), strings.Fields(*arguments)); err != nil {
		fmt.Fprintln(os.Stderr, "restarts:", err)
		os.Exit(1)
	}
}

// row is what the restarts of one switch, with one build, have cost, in milliseconds.
type row struct {
	build, what  string
	resume, took []float64
}

func measure(runs int, switches, builds, arguments []string) error {
	if runs < 1 {
		return fmt.Errorf("-runs %d: must be at least 1", runs)
	}
	var rows []*row
	for _, s := range switches {
		for _, b := range builds {
			rows = append(rows, &row{build: b, what: s})
		}
	}
	for i := range runs {
		for _, r := range rows {
			fmt.Fprintf(os.Stderr, "\r%d of %d: %s of %s ", i+1, runs, r.what, r.build)
			if err := r.restart(arguments); err != nil {
				return fmt.Errorf("%s, restart of %s: %w", r.build, r.what, err)
			}
		}
	}
	fmt.Fprintln(os.Stderr)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RESTART\tBUILD\tTO RESUME, MS: LEAST\tMEDIAN\t90 %\tMOST\tTHE RESTART ITSELF, MS: MEDIAN")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\n", r.what, r.build, part(r.resume, 0), part(r.resume, 0.5), part(r.resume, 0.9), part(r.resume, 1), part(r.took, 0.5))
	}
	return w.Flush()
}

// restart runs the demo once.
func (r *row) restart(arguments []string) error {
	c := exec.Command(filepath.Join(r.build, "gleam"), append([]string{"demo", "--output", "json", "--restart-switch", r.what}, arguments...)...)
	out, err := c.Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return fmt.Errorf("%w\n%s", err, failed.Stderr)
	} else if err != nil {
		return err
	}
	var result struct {
		Disturbances []struct {
			Took   float64 `json:"took_ms"`
			Resume float64 `json:"resume_ms"`
		} `json:"disturbances"`
	}
	if err := json.Unmarshal(out, &result); err != nil {
		return fmt.Errorf("read what the demo says: %w", err)
	}
	if len(result.Disturbances) != 1 {
		return fmt.Errorf("the demo tells of %d changes", len(result.Disturbances))
	}
	r.resume, r.took = append(r.resume, result.Disturbances[0].Resume), append(r.took, result.Disturbances[0].Took)
	return nil
}

// part returns the value that a part of xs is not above.
func part(xs []float64, p float64) float64 {
	xs = slices.Sorted(slices.Values(xs))
	return xs[int(p*float64(len(xs)-1)+0.5)]
}
