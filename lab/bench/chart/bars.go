// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"errors"
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// Bars is a chart of bars in groups: one group for each name along the x axis,
// in it one bar for each series.
type Bars struct {
	Axes
	Groups []string
	Series []BarSeries
}

// BarSeries are the bars of one colour.
type BarSeries struct {
	Name   string
	Values []float64 // one for each group
	// Low and High are the ends of error bars; empty, or as long as Values.
	Low, High []float64
}

// groupWidth is the share of a group's width that its bars fill.
const groupWidth = 0.8

func (b *Bars) plot() (*plot.Plot, plot.Legend, error) {
	legend := plot.NewLegend()
	legend.Padding = vg.Points(2)
	switch {
	case len(b.Groups) == 0 || len(b.Series) == 0:
		return nil, legend, errors.New("there are no bars")
	case b.LogX || b.LogY:
		return nil, legend, errors.New("bars cannot be logarithmic: they begin at 0")
	}
	p := b.new()
	p.NominalX(b.Groups...)
	p.X.Min, p.X.Max = -0.5, float64(len(b.Groups))-0.5
	width := groupWidth / float64(len(b.Series))
	for i, s := range b.Series {
		left := -groupWidth/2 + width*float64(i)
		if err := s.add(p, &legend, i, len(b.Groups), left, width); err != nil {
			return nil, legend, fmt.Errorf("series %q: %w", s.Name, err)
		}
	}
	p.Y.Min = min(p.Y.Min, 0)
	if err := b.fit(p); err != nil {
		return nil, legend, err
	}
	return p, legend, nil
}

// add draws the bars of series i, which begin left of their groups' middles and
// are so wide, in units of the x axis.
func (s *BarSeries) add(p *plot.Plot, legend *plot.Legend, i, groups int, left, width float64) error {
	errorBars := len(s.Low)+len(s.High) > 0
	if len(s.Values) != groups || errorBars && (len(s.Low) != groups || len(s.High) != groups) {
		return fmt.Errorf("%d values, error bars from %d to %d: want %d of each", len(s.Values), len(s.Low), len(s.High), groups)
	}
	var ends struct {
		plotter.XYs
		plotter.YErrors
	}
	for g, v := range s.Values {
		if err := finite(fmt.Sprintf("bar %d", g), v); err != nil {
			return err
		}
		x := float64(g) + left
		// A polygon, not plotter.BarChart, whose width is in points: that fits one number
		// of groups only.
		bar, err := plotter.NewPolygon(plotter.XYs{{X: x, Y: 0}, {X: x, Y: v}, {X: x + width, Y: v}, {X: x + width, Y: 0}})
		if err != nil {
			return err
		}
		bar.Color, bar.Width = colour(i), 0
		p.Add(bar)
		if g == 0 {
			legend.Add(s.Name, bar)
		}
		if errorBars {
			if err := finite(fmt.Sprintf("error bar %d", g), s.Low[g], s.High[g]); err != nil {
				return err
			}
			ends.XYs = append(ends.XYs, plotter.XY{X: x + width/2, Y: v})
			ends.YErrors = append(ends.YErrors, struct{ Low, High float64 }{v - s.Low[g], s.High[g] - v})
		}
	}
	if !errorBars {
		return nil
	}
	e, err := plotter.NewYErrorBars(ends)
	if err != nil {
		return err
	}
	p.Add(e)
	return nil
}
