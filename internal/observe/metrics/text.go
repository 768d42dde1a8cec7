// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gleam-rdma/gleam/api"
)

// contentType is that of Prometheus' text format.
const contentType = "text/plain; version=0.0.4; charset=utf-8"

// out is where the metrics of one scrape go: the series of each.
type out map[*Metric][]series

// series is one series of a metric.
type series struct {
	labels []string // values, in the order of the labels' names
	lines  string   // its lines in the text format
}

// put adds a value of m, whose labels are in the catalog's order.
func (o out) put(m *Metric, value float64, labels ...string) {
	x := series{labels: make([]string, len(labels))}
	line := []byte(m.Name)
	for i, k := range m.byName {
		x.labels[i] = strings.ToValidUTF8(labels[k], "\uFFFD")
		line = append(line, "{,"[min(i, 1)])
		line = append(append(line, m.Labels[k]...), `="`...)
		line = append(append(line, escapeLabel.Replace(x.labels[i])...), '"')
	}
	if len(labels) > 0 {
		line = append(line, '}')
	}
	x.lines = string(appendValue(line, value))
	o[m] = append(o[m], x)
}

// histogram adds a histogram, which has no labels.
func (o out) histogram(m *Metric, h *api.Histogram) {
	var lines []byte
	below := uint64(0)
	for i, bound := range h.Bounds {
		below += h.Counts[i]
		lines = append(append(lines, m.Name...), `_bucket{le="`...)
		lines = appendValue(append(appendFloat(lines, bound), `"}`...), float64(below))
	}
	lines = appendValue(append(append(lines, m.Name...), `_bucket{le="+Inf"}`...), float64(h.Count()))
	lines = appendValue(append(append(lines, m.Name...), "_sum"...), h.Sum)
	lines = appendValue(append(append(lines, m.Name...), "_count"...), float64(h.Count()))
	o[m] = append(o[m], series{lines: string(lines)})
}

// text returns all series in Prometheus' text format, by name and labels.
func (o out) text() []byte {
	var b []byte
	for _, m := range slices.SortedFunc(slices.Values(All()), func(x, y *Metric) int { return cmp.Compare(x.Name, y.Name) }) {
		list := o[m]
		if len(list) == 0 {
			continue
		}
		slices.SortStableFunc(list, func(x, y series) int { return slices.Compare(x.labels, y.labels) })
		b = append(append(append(append(b, "# HELP "...), m.Name...), ' '), escapeHelp.Replace(m.Help)...)
		b = append(append(append(append(b, "\n# TYPE "...), m.Name...), ' '), m.Type...)
		b = append(b, '\n')
		for i := range list {
			b = append(b, list[i].lines...)
		}
	}
	return b
}

var (
	escapeHelp  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	escapeLabel = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

func appendValue(line []byte, v float64) []byte {
	return append(appendFloat(append(line, ' '), v), '\n')
}

func appendFloat(b []byte, v float64) []byte {
	if math.IsInf(v, 1) {
		return append(b, "+Inf"...)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}
