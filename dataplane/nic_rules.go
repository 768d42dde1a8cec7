// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"github.com/gleam-rdma/gleam/dataplane/ntuple"
	"github.com/gleam-rdma/gleam/rocev2"
)

// NIC rules make NICs receive a group's packets by a queue of the group's owner. They
// only save work: packets that come by another queue are handed off. All functions here
// belong to the control loop.

// nicRule is the location of a group's rule in a port's table.
type nicRule struct {
	port     int
	table    *ntuple.Table
	location uint32
}

// queueOf returns the queue of port pi that a worker receives from; ok is false if there
// is none. See portViews.
func (c *workers) queueOf(pi, worker int) (queue int, ok bool) {
	n := len(c.all)
	at := ((worker-pi)%n + n) % n
	all := c.ports[pi].sockets
	if at >= len(all) {
		return 0, false
	}
	return all[at].Number(), true
}

// addNICRules adds, at every port that has a rule table, a rule to receive packets for
// the group by a queue of its owner.
func (g *Group) addNICRules() {
	for pi, p := range g.plane.ports {
		if p.nicRules == nil {
			continue
		}
		queue, ok := g.plane.workers.queueOf(pi, g.worker.index)
		if !ok {
			continue
		}
		at, err := p.nicRules.Add(g.ip, rocev2.UDPPort, queue)
		if err != nil {
			g.plane.notify(true, "a group is not steered to its worker's queue", "group", g.ip, "port", p.name, "error", err)
			continue
		}
		g.nicRules = append(g.nicRules, nicRule{pi, p.nicRules, at})
	}
}

// removeNICRules removes the rules that addNICRules added.
func (g *Group) removeNICRules() {
	for _, r := range g.nicRules {
		if g.plane.ports[r.port].nicRules != r.table {
			continue // its interface has vanished, and the rule with it
		}
		if err := r.table.Delete(r.location); err != nil {
			g.plane.notify(true, "a rule was not taken back", "error", err)
		}
	}
	g.nicRules = nil
}
