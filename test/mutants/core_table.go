// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Wrong ways to treat members that only receive.
var coreMutants = []mutant{
	{"a member that only receives may send", "R76", "mcast/epoch.go", []edit{{
		"	if m.receiveOnly {\n",
		"	if m.receiveOnly && g.dead {\n",
	}}},
	{"a member that only receives may send if the group is at rest", "R76", "mcast/epoch.go", []edit{{
		"	if m.receiveOnly {\n",
		"	if m.receiveOnly && !g.quiescent() {\n",
	}}},
	{"a member that only receives hears nothing", "R76", "mcast/turns.go", []edit{{
		"	if p.PSN&rocev2.PSNMask != m.p {\n		return NotSender\n",
		"	if p.PSN&rocev2.PSNMask != m.p || g.nrecv > 0 {\n		return NotSender\n",
	}}},
	{"any packet of a member that only receives is answered", "R76", "mcast/turns.go", []edit{{
		"	if p.PSN&rocev2.PSNMask != m.p {\n		return NotSender\n",
		"	if p.PSN&rocev2.PSNMask != m.p && m.p > rocev2.PSNMask {\n		return NotSender\n",
	}}},
	{"an unverified packet is refused for its sender's role", "R33", "mcast/turns.go", []edit{{
		"		return NotSender\n	}\n	if !p.Verified {\n",
		"		return NotSender\n	}\n	if !p.Verified && g.dead {\n",
	}}},
	{"every packet of a member that only receives is an event", "R76", "mcast/turns.go", []edit{{
		"		m.refused = true\n",
		"		m.refused = g.dead\n",
	}}},
}
