// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to treat members that only receive, come back, or are behind a quorum.
var _ = []mutant.Mutant{
	mutant.New("a group that comes back may be another worker's", "R73", mutant.In((*groupOwners).choose,
		"time.Since(f.removedAt) < recentFor {",
		"time.Since(f.removedAt) < 0 {")),
}
