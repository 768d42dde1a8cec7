// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways for the control loop to learn what the core has decided.
// internal/control/doc.go has the rules.
var _ = []mutant.Mutant{
	mutant.New("a new member has the outcome of the old one", "Outcomes", mutant.In((*group).renew,
		"g.outcomes.resetMember(id)",
		"")),
	mutant.New("evictions are not kept", "Outcomes", mutant.In((*group).emitEvent,
		"o.Evicted[e.Member] = e",
		"")),
	mutant.New("turns are not counted", "Outcomes", mutant.In((*group).emitEvent,
		`	switch o := g.decided(); e.Kind {
	case SourceChanged:
		o.Turns++`,
		`	switch o := g.decided(); e.Kind {
	case SourceChanged:
		`)),
}
