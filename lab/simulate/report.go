// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/lab/bench/chart"
)

func reportCommand(env *cli.Env) *cobra.Command {
	var x, series, svg string
	var logX bool
	c := &cobra.Command{
		Use:   "report FOLDER|FILE...",
		Short: "Tabulate the results of a sweep, and draw them",
		Long: `report shows the job completion time by one variable, for each value of another one, as the mean
over all others (seeds). Beside it stands the analytic value, if there is one.`,
		Example: `  gleam sim report results --x n --series algorithm --svg jct.svg`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := load(args)
			if err != nil {
				return err
			}
			names := variables(all)
			for flag, v := range map[string]string{"--x": x, "--series": series} {
				if v != "" && !slices.Contains(names, v) {
					return cli.UsageErrorf("%s %q: the results have the variables %s", flag, v, strings.Join(names, ", "))
				}
			}
			if x == "" {
				if len(names) == 0 {
					return cli.UsageErrorf("the results have no variables to tabulate by")
				}
				x = names[0]
			}
			rows := summarise(all, x, series)
			if err := writeRows(env.Stdout, rows, x, series); err != nil || svg == "" {
				return err
			}
			return chart.Save(svg, drawing(rows, x, logX))
		},
	}
	f := c.Flags()
	f.StringVar(&x, "x", "", "variable along the x axis [the first]")
	f.StringVar(&series, "series", "", "variable with a line for each value")
	f.StringVar(&svg, "svg", "", "draw into this file")
	f.BoolVar(&logX, "log-x", false, "draw the x axis logarithmic")
	_ = c.MarkFlagFilename("svg", "svg")
	return c
}

// row is the mean of all results with one value of x in one series.
type row struct {
	series, x      string
	points         int
	jct, analytic  float64
	shortest, long float64
}

// summarise groups results.
func summarise(all []*Result, x, series string) []*row {
	var rows []*row
	for _, r := range all {
		at := slices.IndexFunc(rows, func(o *row) bool { return o.series == r.Vars[series] && o.x == r.Vars[x] })
		if at < 0 {
			at = len(rows)
			rows = append(rows, &row{series: r.Vars[series], x: r.Vars[x], shortest: r.JCT})
		}
		o := rows[at]
		o.jct = (o.jct*float64(o.points) + r.JCT) / float64(o.points+1)
		o.points++
		o.analytic = r.Analytic
		o.shortest, o.long = min(o.shortest, r.JCT), max(o.long, r.JCT)
	}
	slices.SortStableFunc(rows, func(a, b *row) int {
		return cmp.Or(strings.Compare(a.series, b.series), compareValues(a.x, b.x))
	})
	return rows
}

// compareValues orders numbers by value, and other words after them.
func compareValues(a, b string) int {
	x, errA := strconv.ParseFloat(a, 64)
	y, errB := strconv.ParseFloat(b, 64)
	switch {
	case errA == nil && errB == nil:
		return cmp.Compare(x, y)
	case errA == nil:
		return -1
	case errB == nil:
		return 1
	}
	return strings.Compare(a, b)
}

func writeRows(w io.Writer, rows []*row, x, series string) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tw, "%s\t%s\tpoints\tJCT µs\tmin\tmax\tanalytic\tratio\t\n", series, x)
	for _, r := range rows {
		analytic, ratio := "", ""
		if r.analytic > 0 {
			analytic, ratio = fmt.Sprintf("%.1f", r.analytic), fmt.Sprintf("%.3f", r.jct/r.analytic)
		}
		fmt.Fprintf(tw, "%s\t%s\t%d\t%.1f\t%.1f\t%.1f\t%s\t%s\t\n", r.series, r.x, r.points, r.jct, r.shortest, r.long, analytic, ratio)
	}
	return tw.Flush()
}

// drawing makes a chart of rows: lines over numbers, bars over words.
func drawing(rows []*row, x string, logX bool) chart.Chart {
	axes := chart.Axes{Title: "Job completion time", X: x, Y: "ms", LogX: logX}
	var names, values []string
	numbers := true
	for _, r := range rows {
		if !slices.Contains(names, r.series) {
			names = append(names, r.series)
		}
		if !slices.Contains(values, r.x) {
			values = append(values, r.x)
		}
		_, err := strconv.ParseFloat(r.x, 64)
		numbers = numbers && err == nil
	}
	at := func(series, x string) *row {
		i := slices.IndexFunc(rows, func(r *row) bool { return r.series == series && r.x == x })
		if i < 0 {
			return &row{}
		}
		return rows[i]
	}
	if !numbers {
		b := &chart.Bars{Axes: axes, Groups: values}
		b.LogX = false
		for _, s := range names {
			bar := chart.BarSeries{Name: s}
			for _, v := range values {
				bar.Values = append(bar.Values, at(s, v).jct/1e3)
			}
			b.Series = append(b.Series, bar)
		}
		return b
	}
	l := &chart.Lines{Axes: axes}
	for i, name := range names {
		line, formula := chart.Series{Name: name, Style: i + 1}, chart.Series{Name: strings.TrimSpace(name + " analytic"), Style: i + 1, Dashed: true}
		for _, r := range rows {
			if r.series != name {
				continue
			}
			v, _ := strconv.ParseFloat(r.x, 64)
			line.Points = append(line.Points, chart.Point{X: v, Y: r.jct / 1e3, Low: r.shortest / 1e3, High: r.long / 1e3})
			if r.analytic > 0 {
				formula.Points = append(formula.Points, chart.Point{X: v, Y: r.analytic / 1e3})
			}
		}
		if l.Series = append(l.Series, line); len(formula.Points) > 0 {
			l.Series = append(l.Series, formula)
		}
	}
	return l
}
