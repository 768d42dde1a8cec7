// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package loss

import (
	"fmt"
	"math"
	"slices"

	"github.com/gleam-rdma/gleam/lab/bench/chart"
)

// charts draw goodput against loss, a panel for each number of receivers. There is no 0
// on a logarithmic axis: no loss is drawn a decade below the least loss, with the label
// 0.
func (r *Result) charts() (panels []chart.Chart) {
	var losses []float64
	for _, x := range r.Rows {
		if x.Loss > 0 {
			losses = append(losses, x.Loss)
		}
	}
	none := 1e-5
	if len(losses) > 0 {
		none = slices.Min(losses) / 10
	}
	ticks := []chart.Tick{{At: none, Label: "0"}}
	slices.Sort(losses)
	for _, l := range slices.Compact(losses) {
		ticks = append(ticks, chart.Tick{At: l, Label: fmt.Sprintf("%g %%", 100*l)})
	}
	for _, link := range r.Links {
		l := &chart.Lines{Axes: chart.Axes{
			Title: fmt.Sprintf("%d receivers, link of %.0f Mbit/s", link.Receivers, link.Mbits),
			X:     "loss on the way to each receiver", Y: "goodput, % of no loss",
			LogX: true, XTicks: ticks, YMin: 0, YMax: 110,
		}}
		for _, x := range r.Rows {
			if x.Receivers == link.Receivers {
				x.draw(l, none)
			}
		}
		if len(l.Series) > 0 {
			panels = append(panels, l)
		}
	}
	return panels
}

// draw adds a row to its series. The row without loss, which comes first, begins
// every series of its kind.
func (x *Row) draw(l *chart.Lines, none float64) {
	c := lossCase{mode: x.Mode, repair: x.Repair}
	style := 1
	switch {
	case x.Mode == Unicast:
		style = 3
	case !x.Repair:
		style = 2
	}
	p := chart.Point{X: x.Loss, Y: 100 * x.GoodputRatio, Low: 100 * x.GoodputRatioMin, High: math.Min(110, 100*x.GoodputRatioMax)}
	if x.Loss == 0 {
		p.X = none
		l.Series = append(l.Series, chart.Series{Name: c.kind(), Style: style, Points: []chart.Point{p}})
		return
	}
	first := slices.IndexFunc(l.Series, func(s chart.Series) bool { return s.Style == style && !s.Dashed })
	name := c.kind()
	if x.Burst > 0 {
		name = fmt.Sprintf("%s, bursts of %g", name, x.Burst)
	}
	i := slices.IndexFunc(l.Series, func(s chart.Series) bool { return s.Name == name })
	if i < 0 {
		i = len(l.Series)
		l.Series = append(l.Series, chart.Series{Name: name, Style: style, Dashed: x.Burst > 0, Points: slices.Clone(l.Series[first].Points[:1])})
	}
	l.Series[i].Points = append(l.Series[i].Points, p)
}
