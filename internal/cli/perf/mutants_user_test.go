// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package perf

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to tell operators and users what is going on.
var _ = []mutant.Mutant{
	mutant.New("a receiver that saw all at once has a rate of its own", "user", mutant.In(received,
		"res.Seconds <= r.seconds/concurrently",
		"res.Seconds <= 0")),
}
