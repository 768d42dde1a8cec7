// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// fastTargetMutants are mistakes in what is known of ports on the fast path.
var _ = []mutant.Mutant{
	mutant.New("an interface has the state of the one before", "fast path", mutant.In((*fastTargets).setPort,
		"x.ifindex, x.target = p.name, p.driver, p.ifindex, fastpath.Target{}",
		"x.ifindex = p.name, p.driver, p.ifindex")),
	mutant.New("a port that loses all is used", "fast path", mutant.In((*fastTargets).lookAt,
		"barred := !x.target.Usable()",
		"barred := !x.target.Usable() && false")),
	mutant.New("workers do not hear that a port changes", "fast path", mutant.In((*fastTargets).look,
		"changed = append(changed, pi)",
		"_ = append(changed, pi)")),
}
