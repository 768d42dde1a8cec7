// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Mistakes about groups with members at other switches.
var _ = []mutant.Mutant{
	mutant.New("nobody is told which switch was lost", "GroupEndsWithItsNeighbour", mutant.In((*control).endReason,
		"why := e.EndReason.String() + \": \" + e.Err.Error()",
		"why := e.EndReason.String()")),
	mutant.New("members elsewhere are located here", "Between switches", mutant.In(membersHere,
		"r.Tree.Legs[i] == envelope.NoNeighbour",
		"len(r.Tree.Legs) > i")),
	mutant.New("members elsewhere are hosts of this switch", "Between switches", mutant.In((*hosts).setMembers,
		"!s.gone && s.isHere()",
		"!s.gone")),
	mutant.New("each member behind a neighbour has a leg", "Between switches", mutant.In(newSlots,
		"if s.isHere() || !ok {",
		"if s.isHere() || !ok || ok {")),
	mutant.New("members here share a leg", "Between switches", mutant.In(newSlots,
		"if s.isHere() || !ok {",
		"if !ok {")),
	mutant.New("a neighbour's new session is not told its groups", "Between switches", mutant.In((*directory).neighbourChanged,
		"d.noteStaleTable(g)",
		"_ = g")),
	mutant.New("groups that have ended stay with their neighbours", "Between switches", mutant.In((*directory).setNeighbours,
		"if delete(d.over[n], g); len(d.over[n]) == 0 {",
		"if len(d.over[n]) == 0 {")),
	mutant.New("Install takes locations that have changed since Check", "Between switches", mutant.In((*directory).takeChecked,
		"|| !sameLocation(h.location, c.kernel[i])",
		"|| !sameLocation(c.kernel[i], c.kernel[i])")),
	mutant.New("Install takes what Check has accepted of another registration", "Between switches", mutant.In((*directory).takeChecked,
		"if !ok || c.reg != r ||",
		"if !ok ||")),
	mutant.New("a link to a neighbour takes packets of any length", "Between switches", mutant.In((*directory).check,
		"d.linkMTU(r, d.lowestMTU(places))",
		"d.lowestMTU(places)")),
	mutant.New("the neighbour's end of a link takes packets of any length", "Between switches", mutant.In((*directory).linkMTU,
		"most = min(most, l.mtu)",
		"")),
	mutant.New("a member elsewhere speaks by any port", "EnvelopesOfMembersElsewhere", mutant.In((*directory).FromMember,
		"g.remote[host]; behind {",
		"g.remote[host]; !behind {")),
	mutant.New("a neighbour that has gone stays with the registrar", "RegistrarKnowsNeighbours", mutant.In((*control).tellRegistrar,
		"if !a.Up {",
		"if !a.Up && a == nil {")),
	mutant.New("a host behind a router is only not found", "WaysForTheRegistrar", mutant.In((*directory).Ways,
		"h != nil && len(h.hops) > 0 {",
		"h == nil && len(h.hops) > 0 {")),
}
