// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"errors"
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Lines is a chart of lines with a mark at each point.
type Lines struct {
	Axes
	Series []Series
}

// Series is one line.
type Series struct {
	Name   string
	Points []Point // the points in the order of X
	Dashed bool
	// Style chooses colour and mark: series with the same Style differ by Dashed only.
	// 0: the index in Lines.Series.
	Style int
}

// Point is one mark, with an error bar from Low to High unless these are equal.
type Point struct{ X, Y, Low, High float64 }

func (l *Lines) plot() (*plot.Plot, plot.Legend, error) {
	p, legend := l.new(), plot.NewLegend()
	legend.Padding = vg.Points(2)
	if len(l.Series) == 0 {
		return nil, legend, errors.New("there is no series")
	}
	for i, s := range l.Series {
		style := s.Style - 1
		if s.Style == 0 {
			style = i
		}
		if err := s.add(p, &legend, style); err != nil {
			return nil, legend, fmt.Errorf("series %q: %w", s.Name, err)
		}
	}
	if err := l.fit(p); err != nil {
		return nil, legend, err
	}
	return p, legend, nil
}

func (s *Series) add(p *plot.Plot, legend *plot.Legend, style int) error {
	if len(s.Points) == 0 {
		return errors.New("it has no points")
	}
	var bars struct {
		plotter.XYs
		plotter.YErrors
	}
	xys := make(plotter.XYs, len(s.Points))
	for i, v := range s.Points {
		if err := finite(fmt.Sprintf("point %d", i), v.X, v.Y, v.Low, v.High); err != nil {
			return err
		}
		xys[i] = plotter.XY{X: v.X, Y: v.Y}
		if v.Low != v.High {
			bars.XYs = append(bars.XYs, xys[i])
			bars.YErrors = append(bars.YErrors, struct{ Low, High float64 }{v.Y - v.Low, v.High - v.Y})
		}
	}
	line, marks, err := plotter.NewLinePoints(xys)
	if err != nil {
		return err
	}
	line.Color, line.Width = colour(style), vg.Points(1.4)
	if s.Dashed {
		line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
	}
	marks.GlyphStyle = draw.GlyphStyle{Color: colour(style), Radius: vg.Points(3), Shape: plotutil.Shape(style)}
	p.Add(line, marks)
	if len(bars.XYs) > 0 {
		e, err := plotter.NewYErrorBars(bars)
		if err != nil {
			return err
		}
		e.Color, e.Width = colour(style), vg.Points(0.8)
		p.Add(e)
	}
	legend.Add(s.Name, line, marks)
	return nil
}
