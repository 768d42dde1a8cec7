// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to members that are behind other switches. next_hops.go begins with
// the rule.
var _ = []mutant.Mutant{
	mutant.New("a gateway is the neighbour whatever its MAC address", "Routes", mutant.In((*directory).neighbourOf,
		"case a.MAC != rocev2.MAC(hop.at.MAC):",
		"case rocev2.MAC(hop.at.MAC) != rocev2.MAC(hop.at.MAC):")),
	mutant.New("a gateway that says no hello is a way", "Routes", mutant.In((*directory).neighbourOf,
		"case !up:",
		"case !up && up:")),
	mutant.New("a gateway that is being resolved keeps a registration waiting", "Routes", mutant.In((*directory).waysBy,
		"w.hops, w.pending = slices.Compact(w.hops), false",
		"w.hops = slices.Compact(w.hops)")),
	mutant.New("a gateway that is being resolved is none", "Routes", mutant.In((*directory).waysBy,
		"w.pending = true",
		"w.pending = false")),
}
