// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong rates.
var _ = []mutant.Mutant{
	mutant.New("rates do not know that PSNs begin anew", "tree", mutant.In(Between,
		"rocev2.PSN(psn).Sub(rocev2.PSN(before))",
		"int32(rocev2.PSN(psn)) - int32(rocev2.PSN(before))")),
}
