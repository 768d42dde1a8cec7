// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"net/netip"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/envelope/cm"
)

// Groups that the first member's REQ makes, under a key that may register groups. Such a group
// ends with its last connection.

// createByREQ makes the group of x.out.Creation, and has the REQ passed to the manager again.
func (c *control) createByREQ(from, group netip.Addr, mad []byte) {
	x := &c.connections
	asked := x.out.Creation
	if err := c.openByREQ(asked); err != nil {
		x.manager.Refuse(c.now(), from, group, mad, err.Error(), &x.out)
		return
	}
	x.manager.Input(c.now(), from, group, mad, &x.out)
	if x.manager.IsVacant(group) {
		x.vacant = append(x.vacant, group)
	}
}

// openByREQ opens the group that a REQ makes, or says why the REQ may not make it.
func (c *control) openByREQ(asked *cm.Creation) error {
	u := c.connections.byREQ[asked.Key]
	if p := c.registrar.CheckCreation(envelope.KeyID(asked.Key), asked.Group, asked.Expect, u.groups, u.members); p != nil {
		return p
	}
	g := &api.CreateGroup{Group: asked.Group, Port: asked.Port, Expect: asked.Expect, Key: asked.Key}
	if asked.Window.Len > 0 {
		g.Window = &api.Window{Len: asked.Window.Len}
	}
	g.Default()
	if err := g.Validate(); err != nil {
		return err
	}
	if err := c.openGroup(g, true); err != nil {
		return err
	}
	c.notify(false, "a member's REQ has made a group by RDMA-CM", "group", g.Group, "port", g.Port, "expected", g.Expect, "key", g.Key, "member", asked.Member)
	return nil
}

// closeVacant closes the groups made by REQs whose last connection has ended.
func (c *control) closeVacant() {
	x := &c.connections
	for len(x.vacant) > 0 {
		ip := x.vacant[0]
		if x.vacant = x.vacant[1:]; x.manager.IsVacant(ip) {
			c.closeConnections(ip)
			c.notify(false, "the group that a member's REQ had made has ended: its last connection has", "group", ip)
		}
	}
}

// usageByREQ is the number of groups that REQs have made under one key, and of the members that
// they expect.
type usageByREQ struct{ groups, members int }

// count adds sign times the group to the usage of its key.
func (x *connections) count(made *created, sign int) {
	if !made.byREQ {
		return
	}
	u := x.byREQ[made.asked.Key]
	u.groups += sign
	u.members += sign * made.asked.Expect
	if x.byREQ[made.asked.Key] = u; u == (usageByREQ{}) {
		delete(x.byREQ, made.asked.Key)
	}
}
