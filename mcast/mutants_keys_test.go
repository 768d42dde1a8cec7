// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to hold keys: who owns a group, what a key may do, and what counts from
// where. The rule is a subject of docs/PROTOCOL.md.
var _ = []mutant.Mutant{
	mutant.New("a failed group leaves the next sender waiting", "R80", mutant.In((*group).requestOfNonSource,
		`if g.is(failed) {
		return g.rejectFailed(MemberID(k), p, out)
	}
	if g.tree() != nil {`,
		`if g.is(failed) {
		return $1
	}
	if g.tree() != nil {`, FailedGroup)),
	mutant.New("a failed group answers unverified packets", "R80", mutant.In((*group).rejectFailed,
		`return FailedGroup
	}
	if !p.Verified {`,
		`return FailedGroup
	}
	if p == nil {`)),
}
