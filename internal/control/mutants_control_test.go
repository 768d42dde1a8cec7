// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Wrong ways for the control loop to learn what the core has decided.
// doc.go, The path of a decision, has the rules.
var _ = []mutant.Mutant{
	mutant.New("what is listed during a round waits for ever", "Outcomes", mutant.In((*control).collectOutcomes,
		"more = more || c.plane.HasChanged(w)",
		""), mutant.In((*control).collectOutcomes,
		"todo -= n",
		"todo = 0")),
	mutant.New("only the first worker gets the call", "Outcomes", mutant.In((*control).collectOutcomes,
		"for w := range c.plane.Workers() {",
		"for w := range min(1, c.plane.Workers()) {")),
	mutant.New("outcomes of an older registration are applied", "Outcomes", mutant.In((*group).newOutcomes,
		`if o.Generation != g.generation {
		return nil // of another registration
	}`,
		"")),
	mutant.New("all registrations have one generation", "Outcomes", mutant.In((*directory).Install,
		"d.generations++",
		"")),
	mutant.New("a registration that is asked about is checked once", "Outcomes", mutant.In((*directory).expirePending,
		"d.expiries = append(d.expiries, pendingExpiry{a, now + pendingTTL})",
		"_ = now + pendingTTL")),
	mutant.New("a registration that is asked about expires", "Outcomes", mutant.In((*directory).expirePending,
		"case a.lastRequested+pendingTTL > now:",
		"case a.lastRequested > now:")),
	mutant.New("the expiry of a replaced registration ends the new one", "Outcomes", mutant.In((*directory).expirePending,
		"case d.pending[a.reg.Group] != a:",
		"case d.pending[a.reg.Group] == nil:")),
	mutant.New("the registrar does not hear of evictions", "Outcomes", mutant.In((*control).applyOutcomes,
		`c.dir.slotGone(g, int(d.Member))
			c.registrar.MemberEvicted(c.now(), g.reg.Group, m, d.Syndrome, d.PSN, &c.out)`,
		`c.dir.slotGone(g, int(d.Member))
			c.out = $1{}`, envelope.Output{})),
	mutant.New("a registration that is replaced has no last words", "Outcomes", mutant.In((*directory).Install,
		`d.onEnd(g, &d.scratch, envelope.Replaced)
	} else {`,
		"} else {")),
	mutant.New("a deleted group has no last words", "Outcomes", mutant.In((*directory).Remove,
		"d.onEnd(g, &d.scratch, why)",
		"_ = why")),
	mutant.New("a member that is replaced has no last words", "Outcomes", mutant.In((*directory).update,
		"d.reportLastOutcome(g, int(m))",
		"_ = m")),
	mutant.New("a turn is told of who has the slot now", "Outcomes", mutant.In((*directory).update,
		"for _, x := range g.newTurns(&d.scratch.Outcomes) {",
		"for _, x := range g.newTurns(&$1{}) {", mcast.Outcomes{})),
	mutant.New("groups that have gone are remembered for ever", "Outcomes", mutant.In((*control).groupEnded,
		"c.endedGroups = slices.Delete(c.endedGroups, 0, i+1)",
		"c.endedGroups = slices.Delete(c.endedGroups, 0, 0)")),
	mutant.New("slots are not used again", "Outcomes", mutant.In((*directory).planMembers,
		"if s.isHere() && len(free) > 0 {",
		"if s.isHere() && len(free) > 0 && $arg2 == nil {")),
	mutant.New("a group that has carried data says no", "6", mutant.In((*directory).HadSource,
		"carried = g.handle.Outcomes(&d.scratch.Outcomes) == nil && d.scratch.Outcomes.Turns > 0",
		"")),
}
