// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to hold keys: who owns a group, what a key may do, and what counts from
// where. The rule is a subject of docs/PROTOCOL.md.
var _ = []mutant.Mutant{
	mutant.New("one address takes the rate of a port", "Rates", mutant.In((*addressPolicers).allow,
		"s.fullAt[i] = b.fullAt",
		"_ = b.fullAt")),
	mutant.New("all addresses have one rate", "Rates", mutant.In((*addressPolicers).allow,
		"% uint64(len(s.fullAt))",
		"% 1")),
}
