// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to hold keys: who owns a group, what a key may do, and what counts from
// where. The rule is a subject of docs/PROTOCOL.md.
var _ = []mutant.Mutant{
	mutant.New("the switch does not know who only receives", "R76", mutant.In((*directory).makeSpec,
		"Number: r.Number(i), Leg: at})",
		"Number: r.Number(i), Leg: at})\n\t\tspec.Members[i].ReceiveOnly = false")),
}
