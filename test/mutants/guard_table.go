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
	{"a port takes VLANs that the bridge itself is not in", "guard", "dataplane/bridging.go", []edit{{
		"policy.VLANs.And(&local) // as of",
		"local.And(&local) // as of",
	}}},
	{"who is gone from a locked port goes on speaking", "guard", "dataplane/bridging.go", []edit{{
		"VID: s.VID}, false); err != nil {",
		"VID: s.VID}, true); err != nil {",
	}}},
	{"a change of the bridge does not reach the workers", "guard", "dataplane/bridging.go", []edit{{
		"b.apply(pi, now)",
		"_ = b.apply",
	}}},
	{"two members behind one isolated port split a group", "guard", "dataplane/bridging.go", []edit{{
		"|| l.port == first:",
		":",
	}}},
	{"members that have gone split a group", "guard", "dataplane/bridging.go", []edit{{
		"case !l.active() || !ports",
		"case !ports",
	}}},
	{"a MAC address alone is permitted by allow lists", "guard", "config/allow.go", []edit{{
		"slices.Contains(a.MACs, mac)) &&",
		"slices.Contains(a.MACs, mac)) ||",
	}}},
}
