// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/api"
)

func statsCommand(env *Env) *cobra.Command {
	var out output
	c := &cobra.Command{
		Use:   "stats",
		Short: "The switch's counters, with packets that were not served by reason",
		Long: `Prints the switch's counters. Packets that were not served are counted by
reason, in two sections: those that the protocol has no further use for, or that
come again by themselves, as on any healthy switch; and those that were lost, or
are somebody's mistake. docs/COUNTERS.md says what each reason means.`,
		Args: noArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := env.client().Stats(c.Context())
			if err != nil {
				return err
			}
			return out.print(env.Stdout, s, func(w io.Writer) { statsTable(w, s) })
		},
	}
	out.addTo(c)
	return c
}

func statsTable(w io.Writer, s *api.Stats) {
	row := func(key string, value any) { fmt.Fprintf(w, "%s\t%v\n", key, value) }
	row("uptime", seconds(s.Uptime).Round(time.Second))
	for _, t := range totals {
		if t.value == nil {
			continue
		}
		if n := t.value(s); n > 0 || !strings.HasPrefix(t.line, " ") { // a part of the line before
			row(t.line, n)
		}
	}
	row("moves confirmed", s.Moves.Confirmed)
	row("moves not confirmed", s.Moves.Unconfirmed)
	row("UMEM frames free", fmt.Sprintf("%d of %d", s.FramesFree, s.Frames))
	for i := range s.Workers {
		x := &s.Workers[i]
		row(fmt.Sprintf("worker %d", x.Worker), fmt.Sprintf("%d groups; busy %s, asleep %s of its time", x.Groups, partOf(x.Busy, x.Seconds), partOf(x.Asleep, x.Seconds)))
	}
	section := func(title string, counts map[string]uint64) {
		var total uint64
		for _, n := range counts {
			total += n
		}
		row(title, total)
		for _, reason := range slices.Sorted(maps.Keys(counts)) {
			row("  "+reason, counts[reason])
		}
	}
	section("registrations", s.Registrations)
	row("control loop's iterations", fmt.Sprintf("%d, the longest %v", s.Control.Iterations, seconds(s.Control.LongestIteration).Round(time.Microsecond)))
	row("lookups in the kernel", s.Control.Lookups)
	row("lost netlink messages", fmt.Sprintf("%d times", s.Control.Resyncs))
	if dead := s.Control.NotWatched; len(dead) > 0 {
		row("NOT WATCHED", strings.Join(dead, ", ")+": everything is looked up each second instead")
	}
	if x := s.Control.State; x != nil {
		row("state file", fmt.Sprintf("%d writes, %d failed", x.Writes, x.Errors))
		if x.Failing != "" {
			row("NOT STORED", x.Failing)
		}
	}
	if r := s.Remote; r != nil {
		row("API over TCP", fmt.Sprintf("%d connections, %d open", r.Accepted, r.Open))
		section("  refused", r.Refused)
	}
	section(normalTitle, s.Normal)
	section(dropsTitle, s.Drops)
}

// partOf returns a part of some time, in per cent.
func partOf(part, whole float64) string {
	if whole <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*part/whole)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Titles of api.Stats.Normal and Drops.
const (
	normalTitle = "not served, as is normal"
	dropsTitle  = "lost or refused"
)
