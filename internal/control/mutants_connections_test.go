// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to believe messages of RDMA-CM, and to end what they have made.
var _ = []mutant.Mutant{
	mutant.New("a message of RDMA-CM counts from anywhere", "CM", mutant.In((*control).serveLocatedMAD,
		"case origin != c.originOfFrame(x.from):", "case false:")),
	mutant.New("a REQ of a host that is being resolved is dropped", "CM", mutant.In((*control).serveMAD,
		"state == stillLocated", "false")),
	mutant.New("messages wait for a host for ever", "CM", mutant.In((*control).serveHeldMADs,
		"case c.now() >= x.until:", "case false:")),
	mutant.New("one port's messages take all room of those that wait", "CM", mutant.In((*heldMADs).hasRoom,
		"ofPort < maxHeldMADsPerPort && ofHost < maxHeldMADsPerHost", "ofHost < maxHeldMADsPerHost")),
	mutant.New("one host's messages take the room of its port", "CM", mutant.In((*heldMADs).hasRoom,
		"ofPort < maxHeldMADsPerPort && ofHost < maxHeldMADsPerHost", "ofPort < maxHeldMADsPerPort")),
	mutant.New("a member that connects again with its queue pair is disconnected", "CM", mutant.In((*control).report,
		"g == nil || g.slotOf(e.Member) < 0", "g == nil || g.slotOf(e.Member) >= -1")),
	mutant.New("a deleted group keeps its addresses", "CM", mutant.In((*control).closeConnections,
		"for _, key := range g.keys {\n\t\tdelete(x.reserved, key)\n\t}", "")),
	mutant.New("a deleted group's registrations stay", "CM", mutant.In((*control).closeConnections,
		"_, registered := c.registrar.Key(key); registered", "registered := false; registered")),
	mutant.New("a master takes the address of a group that members connect to", "CM", mutant.In((*directory).check,
		"front.IsValid() && r.Master.IsValid()", "false && front.IsValid()")),
}
