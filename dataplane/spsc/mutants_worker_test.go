// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package spsc

import (
	"sync/atomic"

	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Wrong ways for several workers to share a switch. dataplane/doc.go has the rules.
var _ = []mutant.Mutant{
	mutant.New("a full ring is written over", "Several workers", mutant.In((*Ring[int]).Put,
		"if r.tailLocal-r.headSeen == uint32(len(r.entries)) && r.Room(1) == 0 {",
		"if r.tailLocal-r.headSeen > uint32(len(r.entries)) && r.Room(1) == 0 {")),
	mutant.New("an entry is seen before it is published", "Several workers", mutant.In((*Ring[int]).Put,
		`r.tailLocal++
	return true`,
		`r.tailLocal++
	r.$1.$2(r.tailLocal)
	return true`, &(&Ring[int]{}).tail, (*atomic.Uint32).Store)),
}
