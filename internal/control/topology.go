// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/control/location"
)

// Topology implements api.Backend.
func (e *Engine) Topology() (*api.Topology, error) {
	t := &api.Topology{}
	c := e.control
	if !c.read(func() {
		if c.switches.Describe(t, c.now()) {
			t.NextHops = c.describeHops()
		}
	}) {
		return nil, errStopped
	}
	return t, nil
}

// describeHops makes the API's view of the gateways of hosts that are behind other switches.
func (c *control) describeHops() []api.NextHop {
	type key struct {
		gateway netip.Addr
		ifindex int
	}
	index := make(map[key]int)
	var list []api.NextHop
	for h := range c.dir.hosts.All() {
		for i := range h.Hops() {
			hop := &h.Hops()[i]
			k := key{hop.Gateway, hop.At.Ifindex}
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

func (c *control) describeHop(hop *location.NextHop) api.NextHop {
	a := api.NextHop{Gateway: hop.Gateway}
	if pi := c.plane.PortIndex(hop.At.Ifindex); pi >= 0 {
		a.Port, a.MAC = c.ports[pi].Name, hop.At.MAC.String()
	}
	n, err := c.dir.neighbourOf(hop)
	if err != nil {
		a.Reason = err.Error()
		return a
	}
	a.Switch = c.switches.NameOf(n)
	return a
}
