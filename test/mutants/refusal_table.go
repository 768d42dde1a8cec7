// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Wrong ways to tell of envelopes that are refused, and to answer those whose sender
// is not known yet.
var refusalMutants = []mutant{
	{"every refused envelope is a line", "Refusals", "dataplane/sampler.go", []edit{{
		"	if k.reported && now < k.until {\n",
		"	if k.reported && now < 0 {\n",
	}}},
	{"what was suppressed is forgotten", "Refusals", "dataplane/sampler.go", []edit{{
		"	suppressed = k.held\n",
		"",
	}}},
	{"the end of a flood is never told", "Refusals", "dataplane/sampler.go", []edit{{
		"if k := &s.kinds[i]; k.held > 0 && (!ok",
		"if k := &s.kinds[i]; k.held > 1 && (!ok",
	}}},
	{"an answer to an unknown neighbour is lost", "Refusals", "dataplane/parked.go", []edit{{
		"		default:\n			keep = append(keep, x)\n",
		"		case false:\n			keep = append(keep, x)\n",
	}}},
	{"answers wait without bound", "Refusals", "dataplane/parked.go", []edit{{
		"	if len(k.waiting) >= parkRoom {\n",
		"	if len(k.waiting) >= 2*parkRoom {\n",
	}}},
	{"answers wait for ever", "Refusals", "dataplane/parked.go", []edit{{
		"		case now >= x.until:\n",
		"		case now >= x.until+time.Hour:\n",
	}}},
}
