// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope/hello"
	"github.com/gleam-rdma/gleam/internal/control/fib"
	"github.com/gleam-rdma/gleam/internal/control/neighbours"
	"github.com/gleam-rdma/gleam/rocev2"
)

// switches is what the control loop knows of other switches: the neighbours that hellos have
// found, and the routes of members. Without keys of switches both are missing, and a router
// is a host to the switch.
type switches struct {
	hellos    helloLinks // nil: no keys of switches are configured
	routes    routes     // nil: likewise
	helloBell <-chan struct{}
	routeBell <-chan struct{}
	table     neighbours.Table
}

// helloLinks is the part of neighbours.Runtime that the control loop uses.
type helloLinks interface {
	Links() []neighbours.Link
	Has(port int) bool
	SetLink(port int, up bool, mtu int)
	SetInterface(port, ifindex int, mac rocev2.MAC) error
	SetPort(neighbours.Port) error
	ID() hello.SwitchID
}

// routes is the part of fib.Watcher that the control loop uses.
type routes interface {
	Subscribe(netip.Addr)
	Unsubscribe(netip.Addr)
	Route(netip.Addr) (fib.Route, bool)
	Changed() []netip.Addr
	SetVRFs([]int)
}

// setSwitches has the control loop follow hellos and routes. It is called before run.
func (c *control) setSwitches(h helloLinks, helloBell <-chan struct{}, r routes, routeBell <-chan struct{}) {
	c.switches.hellos, c.switches.helloBell, c.switches.routes, c.switches.routeBell = h, helloBell, r, routeBell
	c.dir.switches, c.dir.hosts.routes = &c.switches, r
	c.kernel.lookups.routes = r
	c.kernel.lookups.bySwitch = func(ifindex int) bool { return h.Has(c.plane.PortIndex(ifindex)) }
}

// followNeighbours takes over the state of all links.
func (c *control) followNeighbours() {
	s := &c.switches
	if s.hellos == nil {
		return
	}
	changes := s.table.Update(c.now(), s.hellos.Links())
	if len(changes) == 0 {
		return
	}
	var up []dataplane.Neighbour
	macs := make(map[int]rocev2.MAC)
	for _, a := range s.table.All() {
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
		c.notify(true, "a neighbour switch is down", "port", port, "switch", x.Is.ID, "reason", x.Lost, "session", sessionText(x.Was.Session))
		c.journal.Add(api.Event{Kind: api.EventNeighbour, Reason: fmt.Sprintf("switch %v at port %s is down: %v", x.Is.ID, port, x.Lost)})
	}
	if x.Began() {
		c.notify(false, "a neighbour switch is up", "port", port, "switch", x.Is.ID, "mac", x.Is.MAC, "session", sessionText(x.Is.Session))
		c.journal.Add(api.Event{Kind: api.EventNeighbour, Reason: fmt.Sprintf("switch %v at port %s is up, session %s", x.Is.ID, port, sessionText(x.Is.Session))})
	}
	if x.Began() && x.Is.MTU > 0 && x.Is.MTU != c.ports[x.Is.Port].mtu {
		c.notify(true, "the ends of a link have different MTUs: frames beyond the lower one are lost there", "port", port, "mtu", c.ports[x.Is.Port].mtu, "switch", x.Is.ID, "its_mtu", x.Is.MTU)
	}
}

// sessionText is a session's number, as operators see it at both ends.
func sessionText(s uint64) string { return fmt.Sprintf("%016x", s) }

// followRoutes queues the lookups of the hosts whose routes have changed.
func (c *control) followRoutes() {
	for _, ip := range c.switches.routes.Changed() {
		if h := c.dir.hosts.byIP[ip]; h != nil {
			c.dir.hosts.enqueue(h)
		}
	}
}

// tellHellos gives the hello protocol the state of a port's interface.
func (c *control) tellHellos(pi int, up bool, mtu int) {
	if c.switches.hellos != nil {
		c.switches.hellos.SetLink(pi, up, mtu)
	}
}

// addHellos begins to exchange hellos at a port that a reload has added.
func (c *control) addHellos(p *port, pi int) {
	if c.switches.hellos == nil {
		return
	}
	at := neighbours.Port{Index: pi, Name: p.Name, Ifindex: p.Ifindex, MAC: p.MAC, MTU: p.MTU, Up: p.Up}
	if err := c.switches.hellos.SetPort(at); err != nil {
		c.notify(true, "no hellos are exchanged with neighbour switches at a port: restart gleamd", "port", p.Name, "error", err)
	}
}

// endHellos ends them at a port that a reload removes. The neighbour there is down.
func (c *control) endHellos(p *port, pi int) {
	if c.switches.hellos == nil || !c.switches.hellos.Has(pi) {
		return
	}
	if err := c.switches.hellos.SetPort(neighbours.Port{Index: pi}); err != nil {
		c.notify(true, "hellos go on at a port that is removed", "port", p.Name, "error", err)
	}
	c.followNeighbours() // while the port has its name
}

// moveHellos gives the hello protocol the interface that a port has now.
func (c *control) moveHellos(p *port, pi int) {
	if c.switches.hellos == nil {
		return
	}
	if err := c.switches.hellos.SetInterface(pi, p.Ifindex, p.MAC); err != nil {
		c.notify(true, "no hellos are exchanged with neighbour switches at a port: restart gleamd", "port", p.Name, "error", err)
	}
}

// helloDrops adds the hellos that had no effect to those of the workers, by name.
func (c *control) helloDrops(normal, drops map[string]uint64) {
	if c.switches.hellos == nil {
		return
	}
	for _, l := range c.switches.hellos.Links() {
		helloReasons.AddTo(normal, drops, l.Drops[:])
	}
}
