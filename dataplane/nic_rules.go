// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"

	"github.com/gleam-rdma/gleam/dataplane/ntuple"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Rules that have NICs receive a group's packets by a queue of the worker that it
// belongs to. They only save work: packets that come by another queue are handed
// over. All of this is the control loop's.

// nicRule is where a group's rule is in a port's table.
type nicRule struct {
	table    *ntuple.Table
	location uint32
}

// queueOf returns the queue of port pi that a worker receives from; ok is false if it
// has none there. See divide.
func (c *workers) queueOf(pi, worker int) (queue int, ok bool) {
	n := len(c.all)
	at := ((worker-pi)%n + n) % n
	all := c.ports[pi].sockets
	if at >= len(all) {
		return 0, false
	}
	return all[at].Queue(), true
}

// addNICRules asks every port that has rules to receive what is for group ip by a queue of
// its worker.
func (d *directory) addNICRules(ip netip.Addr, g *group) {
	for pi, p := range d.workers.ports {
		if p.nicRules == nil {
			continue
		}
		queue, ok := d.workers.queueOf(pi, g.worker.index)
		if !ok {
			continue
		}
		at, err := p.nicRules.Add(ip, rocev2.UDPPort, queue)
		if err != nil {
			d.notify(true, "a group is not steered to its worker's queue", "group", ip, "port", p.name, "error", err)
			continue
		}
		g.nicRules = append(g.nicRules, nicRule{p.nicRules, at})
	}
}

// removeNICRules takes back what steer asked for.
func (d *directory) removeNICRules(g *group) {
	for _, r := range g.nicRules {
		if err := r.table.Delete(r.location); err != nil {
			d.notify(true, "a rule was not taken back", "error", err)
		}
	}
	g.nicRules = nil
}
