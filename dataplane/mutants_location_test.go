// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to ask where members are. internal/control/doc.go, Places, has the rules.
var _ = []mutant.Mutant{
	mutant.New("one port takes all places", "Places", mutant.In(newSlotClass,
		"maxPerPort: int32(slots / portShare),",
		"maxPerPort: int32(slots),")),
}
