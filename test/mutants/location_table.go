// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Wrong ways to ask where members are. Their rule is the section of
// docs/ARCHITECTURE.md.
var locationMutants = []mutant{
	{"the whole forwarding database is read", "Places", "dataplane/locate/locate.go", []edit{{
		"\te, err := l.k.learnt(br.Index, mac, in)\n",
		"\t_, _ = l.h.NeighList(0, unix.AF_BRIDGE)\n\te, err := l.k.learnt(br.Index, mac, in)\n",
	}}},
	{"a range of VLANs is its first one", "Places", "dataplane/locate/entry.go", []edit{{
		"\t\t\t\tr.last = binary.NativeEndian.Uint16(a.Value)\n",
		"",
	}}},
}
