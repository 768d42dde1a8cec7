// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong failures of links and switches.
var _ = []mutant.Mutant{
	mutant.New("what is on a link when it fails arrives", "SIMULATION.md, Model", mutant.In((*Partition).cameTooLate,
		"if o := &p.s.ports[e.in]; o.down {",
		"if o := &p.s.ports[e.in]; o.down && false {")),
	mutant.New("a link that is back is down", "SIMULATION.md, Model", mutant.In((*Simulation).planFailures,
		"if f.Up {",
		"if false && f.Up {")),
	mutant.New("a switch that is back has no routes", "SIMULATION.md, Model", mutant.In((*Simulation).routeFailures,
		"down[link] = !s.failures[i].Up",
		"down[link] = true || !s.failures[i].Up")),
	mutant.New("a failure of a switch is that of its first link", "SIMULATION.md, Model", mutant.In((*Simulation).failing,
		"links = append(links, at.Link)",
		"links = append(links[:0], at.Link)")),
	mutant.New("only one end of a link fails", "SIMULATION.md, Model", mutant.In((*Simulation).failingPorts,
		"ports = append(ports, s.firstPort[l.A]+uint32(l.APort), s.firstPort[l.B]+uint32(l.BPort))",
		"ports = append(ports, s.firstPort[l.A]+uint32(l.APort), s.firstPort[l.A]+uint32(l.APort))")),
	mutant.New("routes change when a link fails", "SIMULATION.md, Model", mutant.In((*Simulation).planFailures,
		"p.queue.push(&event{at: f.At + s.cfg.Detect, key: uint64(i),",
		"p.queue.push(&event{at: f.At, key: uint64(i),")),
}

// Wrong rebuilds of trees.
var _ = []mutant.Mutant{
	mutant.New("trees are rebuilt before a failure is known", "SIMULATION.md, Model", mutant.In((*planner).planRebuilds,
		"at := s.failures[i].At + s.cfg.Detect",
		"at := s.failures[i].At + 0*s.cfg.Detect")),
	mutant.New("a tree is rebuilt over the routes before the failure", "SIMULATION.md, Model", mutant.In((*planner).rebuild,
		"t, err := b.plan(g, s.routesAfter[failure], old)",
		"t, err := b.plan(g, s.routesAfter[0*failure], old)")),
	mutant.New("a tree is rebuilt as often as something fails", "SIMULATION.md, Model", mutant.In((*planner).planRebuilds,
		"case b.rebuilds[g] > 0 && at+asked < b.begun[g]+rebuildInterval:",
		"case b.rebuilds[g] > 0 && at+asked < b.begun[g]:")),
	mutant.New("a rebuild that waits is forgotten", "SIMULATION.md, Model", mutant.In((*planner).rebuildWanted,
		"if at < before {",
		"if at < before && before < 1<<62 {")),
	mutant.New("a registration takes no time", "SIMULATION.md, Model", mutant.In((*planner).rebuild,
		"prepared = max(prepared, 2*t[i].reach)",
		"prepared = max(prepared, 0*t[i].reach)")),
	mutant.New("a switch installs its part with those below it", "SIMULATION.md, Model", mutant.In((*planner).rebuild,
		"at[i] = max(at[i], at[c.branch]+t[c.branch].reach-t[i].reach)",
		"at[i] = max(at[i], at[i]+0*at[c.branch]+0*t[c.branch].reach-0*t[i].reach)")),
	mutant.New("a group ends at switches of its new tree", "SIMULATION.md, Model", mutant.In((*planner).rebuild,
		"if t.at(old[i].node) == nil {",
		"if t.at(old[i].node) != nil {")),
	mutant.New("a leg that has lost its members keeps them", "SIMULATION.md, Model", mutant.In((*Partition).updateTree,
		"if id := mcast.LegID(to); id != table.legOf[i] {",
		"if id := mcast.LegID(to); id == table.legOf[i] {")),
	mutant.New("sessions of trees outlive the link", "SIMULATION.md, Model", mutant.In((*Partition).adjacenciesChanged,
		"if l.port != n || !l.forwarded {",
		"if l.port != n || l.forwarded {")),
	mutant.New("a group whose member cannot be reached loses its tree", "SIMULATION.md, Model", mutant.In((*planner).rebuild,
		`if err != nil {
		b.count(old, 1)
		return
	}
	known`,
		`if err != nil {
		b.count(old, 1)
	}
	known`)),
}
