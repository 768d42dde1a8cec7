// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// guardMutants are mistakes in the part of the port guard that is in Go.
var _ = []mutant.Mutant{
	mutant.New("a MAC address alone is permitted by allow lists", "guard", mutant.In((*Allow).Permits,
		"slices.Contains(a.MACs, mac)) &&",
		"slices.Contains(a.MACs, mac)) ||")),
}
