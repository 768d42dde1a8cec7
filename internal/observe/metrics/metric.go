// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package metrics has gleamd's metrics for Prometheus: what each means, how it is read from the
// API's types, and their server.
package metrics

import (
	"slices"
	"strings"

	"github.com/gleam-rdma/gleam/api"
)

// Metric is one metric, as docs/METRICS.md describes it.
type Metric struct {
	Name   string
	Type   string   // counter, gauge or histogram
	Labels []string // the labels of each of its series
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
func begin(title, text string) { catalog = append(catalog, &section{Title: title, Text: text}) }

// subject is what metrics are about: each has a value for each T that a sample has.
type subject[T any] struct {
	labels []string // names of the labels that tell one T from another
	each   func(s *sample, found func(x *T, labels ...string))
	rows   []row[T]
}

// row is how a metric is read.
type row[T any] struct {
	metric *Metric
	read   func(a adder, x *T)
}

// parts returns the subject of what find finds in each T, with labels beside its own.
func parts[T, U any](j *subject[T], labels []string, find func(x *T, found func(*U, ...string))) subject[U] {
	return subject[U]{labels: slices.Concat(j.labels, labels), each: func(s *sample, found func(*U, ...string)) {
		j.each(s, func(x *T, of ...string) {
			find(x, func(u *U, labels ...string) { found(u, slices.Concat(of, labels)...) })
		})
	}}
}

// part returns the subject of what get gets from each T, if that is not nil.
func part[T, U any](j *subject[T], get func(*T) *U) subject[U] {
	return parts(j, nil, func(x *T, found func(*U, ...string)) {
		if u := get(x); u != nil {
			found(u)
		}
	})
}

func (j *subject[T]) add(kind, name, help string, read func(adder, *T), labels []string) {
	labels = slices.Concat(j.labels, labels)
	m := &Metric{Name: "gleam_" + name, Type: kind, Labels: labels, Help: help}
	for i := range labels {
		m.byName = append(m.byName, i)
	}
	slices.SortFunc(m.byName, func(a, b int) int { return strings.Compare(labels[a], labels[b]) })
	s := catalog[len(catalog)-1]
	s.Metrics = append(s.Metrics, m)
	j.rows = append(j.rows, row[T]{m, read})
}

func (j *subject[T]) counter(name, help string, read func(adder, *T), labels ...string) {
	j.add("counter", name, help, read, labels)
}

func (j *subject[T]) gauge(name, help string, read func(adder, *T), labels ...string) {
	j.add("gauge", name, help, read, labels)
}

func (j *subject[T]) histogram(name, help string, read func(adder, *T)) {
	j.add("histogram", name, help, read, nil)
}

// collect adds the values of all metrics about j.
func (j *subject[T]) collect(s *sample, o out) {
	j.each(s, func(x *T, labels ...string) {
		for _, r := range j.rows {
			r.read(adder{o, r.metric, labels}, x)
		}
	})
}

// All returns all metrics.
func All() (list []*Metric) {
	for _, s := range catalog {
		list = append(list, s.Metrics...)
	}
	return list
}

// adder adds values of one metric about one thing.
type adder struct {
	o      out
	metric *Metric
	labels []string // the labels of the thing
}

// put adds a value with more labels.
func (a adder) put(value float64, labels ...string) {
	a.o.put(a.metric, value, append(slices.Clip(a.labels), labels...)...)
}

func (a adder) count(n uint64, labels ...string) { a.put(float64(n), labels...) }

// each adds each of counts, whose key is the last label; 0 for those of names that are not there.
func (a adder) each(counts map[string]uint64, names []string) {
	for _, name := range names {
		if _, ok := counts[name]; !ok {
			a.put(0, name)
		}
	}
	for name, n := range counts {
		a.count(n, name)
	}
}

// flag adds 1 or 0.
func (a adder) flag(on bool, labels ...string) {
	value := 0.0
	if on {
		value = 1
	}
	a.put(value, labels...)
}

func (a adder) histogram(h *api.Histogram) { a.o.histogram(a.metric, h) }
