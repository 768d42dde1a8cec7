// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Wrong ways to serve many groups at once.
var scaleMutants = []mutant{
	{"Advance looks at all groups", "R81", "mcast/switch.go", []edit{{
		"	for _, id := range s.timers.expire(now) {\n		g := s.groups[id]\n",
		"	s.timers.expire(now)\n	for _, g := range s.groups {\n		if g == nil {\n			continue\n		}\n",
	}}},
	{"groups of one time are served in any order", "R81", "mcast/timers.go", []edit{{
		"return a.at < b.at || a.at == b.at && a.id < b.id",
		"return a.at < b.at",
	}}},
	{"a deleted group goes on waiting", "R81", "mcast/apply.go", []edit{{
		"	s.timers.stop(id)\n",
		"",
	}}},
	{"an earlier deadline does not count", "R81", "mcast/timers.go", []edit{{
		"	case t.heap[i].at <= at:\n",
		"	default:\n",
	}}},
	{"a group that stops leaves the heap in disorder", "R81", "mcast/timers.go", []edit{{
		"	case i > 0 && last.before(t.heap[(i-1)/4]):\n		t.up(i, last)\n",
		"",
	}}},
}
