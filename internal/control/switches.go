// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"fmt"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/internal/control/location"
	"github.com/gleam-rdma/gleam/internal/control/neighbours"
	"github.com/gleam-rdma/gleam/internal/control/tree"
	"github.com/gleam-rdma/gleam/rocev2"
)

// setSwitches has the control loop follow hellos and routes. It is called before run.
func (c *control) setSwitches(h tree.Hellos, helloBell <-chan struct{}, r location.Routes, routeBell <-chan struct{}) {
	c.switches.Hellos, c.switches.Bell, c.kernel.routeBell = h, helloBell, routeBell
	c.dir.switches = &c.switches
	c.dir.hosts.SetRoutes(r)
	c.kernel.lookups.SetRoutes(r, func(ifindex int) bool { return h.Has(c.plane.PortIndex(ifindex)) })
}

// followNeighbours takes over the state of all links.
func (c *control) followNeighbours() {
	s := &c.switches
	if s.Hellos == nil {
		return
	}
	changes := s.Table.Update(c.now(), s.Hellos.Links())
	if len(changes) == 0 {
		return
	}
	var up []dataplane.Neighbour
	macs := make(map[int]rocev2.MAC)
	for _, a := range s.Table.All() {
		if a.Up {
			macs[a.Port] = a.MAC
			up = append(up, dataplane.Neighbour{ID: a.Number, Port: a.Port, MAC: a.MAC, Session: a.Session})
		}
	}
	c.hooks.onNeighbours(macs)
	if err := c.plane.SetNeighbours(up); err != nil && !errors.Is(err, errStopped) {
		c.notify(true, "the workers do not have the present neighbours", "error", err)
	}
	for i := range changes {
		x := &changes[i]
		c.tellRegistrar(&x.Is)
		c.reportNeighbour(x)
		c.dir.neighbourChanged(x.Is.Number)
	}
}

// reportNeighbour tells the operator of a session that has ended, and of one that has begun.
func (c *control) reportNeighbour(x *neighbours.Change) {
	port := c.ports[x.Is.Port].Name
	if x.Ended() {
		c.notify(true, "a neighbour switch is down", "port", port, "switch", x.Is.ID, "reason", x.Lost, "session", tree.SessionText(x.Was.Session))
		c.journal.Add(api.Event{Kind: api.EventNeighbour, Reason: fmt.Sprintf("switch %v at port %s is down: %v", x.Is.ID, port, x.Lost)})
	}
	if x.Began() {
		c.notify(false, "a neighbour switch is up", "port", port, "switch", x.Is.ID, "mac", x.Is.MAC, "session", tree.SessionText(x.Is.Session))
		c.journal.Add(api.Event{Kind: api.EventNeighbour, Reason: fmt.Sprintf("switch %v at port %s is up, session %s", x.Is.ID, port, tree.SessionText(x.Is.Session))})
	}
	if x.Began() && x.Is.MTU > 0 && x.Is.MTU != c.ports[x.Is.Port].mtu {
		c.notify(true, "the ends of a link have different MTUs: frames beyond the lower one are lost there", "port", port, "mtu", c.ports[x.Is.Port].mtu, "switch", x.Is.ID, "neighbour_mtu", x.Is.MTU)
	}
}
