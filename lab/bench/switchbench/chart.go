// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"fmt"
	"slices"

	"github.com/gleam-rdma/gleam/lab/bench/chart"
)

// saveChart draws packets in a second, with the range of all rounds: a panel for each number of receivers, in
// it a group of bars for each payload. Rows with several workers have panels of their own, beside that with one:
// more bars in one panel could not be told apart by colour.
func (r *Result) saveChart(file string) error {
	var names, workers []string
	for i := range r.Rows {
		if n := r.Rows[i].Name; n == gleamdRow2 || n == gleamdRow4 {
			workers = appendNew(workers, n)
		} else {
			names = appendNew(names, n)
		}
	}
	panels := r.panels(names, "")
	if len(workers) > 0 {
		if slices.Contains(names, gleamdRow) {
			workers = append([]string{gleamdRow}, workers...)
		}
		panels = append(panels, r.panels(workers, ", several workers")...)
	}
	return chart.Save(file, panels...)
}

// panels draws the rows of these names, if any.
func (r *Result) panels(names []string, title string) (panels []chart.Chart) {
	if len(names) == 0 {
		return nil
	}
	var legs, payloads []int
	for i := range r.Rows {
		x := &r.Rows[i]
		legs, payloads = appendNew(legs, x.Legs), appendNew(payloads, x.Payload)
	}
	for _, l := range legs {
		b := &chart.Bars{Axes: chart.Axes{Title: fmt.Sprintf("1 to %d%s", l, title), X: "payload (bytes)", Y: "thousand packets/s in"}}
		for _, p := range payloads {
			b.Groups = append(b.Groups, fmt.Sprint(p))
		}
		for _, n := range names {
			s := chart.BarSeries{Name: n}
			for _, p := range payloads {
				x := Row{In: []float64{0}} // no bar for a case without a measurement
				if i := slices.IndexFunc(r.Rows, func(x Row) bool { return x.Name == n && x.Payload == p && x.Legs == l && x.Reason == "" }); i >= 0 {
					x = r.Rows[i]
				}
				s.Values = append(s.Values, x.InPPS/1e3)
				s.Low, s.High = append(s.Low, slices.Min(x.In)/1e3), append(s.High, slices.Max(x.In)/1e3)
			}
			b.Series = append(b.Series, s)
		}
		panels = append(panels, b)
	}
	return panels
}

func appendNew[T comparable](list []T, v T) []T {
	if slices.Contains(list, v) {
		return list
	}
	return append(list, v)
}
