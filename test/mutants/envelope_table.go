// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Wrong ways to register, and to tell about it.
var envelopeMutants = []mutant{
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
}
