// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package metrics has gleamd's metrics for Prometheus: what each means, how it is read from the
// API's types, and their server.
package metrics

import (
	"maps"
	"slices"
	"strings"

	"github.com/gleam-rdma/gleam/api"
)

// Metric is one metric, as docs/METRICS.md describes it.
type Metric struct {
	Name   string
	Type   string   // counter, gauge or histogram
	Labels []string // of each of its series
	Help   string

	byName []int // indices of Labels in the order of their names
}

// section is a part of the catalog.
type section struct {
	Title, Text string
	Metrics     []*Metric
}

// catalog has all metrics in the order of docs/METRICS.md.
var catalog []*section

// begin begins a section of the catalog.
func begin(title, text string) *section {
	s := &section{Title: title, Text: text}
	catalog = append(catalog, s)
	return s
}

func (s *section) add(kind, name, help string, labels []string) *Metric {
	m := &Metric{Name: "gleam_" + name, Type: kind, Labels: labels, Help: help}
	for i := range labels {
		m.byName = append(m.byName, i)
	}
	slices.SortFunc(m.byName, func(a, b int) int { return strings.Compare(labels[a], labels[b]) })
	s.Metrics = append(s.Metrics, m)
	return m
}

func (s *section) counter(name, help string, labels ...string) *Metric {
	return s.add("counter", name, help, labels)
}

func (s *section) gauge(name, help string, labels ...string) *Metric {
	return s.add("gauge", name, help, labels)
}

func (s *section) histogram(name, help string) *Metric { return s.add("histogram", name, help, nil) }

// All returns all metrics.
func All() (list []*Metric) {
	for _, s := range catalog {
		list = append(list, s.Metrics...)
	}
	return list
}

// count adds a value of m.
func (o out) count(m *Metric, n uint64, labels ...string) { o.put(m, float64(n), labels...) }

// each adds a value of m for each of counts, whose key is the last label.
func (o out) each(m *Metric, counts map[string]uint64, labels ...string) {
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		o.count(m, counts[key], append(slices.Clone(labels), key)...)
	}
}

// flag adds 1 or 0.
func (o out) flag(m *Metric, on bool, labels ...string) {
	value := 0.0
	if on {
		value = 1
	}
	o.put(m, value, labels...)
}

// ring adds the fill and the size of a ring or queue.
func (o out) ring(used, size *Metric, r api.Ring, labels ...string) {
	o.put(used, float64(r.Used), labels...)
	o.put(size, float64(r.Size), labels...)
}
