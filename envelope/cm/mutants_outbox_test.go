// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to say what becomes of a message that waits for the state file.
var _ = []mutant.Mutant{
	mutant.New("a DREQ is dropped while the state file fails", "outbox", mutant.In((*Manager).sendTo,
		"x.Attribute == DisconnectRequest",
		"x.Attribute == DisconnectRequest && false")),
}
