// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Mistakes on the way to and from other switches.
var _ = []mutant.Mutant{
	mutant.New("any switch may forward for any member", "Between switches", mutant.In((*worker).sourceGuard,
		"return l.neighbour == p.Neighbor || !p.Op.Is(rocev2.OpRequest)",
		"return true")),
	mutant.New("the guard knows no neighbours", "Between switches", mutant.In((*worker).sourceGuard,
		"if g.forwards {",
		"if g.forwards && !g.forwards {")),
	mutant.New("copies leave for a neighbour that is down", "Between switches", mutant.In((*leg).isUp,
		"return l.kind == mcast.Connected || p.neighbour.id == l.neighbour",
		"return l.kind == mcast.Connected || p.neighbour.id <= l.neighbour")),
	mutant.New("the receiving worker takes a neighbour for a host", "Between switches", mutant.In((*worker).ownerOf,
		"peekNegative(l4) && w.ports[pi].neighbour.from(rocev2.Ethernet(b[:rocev2.EthernetLen]).Src()) == 0",
		"peekNegative(l4) && w.ports[pi].neighbour.from(rocev2.Ethernet(b[:rocev2.EthernetLen]).Src()) <= 99")),
	mutant.New("relays wait with hosts' envelopes", "Between switches", mutant.In((*worker).queueEnvelope,
		"case from != 0:",
		"case from < 0:")),
	mutant.New("relays count against their address's limit", "Between switches", mutant.In((*worker).serveOther,
		"p.neighbour.from(w.frame.Eth().Src()) != 0:",
		"p.neighbour.from(w.frame.Eth().Src()) < 0:")),
	mutant.New("a leg to a switch goes with the first member behind it", "Between switches", mutant.In((*groupTable).markGone,
		"if l.live--; l.live == 0 && l.port >= 0 {",
		"if l.live = 0; l.live == 0 && l.port >= 0 {")),
	mutant.New("a member that has gone goes once more", "Between switches", mutant.In((*groupTable).markGone,
		"if m.gone {",
		"if m.gone && !m.gone {")),
	mutant.New("frames for another switch have no tag", "Between switches", mutant.In((*worker).makeTable,
		", vlan: w.ports[l.Port].vlan}",
		"}")),
	mutant.New("only one worker knows the neighbours", "Between switches", mutant.In((*Plane).SetNeighbours,
		"for i, x := range w.ports {",
		"for i, x := range w.ports[:(1-w.$1)*2] {", worker{}.index)),
	mutant.New("edges have the sessions of their neighbours", "Between switches", mutant.In(edgeSession,
		"uint64(layout)*0x9E3779B97F4A7C15",
		"uint64(layout)*0")),
}
