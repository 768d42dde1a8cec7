// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to tell operators and users what is going on.
var _ = []mutant.Mutant{
	mutant.New("a reason has no text", "user", mutant.In(dropReasons,
		`{name: "queue_full", text: "a port takes no more, since its egress queue is full or it does not transmit: this copy or answer alone was lost, and is repaired like a loss on the link"}`,
		`{name: "queue_full"}`)),
	mutant.New("what occurs in normal operation is a drop", "user", mutant.In(ReasonTable.AddTo,
		"n > 0 && r.Normal {",
		"n > 0 && false {")),
}
