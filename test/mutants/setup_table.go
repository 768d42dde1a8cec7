// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Wrong ways to look at the machine that the switch runs on.
var setupMutants = []mutant{
	{"link-local routes lead to members", "Check", "dataplane/check.go", []edit{{
		"	if r.Dst != nil && (r.Dst.IP.IsLinkLocalUnicast() || r.Dst.IP.IsMulticast()) {\n",
		"	if r.Dst != nil && r.Dst.IP.IsMulticast() {\n",
	}}},
	{"a bridge's address is not its ports'", "Check", "dataplane/check.go", []edit{{
		`m.Type() == "bridge"`, `m.Type() == "bond"`,
	}}},
	{"any route leads to members", "Check", "dataplane/check.go", []edit{{
		"	if slices.Contains(interfaces, r.LinkIndex) {\n",
		"	if r.LinkIndex > 0 {\n",
	}}},
	{"the switch's own address may be a group's", "Check", "dataplane/check.go", []edit{{
		"		if p.Contains(net.Addr()) {\n",
		"		if false {\n",
	}}},
	{"headers need no room in the MTU", "Check", "dataplane/check.go", []edit{{
		"need := usualPMTU + headroom(p.Addr().Is4())", "need := usualPMTU",
	}}},
	{"every prefix is in a subnet of the ports", "Check", "dataplane/check.go", []edit{{
		"	case !onLink:\n", "	case !onLink && false:\n",
	}}},
	{"a lack of CAP_PERFMON is not named", "Check", "cmd/gleamd/privileges.go", []edit{{
		"	{\"CAP_PERFMON\", 1<<unix.CAP_PERFMON | 1<<unix.CAP_SYS_ADMIN, false},\n",
		"",
	}}},
}
