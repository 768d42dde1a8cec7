// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/mcast"
)

// describeTree makes the API's view of a group's tree at this switch; nil if all its members
// are here.
func (c *control) describeTree(g *group, st *mcast.GroupStatus) *api.Tree {
	if g.reg.Tree == nil || c.switches.Hellos == nil {
		return nil
	}
	t := &api.Tree{Switch: c.switches.Hellos.ID().String(), Parent: c.switches.NameOf(g.reg.Tree.Parent), Legs: []api.TreeLeg{}}
	t.Attempt, _ = c.registrar.Attempt(g.reg.Group)
	legs := make(map[mcast.Neighbor]int)
	leg := func(n mcast.Neighbor) *api.TreeLeg {
		i, ok := legs[n]
		if !ok {
			i = len(t.Legs)
			legs[n] = i
			t.Legs = append(t.Legs, c.switches.DescribeLeg(n))
		}
		return &t.Legs[i]
	}
	for _, n := range g.reg.Tree.Neighbours {
		leg(n.Neighbour).Levels = n.Levels
	}
	for i := range st.Members {
		if i >= len(g.slots) || g.slots[i].gone || g.slots[i].isHere() {
			continue
		}
		l, m := leg(g.slots[i].behind), &st.Members[i]
		l.Members++
		if m.Live {
			l.Live++
		}
		l.Source = l.Source || m.Source
		l.Awaited = l.Awaited || m.HoldsACK
		l.AckPSN, l.Lag, l.Pending = api.PSN(m.Acked), int(m.Lag), pendingName(m.Pending)
		if m.Recovering && l.Pending == "" {
			l.Pending = "repair"
		}
	}
	if st.InTree {
		t.Token = &api.TreeToken{State: st.Token.State.String(), Term: uint64(st.Token.Term), Toward: c.switches.NameOf(st.Token.Toward), Waiting: st.Token.Waiting}
	}
	return t
}
