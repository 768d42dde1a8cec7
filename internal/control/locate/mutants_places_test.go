// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package locate

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to follow members, ports and links. internal/control/doc.go, Places and
// Ports, has the rules.
var _ = []mutant.Mutant{
	mutant.New("changes are collected without bound", "Places", mutant.In((*Changes).add,
		"> maxChanges {",
		"> 1000*maxChanges {")),
}
