// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Mistakes about what members cost their group. cost.go begins with the rule.
var _ = []mutant.Mutant{
	mutant.New("a fault lasts for ever", "Looks", mutant.In((*group).costACK,
		"m.fault = NoFault",
		"m.fault = m.fault")),
	mutant.New("a single receiver is waited for beyond nobody", "Looks", mutant.In((*group).costLast,
		"g.recv.count > 1",
		"g.recv.count > 0")),
	mutant.New("rdma_rxe's NAK behind an RNR NAK is a loss", "Looks", mutant.In((*group).costNAK,
		"g.acks[i].acked.Next() != e",
		"true")),
	mutant.New("silence hides the fault before it", "Looks", mutant.In((*group).noteFault,
		"f == Probed && m.fault != NoFault,",
		"")),
	mutant.New("a standstill is that of the fault before it", "Looks", mutant.In(addWait,
		"d > Standstill && f != Lost",
		"d < 0 && f != Lost")),
	mutant.New("a standstill takes the wait before it", "Looks", mutant.In(addWait,
		"d = Standstill",
		"d = 0")),
	mutant.New("every duplicate answer is late", "Looks", mutant.In((*group).costDuplicate,
		"c.spurious < c.probes",
		"true")),
	mutant.New("a member that joins has the costs of the one before it", "Looks", mutant.In((*group).removeLeg,
		"g.cost != nil",
		"false")),
}
