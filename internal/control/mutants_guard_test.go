// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// guardMutants take bricks out of the port guard, as far as it is in Go.
var _ = []mutant.Mutant{
	mutant.New("an unchanged count of the guard is an offence", "guard", mutant.In((*portGuardLog).poll,
		"if err != nil || n == p.counted[r] {",
		"if err != nil || n == 0 {")),
	mutant.New("the guard's watch tells of each look", "guard", mutant.In((*portGuardLog).poll,
		"+int(r), o); report {",
		"+int(r), o); report || true {")),
	mutant.New("ports share the guard's samples", "guard", mutant.In((*portGuardLog).poll,
		"i*int(bpf.NumReasons)+int(r)",
		"int(r)")),
}
