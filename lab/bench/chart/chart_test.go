// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// parsed is the part of an SVG file that tests check.
type parsed struct {
	texts []string       // the texts of <text>, in order
	count map[string]int // elements
}

// parse reads an SVG file, which has to be well-formed XML.
func parse(t *testing.T, svg []byte) parsed {
	t.Helper()
	p := parsed{count: make(map[string]int)}
	d := xml.NewDecoder(bytes.NewReader(svg))
	inText := false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not XML: %v\n%s", err, svg)
		}
		switch v := token.(type) {
		case xml.StartElement:
			p.count[v.Name.Local]++
			inText = v.Name.Local == "text"
		case xml.EndElement:
			inText = false
		case xml.CharData:
			if inText {
				p.texts = append(p.texts, strings.TrimSpace(string(v)))
			}
		}
	}
	if p.count["svg"] != 1 {
		t.Errorf("%d svg elements", p.count["svg"])
	}
	return p
}

func (p *parsed) has(t *testing.T, texts ...string) {
	t.Helper()
	for _, want := range texts {
		found := false
		for _, s := range p.texts {
			found = found || s == want
		}
		if !found {
			t.Errorf("no text %q among %q", want, p.texts)
		}
	}
}

func lines() *Lines {
	return &Lines{
		Axes: Axes{Title: "3 receivers", X: "loss", Y: "ratio", LogX: true, XTicks: []Tick{{1e-5, "0"}, {1e-3, "10⁻³"}}},
		Series: []Series{
			{Name: "repair on", Points: []Point{{1e-5, 1, 0.9, 1.1}, {1e-3, 0.99, 0, 0}}},
			{Name: "a < b & c", Dashed: true, Points: []Point{{1e-5, 1, 0, 0}, {1e-3, 0.4, 0.3, 0.5}}},
		},
	}
}

func bars() *Bars {
	return &Bars{
		Axes:   Axes{Title: "packets", X: "payload", Y: "kpps"},
		Groups: []string{"64 B", "1024 B", "4096 B"},
		Series: []BarSeries{
			{Name: "bridge", Values: []float64{1, 2, 3}, Low: []float64{0.5, 1.5, 2.5}, High: []float64{1, 2, 3}},
			{Name: "gleamd", Values: []float64{2, 3, 4}},
		},
	}
}

func TestPanels(t *testing.T) {
	var b bytes.Buffer
	if err := WriteSVG(&b, lines(), bars()); err != nil {
		t.Fatal(err)
	}
	p := parse(t, b.Bytes())
	p.has(t, "3 receivers", "loss", "ratio", "0", "10⁻³", "repair on", "a < b & c",
		"packets", "payload", "kpps", "64 B", "1024 B", "4096 B", "bridge", "gleamd")
	var again bytes.Buffer
	if err := WriteSVG(&again, lines(), bars()); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Errorf("the same charts give another picture: %v", err)
	}
}

// Each further series, point and error bar adds elements.
func TestEverythingIsDrawn(t *testing.T) {
	paths := func(c Chart) int {
		t.Helper()
		var b bytes.Buffer
		if err := WriteSVG(&b, c); err != nil {
			t.Fatal(err)
		}
		p := parse(t, b.Bytes())
		return p.count["path"]
	}
	l := lines()
	base := paths(l)
	l.Series[0].Points[1].High = 1.2
	if n := paths(l); n <= base {
		t.Errorf("%d paths with another error bar, %d without", n, base)
	}
	l = lines()
	l.Series = append(l.Series, Series{Name: "third", Points: []Point{{1e-4, 0.7, 0, 0}}})
	if n := paths(l); n <= base {
		t.Errorf("%d paths with another series, %d without", n, base)
	}
	b := bars()
	base = paths(b)
	b.Series[1].Low, b.Series[1].High = []float64{1, 2, 3}, []float64{3, 4, 5}
	if n := paths(b); n <= base {
		t.Errorf("%d paths with error bars, %d without", n, base)
	}
}

// Data that cannot be drawn is an error that names it, never a panic.
func TestErrors(t *testing.T) {
	for name, c := range map[string]struct {
		chart Chart
		want  string
	}{
		"no series":         {&Lines{}, "no series"},
		"no points":         {&Lines{Series: []Series{{Name: "empty"}}}, `"empty"`},
		"not a number":      {&Lines{Series: []Series{{Name: "odd", Points: []Point{{1, math.NaN(), 0, 0}}}}}, `"odd": point 0`},
		"infinite":          {&Lines{Series: []Series{{Name: "odd", Points: []Point{{math.Inf(1), 0, 0, 0}}}}}, `"odd": point 0`},
		"log of 0":          {&Lines{Axes: Axes{LogX: true}, Series: []Series{{Points: []Point{{0, 1, 0, 0}, {1, 1, 0, 0}}}}}, "x axis is logarithmic"},
		"range upside down": {&Lines{Axes: Axes{YMin: 2, YMax: 1}, Series: []Series{{Points: []Point{{0, 1, 0, 0}}}}}, "y axis from 2 to 1"},
		"no bars":           {&Bars{}, "no bars"},
		"logarithmic bars":  {&Bars{Axes: Axes{LogY: true}, Groups: []string{"a"}, Series: []BarSeries{{Values: []float64{1}}}}, "logarithmic"},
		"too few bars":      {&Bars{Groups: []string{"a", "b"}, Series: []BarSeries{{Name: "short", Values: []float64{1}}}}, `"short": 1 values`},
		"half error bars":   {&Bars{Groups: []string{"a"}, Series: []BarSeries{{Name: "half", Values: []float64{1}, Low: []float64{0}}}}, `"half"`},
		"odd bar":           {&Bars{Groups: []string{"a"}, Series: []BarSeries{{Name: "odd", Values: []float64{math.Inf(-1)}}}}, `"odd": bar 0`},
		"odd error bar":     {&Bars{Groups: []string{"a"}, Series: []BarSeries{{Name: "odd", Values: []float64{1}, Low: []float64{math.NaN()}, High: []float64{2}}}}, `"odd": error bar 0`},
	} {
		var b bytes.Buffer
		err := WriteSVG(&b, c.chart)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q in it", name, err, c.want)
		}
	}
	if err := WriteSVG(io.Discard); err == nil {
		t.Error("nothing to draw, and no error")
	}
}

// Points that all lie at one place have an axis all the same.
func TestOnePoint(t *testing.T) {
	for _, log := range []bool{false, true} {
		var b bytes.Buffer
		c := &Lines{Axes: Axes{LogX: log, LogY: log}, Series: []Series{{Name: "one", Points: []Point{{1, 1, 0, 0}}}}}
		if err := WriteSVG(&b, c); err != nil {
			t.Fatal(err)
		}
		p := parse(t, b.Bytes())
		p.has(t, "one")
	}
}

func TestSave(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a.svg")
	if err := Save(name, lines()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	parse(t, b)
	if err := Save(name, &Lines{}); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("%v, want the file's name", err)
	}
	if now, err := os.ReadFile(name); err != nil || !bytes.Equal(now, b) {
		t.Errorf("the chart before is gone: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v %v", left, err)
	}
	if err := Save(filepath.Join(dir, "no", "a.svg"), lines()); err == nil {
		t.Error("saved into a folder that is not there")
	}
}
