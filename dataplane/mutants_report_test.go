// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Mistakes about the reports between switches.
var _ = []mutant.Mutant{
	mutant.New("a report needs no MAC", "Between switches", mutant.In((*worker).serveReport,
		"if !w.reports.verifies(f.Eth().Src(), w.ports[pi].mac, b) {",
		"if len(b) == 0 {")),
	mutant.New("a report may be sent back", "Between switches", mutant.In((*reportAuth).mac,
		`k.Write(from[:])
	k.Write(to[:])`,
		"")),
	mutant.New("only the first key is accepted", "Between switches", mutant.In((*reportAuth).verifies,
		"for _, k := range a.keys {",
		"for _, k := range a.keys[:1] {")),
	mutant.New("a neighbour that is down has a session", "Between switches", mutant.In((*worker).setSessions,
		"; l.isUp(p) {",
		"; p != nil {")),
}
