// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package replicate

import (
	"fmt"
	"slices"

	"github.com/gleam-rdma/gleam/bench/chart"
)

// saveChart draws packets in a second, with the range of all rounds: a panel for each number of receivers, in
// it a group of bars for each payload.
func (r *Result) saveChart(file string) error {
	var panels []chart.Chart
	var legs, payloads []int
	var names []string
	for i := range r.Rows {
		x := &r.Rows[i]
		legs, payloads, names = appendNew(legs, x.Legs), appendNew(payloads, x.Payload), appendNew(names, x.Name)
	}
	for _, l := range legs {
		b := &chart.Bars{Axes: chart.Axes{Title: fmt.Sprintf("1 sender to %d receivers", l), X: "payload (bytes)", Y: "packets in per second (thousands)"}}
		for _, p := range payloads {
			b.Groups = append(b.Groups, fmt.Sprint(p))
		}
		for _, n := range names {
			s := chart.BarSeries{Name: n}
			for _, p := range payloads {
				var x Row // no bar where nothing was measured
				if i := slices.IndexFunc(r.Rows, func(x Row) bool { return x.Name == n && x.Payload == p && x.Legs == l }); i >= 0 {
					x = r.Rows[i]
				}
				s.Values = append(s.Values, x.InPPS/1e3)
				s.Low, s.High = append(s.Low, x.InMin/1e3), append(s.High, x.InMax/1e3)
			}
			b.Series = append(b.Series, s)
		}
		panels = append(panels, b)
	}
	return chart.Save(file, panels...)
}

func appendNew[T comparable](list []T, v T) []T {
	if slices.Contains(list, v) {
		return list
	}
	return append(list, v)
}
