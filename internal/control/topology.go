// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope/hello"
	"github.com/gleam-rdma/gleam/internal/control/neighbours"
)

// Topology implements api.Backend.
func (e *Engine) Topology() (*api.Topology, error) {
	t := &api.Topology{}
	if !e.control.read(func() { e.control.describeSwitches(t) }) {
		return nil, errStopped
	}
	return t, nil
}

// describeSwitches makes the API's view of other switches. It runs on the control loop.
func (c *control) describeSwitches(t *api.Topology) {
	s := &c.switches
	if s.hellos == nil {
		return
	}
	now := c.now()
	t.Switch = s.hellos.ID().String()
	for _, l := range s.hellos.Links() {
		if c.ports[l.Port].Name == "" {
			continue // no port, or one that was removed
		}
		t.Links = append(t.Links, c.describeLink(&l, now))
	}
	for _, a := range s.table.All() {
		if c.ports[a.Port].Name == "" {
			continue
		}
		n := api.NeighbourSwitch{
			Number: uint32(a.Number), Port: c.ports[a.Port].Name, Switch: a.ID.String(), State: api.LinkDown, Reason: a.Reason.String(),
			MAC: a.MAC.String(), MTU: a.MTU, Session: sessionText(a.Session), Age: (now - a.Since).Seconds(), Hold: a.Hold.Seconds(),
		}
		if a.Up {
			n.State = api.LinkUp
		}
		n.API = apiOf(&a)
		t.Neighbours = append(t.Neighbours, n)
	}
	t.NextHops = c.describeHops()
}

// linkStates are the states of adjacencies in the API.
var linkStates = map[hello.State]string{hello.Down: api.LinkDown, hello.Init: api.LinkInit, hello.Up: api.LinkUp}

func (c *control) describeLink(l *neighbours.Link, now time.Duration) api.Link {
	p := c.ports[l.Port]
	a := api.Link{
		Port: p.Name, MAC: p.MAC.String(), MTU: p.mtu, State: linkStates[l.State], Reason: l.Reason.String(),
		Sent: l.Sent, Received: l.Received, NotSent: l.NotSent,
	}
	if l.Drops != ([hello.NumDrops]uint64{}) {
		a.Drops = make(map[string]uint64)
		helloReasons.AddTo(a.Drops, a.Drops, l.Drops[:])
	}
	if x := l.LastDrop; x.Drop != hello.NoDrop {
		a.LastDrop, a.LastDropMAC, a.LastDropAge = x.Drop.Text(), x.From.String(), (now - x.At).Seconds()
	}
	return a
}

// describeHops makes the API's view of the gateways of hosts that are behind other switches.
func (c *control) describeHops() []api.NextHop {
	type key struct {
		gateway netip.Addr
		ifindex int
	}
	index := make(map[key]int)
	var list []api.NextHop
	for _, h := range c.dir.hosts.byIP {
		for i := range h.hops {
			hop := &h.hops[i]
			k := key{hop.gateway, hop.at.Ifindex}
			at, known := index[k]
			if !known {
				at = len(list)
				index[k] = at
				list = append(list, c.describeHop(hop))
			}
			list[at].Hosts++
		}
	}
	slices.SortFunc(list, func(a, b api.NextHop) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), a.Gateway.Compare(b.Gateway))
	})
	return list
}

func (c *control) describeHop(hop *nextHop) api.NextHop {
	a := api.NextHop{Gateway: hop.gateway}
	if pi := c.plane.PortIndex(hop.at.Ifindex); pi >= 0 {
		a.Port, a.MAC = c.ports[pi].Name, hop.at.MAC.String()
	}
	n, err := c.dir.neighbourOf(hop)
	if err != nil {
		a.Reason = err.Error()
		return a
	}
	is, _ := c.switches.table.Find(n)
	a.Switch = is.ID.String()
	return a
}
