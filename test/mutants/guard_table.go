// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

// guardMutants take bricks out of the port guard, as far as it is in Go.
var guardMutants = []mutant{
	{"group prefixes have all bits of their first one in common", "guard", "bpf/common.go", []edit{{
		"if d := bits.LeadingZeros64(*first ^ x); d < 64 {",
		"if d := bits.LeadingZeros64(*first ^ x); d < 0 {",
	}}},
	{"the bits that group prefixes have in common are those of the longest one", "guard", "bpf/common.go", []edit{{
		"*mask &= ^uint64(0) << (64 - n)",
		"*mask = ^uint64(0) << (64 - n)",
	}}},
	{"an unchanged count of the guard is an offence", "guard", "dataplane/guardwatch.go", []edit{{
		"if err != nil || n == p.seen[r] {",
		"if err != nil || n == 0 {",
	}}},
	{"the guard's watch tells of each look", "guard", "dataplane/guardwatch.go", []edit{{
		"+int(r), o); report {",
		"+int(r), o); report || true {",
	}}},
	{"ports share the guard's samples", "guard", "dataplane/guardwatch.go", []edit{{
		"i*int(bpf.NumReasons)+int(r)",
		"int(r)",
	}}},
}
