// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/api"
)

// pollWait is the time for which one request for events stays open under -f.
const pollWait = 30 * time.Second

func eventsCommand(env *Env) *cobra.Command {
	var out output
	var follow bool
	c := &cobra.Command{
		Use:   "events",
		Short: "What has happened to groups and members: who joined, left, was evicted and why",
		Long: `Prints the events that gleamd still has, oldest first, and with --follow every
new one as it comes. In JSON, --follow prints one object a line, in YAML
one document each.`,
		Args: noArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			es, err := env.client().Events(c.Context(), 0, 0)
			if err != nil {
				return err
			}
			if follow {
				return env.follow(c.Context(), es, &out)
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
	c.Flags().BoolVarP(&follow, "follow", "f", false, "wait for new events, until interrupted")
	return c
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
func (e *Env) follow(ctx context.Context, es *api.Events, out *output) error {
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
		next, err := client.Events(ctx, es.Last, pollWait)
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
