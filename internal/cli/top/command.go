// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/internal/cli/terminal"
)

// leastInterval bounds how often a switch is asked.
const leastInterval = 100 * time.Millisecond

// options are the flags.
type options struct {
	out      cli.Output
	interval time.Duration
	samples  int
	once     bool
	sort     string
	filter   string
}

// Command is `gleam top`.
func Command(env *cli.Env) *cobra.Command {
	o := &options{interval: 2 * time.Second}
	c := &cobra.Command{
		Use:   "top [GROUP]",
		Short: "Groups, members and ports as they change: rates, lag, who holds the ACK, repairs",
		Long: `Shows groups with their rates, lag, repairs, and the member whose acknowledgement
each waits for; enter shows a group's members, then one member, tab the ports. ? has
the keys. A * stands before what wants to be looked at. Columns that do not fit are
named. Colours are left out with NO_COLOR.

With -n or --once, or -o, it prints samples as text or in a format for programs, for
scripts, logs, and terminals without escape sequences (TERM=dumb): groups and ports,
or a group's members.`,
		Example: "  gleam top\n  gleam top 10.77.254.1\n  gleam top --once --sort lag\n  gleam top -n 10 -d 1s -o json",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.UsageErrorf("%s takes one argument at most, a group's IP address; %d are given", c.CommandPath(), len(args))
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			group := ""
			if len(args) == 1 {
				ip, err := netip.ParseAddr(args[0])
				if err != nil {
					return cli.UsageErrorf("group address %q is not an IP address", args[0])
				}
				group = ip.String()
			}
			return o.run(c, env, group)
		},
	}
	f := c.Flags()
	f.DurationVarP(&o.interval, "interval", "d", o.interval, "time between two samples, 100ms at least")
	f.IntVarP(&o.samples, "samples", "n", 0, "print that many samples, and end")
	f.BoolVar(&o.once, "once", false, "print one sample, and end: -n 1")
	f.StringVar(&o.sort, "sort", "", "column to sort by, such as lag or in/s; a - before it turns the order")
	f.StringVar(&o.filter, "filter", "", "show rows with this text in a cell")
	o.out.AddTo(c)
	return c
}

func (o *options) run(c *cobra.Command, env *cli.Env, group string) error {
	if o.interval < leastInterval {
		return cli.UsageErrorf("--interval %v: want %v or more", o.interval, leastInterval)
	}
	if o.samples < 0 || o.once && o.samples > 1 {
		return cli.UsageErrorf("-n %d: want a number of samples, or --once", o.samples)
	}
	if o.once {
		o.samples = 1
	}
	client := env.Client()
	defer client.Close()
	m := newModel(c.Context(), client, o.interval, group)
	m.filter = o.filter
	if err := o.sortBy(m); err != nil {
		return err
	}
	if o.samples == 0 && o.out.ForPeople() {
		f, whyNot := terminal.Drawable(env.Stdout)
		if f != nil {
			_, err := tea.NewProgram(m, tea.WithContext(c.Context()), tea.WithOutput(f)).Run()
			if errors.Is(err, tea.ErrInterrupted) || errors.Is(err, tea.ErrProgramKilled) && c.Context().Err() != nil {
				return c.Context().Err()
			}
			return err
		}
		return cli.UsageErrorf("%s: --once prints one sample as text, -n N prints N", whyNot)
	}
	return o.print(c.Context(), env.Stdout, m)
}

// sortBy finds the column of --sort in the views that the command begins with.
func (o *options) sortBy(m *model) error {
	name, turned := strings.CutPrefix(o.sort, "-")
	if m.turned = turned; name == "" {
		return nil
	}
	views := map[string][]column{viewGroups: groupColumns, viewPorts: portColumns}
	if m.view == viewMembers {
		views = map[string][]column{viewMembers: memberColumns}
	}
	found := false
	for view, columns := range views {
		for i, c := range columns {
			if strings.EqualFold(c.title, name) {
				m.sorts[view], found = i, true
			}
		}
	}
	if !found {
		return cli.UsageErrorf("--sort %q: no table has a column of that title", name)
	}
	return nil
}

// print prints samples. The first one is not printed, as it has no rates.
func (o *options) print(ctx context.Context, w io.Writer, m *model) error {
	var before *Sample
	for n := 0; n <= max(o.samples, 1); n++ {
		if n > 0 {
			select {
			case <-time.After(o.interval):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		s, err := take(ctx, m.source, before)
		if err != nil {
			return err
		}
		if before = s; n == 0 {
			if m.group != "" && groupOf(s, m.group) == nil {
				return fmt.Errorf("there is no group %s: gleam group list has them", m.group)
			}
			continue
		}
		m.sample = s
		if err := o.out.Print(w, s, m.text); err != nil {
			return err
		}
	}
	return nil
}

// text writes a sample for people.
func (m *model) text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n", m.sample.Time.Format(time.RFC3339), totals(m.sample))
	views := []string{viewGroups, viewPorts}
	if m.view == viewMembers {
		views = []string{viewMembers}
		if g := groupOf(m.sample, m.group); g != nil {
			fmt.Fprintln(&b, strings.Join(groupLines(g, m.sample.Time, 0), "\n"))
		}
	}
	was := m.view
	for _, v := range views {
		m.view = v
		t := m.table()
		title, rows, _ := t.lines(0)
		fmt.Fprintf(&b, "\n  %s\n", title)
		for i, line := range rows {
			mark := "  "
			if t.rows[i].bad {
				mark = "* "
			}
			fmt.Fprintln(&b, mark+line)
		}
	}
	m.view = was
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}
