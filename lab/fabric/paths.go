// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"cmp"
	"slices"
)

// distances returns the number of links from each switch to sw, on the way of least links
// over switches. Links in without are left out.
func (t *Topology) distances(sw string, without map[Link]bool) map[string]int {
	return distances(sw, t.adjacent(without))
}

// adjacent returns the neighbours of each node among the switches.
func (t *Topology) adjacent(without map[Link]bool) map[string][]string {
	isSwitch := make(map[string]bool, len(t.Switches))
	for _, s := range t.Switches {
		isSwitch[s] = true
	}
	next := make(map[string][]string)
	for _, l := range t.Links {
		if isSwitch[l.A] && isSwitch[l.B] && !without[l] {
			next[l.A] = append(next[l.A], l.B)
			next[l.B] = append(next[l.B], l.A)
		}
	}
	return next
}

func distances(from string, next map[string][]string) map[string]int {
	far := map[string]int{from: 0}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, n := range next[at] {
			if _, seen := far[n]; !seen {
				far[n] = far[at] + 1
				queue = append(queue, n)
			}
		}
	}
	return far
}

// paths is, for each switch and each other switch as the destination, the neighbours on a
// shortest path, sorted. A destination without a path has no entry.
type paths map[string]map[string][]string

// shortestPaths returns the paths over the links that are not in without.
func (t *Topology) shortestPaths(without map[Link]bool) paths {
	next := t.adjacent(without)
	p := make(paths, len(t.Switches))
	for _, s := range t.Switches {
		p[s] = make(map[string][]string)
	}
	for _, to := range t.Switches {
		far := distances(to, next)
		for s, d := range far {
			if s == to {
				continue
			}
			var hops []string
			for _, n := range next[s] {
				if far[n] == d-1 {
					hops = append(hops, n)
				}
			}
			slices.SortFunc(hops, cmp.Compare[string])
			p[s][to] = hops
		}
	}
	return p
}
