// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/api"
)

// pollWait is the time for which one request for events stays open under -f.
const pollWait = 30 * time.Second

func eventsCommand(env *Env) *cobra.Command {
	var out output
	var follow bool
	var group, since string
	var filter api.EventFilter
	c := &cobra.Command{
		Use:   "events",
		Short: "What has happened to groups and members: who joined, left, was evicted and why",
		Long: `Prints the events that gleamd still has, oldest first, and with --follow every
new one as it comes; --group, --kind and --since select some of them. In JSON, --follow
prints one object a line, in YAML one document each.`,
		Example: `  gleam events --group 10.77.254.1 --since 10m
  gleam events --kind evicted,failed,stalled --since 2026-05-06T07:00:00Z
  gleam events --follow --kind port,neighbour`,
		Args: noArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := parseFilter(&filter, group, since, time.Now()); err != nil {
				return err
			}
			es, err := env.client().SelectEvents(c.Context(), 0, 0, &filter)
			if err != nil {
				return err
			}
			if follow {
				return env.follow(c.Context(), es, &filter, &out)
			}
			return out.print(env.Stdout, es.Events, func(w io.Writer) {
				fmt.Fprintln(w, "TIME\tEVENT\tGROUP\tMEMBER\tPORT\tPSN\tREASON")
				for i := range es.Events {
					e := &es.Events[i]
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", eventTime(e), e.Kind, addrText(e.Group), addrText(e.Member), text(e.Port), optional24(e.PSN), text(eventReason(e)))
				}
			})
		},
	}
	out.addTo(c)
	f := c.Flags()
	f.BoolVarP(&follow, "follow", "f", false, "wait for new events, until interrupted")
	f.StringVarP(&group, "group", "g", "", "events of this group alone, an `address`")
	f.StringSliceVarP(&filter.Kinds, "kind", "k", nil, "events of these `kinds` alone: "+strings.Join(api.EventKinds, ", "))
	f.StringVar(&since, "since", "", "no events from before: a time to go back, such as 10m, or a `time` such as 2026-05-06T07:08:09Z, or 07:08, today here")
	c.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(api.EventKinds, cobra.ShellCompDirectiveNoFileComp))
	c.RegisterFlagCompletionFunc("group", env.completeGroups)
	return c
}

// parseFilter reads the flags that select events.
func parseFilter(f *api.EventFilter, group, since string, now time.Time) (err error) {
	if group != "" {
		if f.Group, err = parseAddr("group address", group); err != nil {
			return err
		}
		f.Group = f.Group.Unmap()
	}
	if since != "" {
		if f.From, err = parseSince(since, now); err != nil {
			return err
		}
	}
	if err := f.Validate(); err != nil {
		return UsageErrorf("--kind: %s", err)
	}
	return nil
}

// parseSince reads how far to go back from now, or a time; without an offset it is local, without a
// date of today.
func parseSince(s string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateTime, "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return t, nil
		}
	}
	today := now.Format(time.DateOnly) + " "
	for _, layout := range []string{time.DateTime, "2006-01-02 15:04"} {
		if t, err := time.ParseInLocation(layout, today+s, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, UsageErrorf("--since %q: want a time to go back, such as 10m, or a time such as 2026-05-06T07:08:09Z, or 07:08, today here", s)
}

// eventReason is an event's reason, with the author of the request.
func eventReason(e *api.Event) string {
	switch {
	case e.By == "":
		return e.Reason
	case e.Reason == "":
		return "by " + e.By
	}
	return e.Reason + " (by " + e.By + ")"
}

// follow prints events as they come. Columns are wide enough for IPv4; a line
// does not wait for the ones after it.
func (e *Env) follow(ctx context.Context, es *api.Events, filter *api.EventFilter, out *output) error {
	client := e.client()
	defer client.Close()
	for {
		if es.Lost > 0 {
			fmt.Fprintf(e.Stderr, "gleam: %d events are no longer stored\n", es.Lost)
		}
		for i := range es.Events {
			v := &es.Events[i]
			line := fmt.Sprintf("%s  %-10s  %-15s  %-15s  %-6s  %-8s  %s", eventTime(v), v.Kind, addrText(v.Group), addrText(v.Member), text(v.Port), optional24(v.PSN), text(eventReason(v)))
			if err := out.printLine(e.Stdout, v, line); err != nil {
				return err
			}
		}
		next, err := client.SelectEvents(ctx, es.Last, pollWait, filter)
		if ctx.Err() != nil {
			return nil // interrupted: that is how it ends
		}
		if err != nil {
			return err
		}
		es = next
	}
}

// localTime shows a moment in local time with its offset.
func localTime(t time.Time) string { return t.Local().Format("2006-01-02T15:04:05.000-07:00") }

func eventTime(e *api.Event) string { return localTime(e.Time) }

func optional24(n *api.PSN) string {
	if n == nil {
		return "-"
	}
	return number24(*n)
}
