// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package chart draws line and bar charts as SVG, over gonum.org/v1/plot. It adds the
// common look of gleam's benchmarks: a legend beside the data and never over it,
// colours and marks that can be told apart in any print, several panels in one picture,
// and errors where the library panics (a logarithm of 0).
package chart

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Chart is one panel: Lines or Bars.
type Chart interface {
	plot() (*plot.Plot, plot.Legend, error)
}

// Axes is the common part of all charts. The zero value of the optional fields takes
// the default in brackets.
type Axes struct {
	Title string
	X, Y  string // the axes' quantities, with their units

	LogX, LogY bool    // logarithmic; then all values are above 0. Bars have no LogX and no LogY
	XTicks     []Tick  // [where the library finds it fit]
	YMin, YMax float64 // [both 0: as the data needs; bars begin at 0]
}

// Tick is a mark at an axis with its label.
type Tick struct {
	At    float64
	Label string
}

// Size of a panel, legend included.
const (
	panelWidth  = 8 * vg.Inch
	panelHeight = 3.6 * vg.Inch
	margin      = vg.Inch / 9
	legendGap   = vg.Inch / 6

	// legendSpare times the width of the legend's text is left for it: the viewer of the
	// file may lack the font that the text was measured with.
	legendSpare = 1.35
)

// palette is Okabe and Ito's, without its yellow, which is pale on white: its
// colours differ for colour-blind people too.
var palette = []color.Color{
	color.RGBA{0, 114, 178, 255}, color.RGBA{213, 94, 0, 255}, color.RGBA{0, 158, 115, 255},
	color.RGBA{204, 121, 167, 255}, color.RGBA{86, 180, 233, 255}, color.RGBA{230, 159, 0, 255},
	color.RGBA{0, 0, 0, 255}, color.RGBA{127, 127, 127, 255},
}

func colour(i int) color.Color { return palette[i%len(palette)] }

// WriteSVG draws the panels below each other.
func WriteSVG(w io.Writer, panels ...Chart) error {
	if len(panels) == 0 {
		return errors.New("draw a chart: there is nothing to draw")
	}
	canvas := vgsvg.New(panelWidth, panelHeight*vg.Length(len(panels)))
	whole := draw.New(canvas)
	whole.SetColor(color.White)
	whole.Fill(whole.Rectangle.Path())
	for i, c := range panels {
		p, legend, err := c.plot()
		if err != nil {
			return fmt.Errorf("draw chart %d of %d: %w", i+1, len(panels), err)
		}
		top := whole.Max.Y - panelHeight*vg.Length(i)
		panel := draw.Crop(whole, margin, -margin, top-panelHeight+margin-whole.Min.Y, top-margin-whole.Max.Y)
		legend.Top, legend.Left = true, true
		beside := legendSpare*legend.Rectangle(panel).Size().X + legendGap
		p.Draw(draw.Crop(panel, 0, -beside, 0, 0))
		legend.Draw(draw.Crop(panel, panel.Size().X-beside+legendGap, 0, 0, -2*legendGap))
	}
	_, err := canvas.WriteTo(w)
	return err
}

// Save draws the panels into a file, which appears complete or not at all.
func Save(name string, panels ...Chart) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".chart-*.svg")
	if err != nil {
		return fmt.Errorf("write a chart: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
			err = fmt.Errorf("write chart %s: %w", name, err)
		}
	}()
	err = WriteSVG(f, panels...)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// new makes a plot with axes, titles and a grid, but no data yet.
func (a *Axes) new() *plot.Plot {
	p := plot.New()
	p.Title.Text = a.Title
	p.Title.Padding = vg.Points(6)
	p.X.Label.Text, p.Y.Label.Text = a.X, a.Y
	p.X.Tick.Marker, p.Y.Tick.Marker = shortTicks{}, shortTicks{}
	if a.LogX {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	if a.LogY {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	if a.XTicks != nil {
		ticks := make(plot.ConstantTicks, len(a.XTicks))
		for i, t := range a.XTicks {
			ticks[i] = plot.Tick{Value: t.At, Label: t.Label}
		}
		p.X.Tick.Marker = ticks
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color = nil
	grid.Horizontal.Color = color.Gray{225}
	p.Add(grid)
	return p
}

// fit sets the axes' ranges, after all data is in the plot.
func (a *Axes) fit(p *plot.Plot) error {
	if a.YMin != 0 || a.YMax != 0 {
		p.Y.Min, p.Y.Max = a.YMin, a.YMax
	}
	for _, t := range a.XTicks {
		p.X.Min, p.X.Max = min(p.X.Min, t.At), max(p.X.Max, t.At)
	}
	for _, x := range []struct {
		axis *plot.Axis
		name string
		log  bool
	}{{&p.X, "x", a.LogX}, {&p.Y, "y", a.LogY}} {
		switch {
		case x.axis.Min > x.axis.Max:
			return fmt.Errorf("%s axis from %g to %g", x.name, x.axis.Min, x.axis.Max)
		case x.log && x.axis.Min <= 0:
			return fmt.Errorf("%s axis is logarithmic, but has the value %g", x.name, x.axis.Min)
		case x.axis.Min == x.axis.Max && x.log: // the library's own margin would reach below 0
			x.axis.Min, x.axis.Max = x.axis.Min/2, x.axis.Max*2
		}
	}
	return nil
}

func finite(what string, vs ...float64) error {
	for _, v := range vs {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%s: %g cannot be drawn", what, v)
		}
	}
	return nil
}

// shortTicks are the library's, without zeros behind the point.
type shortTicks struct{}

func (shortTicks) Ticks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i := range ticks {
		if t := &ticks[i]; t.Label != "" {
			t.Label = strconv.FormatFloat(t.Value, 'g', 6, 64)
		}
	}
	return ticks
}
