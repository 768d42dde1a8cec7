// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package locate

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to follow members, ports and links. internal/control/doc.go, Places and
// Ports, has the rules.
var _ = []mutant.Mutant{
	mutant.New("what comes while the bell rings is lost", "Places", mutant.In((*Changes).Take,
		`c.set = newSet()
	return s`,
		"return s")),
	mutant.New("a bridge that forgets the old port hides the new one", "Places", mutant.In((*Changes).Learn,
		"s.Learnt[mac] = s.Learnt[mac] || learnt",
		"s.Learnt[mac] = learnt")),
	mutant.New("changes are collected without bound", "Places", mutant.In((*Changes).add,
		"> maxChanges {",
		"> 1000*maxChanges {")),
}
