// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"github.com/gleam-rdma/gleam/lab/sim/topology"
)

// checkFailures reads what of the failures needs no network.
func (p *Point) checkFailures() {
	r := p.reader
	for i, f := range p.file.Topology.Failures {
		key := "topology.failures[" + itoa(i) + "]"
		at := r.time(key+".at", f.At)
		if f.Until != "" && r.time(key+".until", f.Until) <= at {
			r.fail(key+".until", f.Until, "want a time after at, %s", f.At)
		}
		switch {
		case (f.Node == "") == (len(f.Link) == 0):
			r.fail(key, "", "want a node or a link")
		case f.Node == "" && len(f.Link) != 2:
			r.fail(key+".link", "", "want the names of its two ends, such as [l1, s1]")
		}
	}
}

// addFailures gives a network its failures.
func (p *Point) addFailures(t *topology.Topology, names map[string]topology.Node) {
	r := p.reader
	t.Failures = nil
	for i, f := range p.file.Topology.Failures {
		key := "topology.failures[" + itoa(i) + "]"
		out := topology.Failure{At: r.time(key+".at", f.At), Node: -1, Link: -1}
		if f.Node != "" {
			out.Node = r.node(key+".node", f.Node, names)
		} else {
			out.Link = r.link(key+".link", [2]string{"[0]", "[1]"}, f.Link, t, names)
		}
		t.Failures = append(t.Failures, out)
		if f.Until != "" {
			out.At, out.Up = r.time(key+".until", f.Until), true
			t.Failures = append(t.Failures, out)
		}
	}
}

// link returns the first link between two nodes; below 0: there is none. parts are the keys of the nodes' names.
func (r *reader) link(key string, parts [2]string, ends []string, t *topology.Topology, names map[string]topology.Node) int32 {
	before := len(r.errs)
	a, b := r.node(key+parts[0], ends[0], names), r.node(key+parts[1], ends[1], names)
	if len(r.errs) > before {
		return -1
	}
	for _, at := range t.Ports(a) {
		if at.Peer == b {
			return at.Link
		}
	}
	r.fail(key, ends[0]+", "+ends[1], "no link joins them")
	return -1
}
