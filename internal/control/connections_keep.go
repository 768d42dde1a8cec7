// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope/cm"
	"github.com/gleam-rdma/gleam/internal/control/statefile"
)

// Groups that members connect to are kept over a restart with their connections. Where all
// connect to a group that is registered still, they go on. Dialled connections end: what becomes
// of listeners' data is of groups that are not kept.

// keptCreation is what the state file has of a group that members connect to.
type keptCreation struct {
	Group       *api.CreateGroup
	Connections []cm.Kept
	ByREQ       bool `json:",omitempty"` // a member's REQ has made it
}

// The least times between two writes of connections: where a message to a host waits for the
// write, and else.
const (
	keepAwaitedInterval     = 10 * time.Millisecond
	keepConnectionsInterval = 100 * time.Millisecond
)

// unkept are groups whose connections have changed since they were stored, and the write that
// is under way: until it is durable there is no other.
type unkept struct {
	groups   map[netip.Addr]bool
	last     time.Duration // write
	interval time.Duration // the time to the next write
	change   uint64        // the number of the file's change in the write under way; 0: none
}

// delay reports whether a group's connections have changed since they were stored, and has that
// done soon, as a message waits for it.
func (u *unkept) delay(group netip.Addr) bool {
	if !u.groups[group] {
		return false
	}
	u.interval = keepAwaitedInterval
	return true
}

// next returns when connections are to be stored.
func (u *unkept) next() (at time.Duration, ok bool) {
	return u.last + u.interval, len(u.groups) > 0 && u.change == 0
}

// keepCreation has the state file forget a group, or store it with its connections soon.
func (c *control) keepCreation(ip netip.Addr) {
	u := &c.connections.unkept
	if c.keeper.Keeper == nil {
		return
	}
	if u.groups == nil {
		u.groups = make(map[netip.Addr]bool)
	}
	if len(u.groups) == 0 {
		u.interval = keepConnectionsInterval
	}
	u.groups[ip] = true
}

// keepConnections has the connections stored that have changed, when that is due.
func (c *control) keepConnections(now time.Duration) {
	if at, ok := c.connections.unkept.next(); ok && at <= now {
		c.storeConnections(now)
	}
}

// storeConnections has the connections stored that have changed.
func (c *control) storeConnections(now time.Duration) {
	var change statefile.Change
	x := &c.connections
	connections := x.manager.Connections(x.unkept.groups)
	for ip := range x.unkept.groups {
		var b []byte
		if g, ok := x.groups[ip]; ok {
			var err error
			if b, err = json.Marshal(keptCreation{g.asked, connections[ip], g.byREQ}); err != nil {
				c.notify(true, "a group that members connect to is not kept over a restart", "group", ip, "error", err)
			}
		}
		change.SetCreated(ip, b)
		for i := range connections[ip] {
			if h := c.dir.hosts.Of(connections[ip][i].Record.IP); h != nil && h.Pinned().Ifindex != 0 {
				change.PutHost(h.IP(), c.dir.hosts.Saved(h))
			}
		}
	}
	n := c.keeper.Append(&change)
	c.departures.outbox.Determine(x.unkept.groups, n)
	clear(x.unkept.groups)
	x.unkept.last, x.unkept.change = now, n
}

// restoreCreations lets members connect to the groups of before the restart.
func (c *control) restoreCreations(all map[netip.Addr][]byte) {
	for _, ip := range slices.SortedFunc(maps.Keys(all), netip.Addr.Compare) {
		if err := c.restoreCreation(ip, all[ip]); err != nil {
			c.notify(true, "members may not connect any more to a group of before the restart", "group", ip, "error", err, "remedy", "create it again: gleam group create")
		}
		c.keepCreation(ip)
	}
	c.serveConnections()
}

func (c *control) restoreCreation(ip netip.Addr, b []byte) error {
	var k keptCreation
	if err := json.Unmarshal(b, &k); err != nil {
		return fmt.Errorf("its entry in the state file cannot be read: %w", err)
	}
	if k.Group == nil || k.Group.Group != ip {
		return fmt.Errorf("its entry in the state file is of another group")
	}
	l, made, err := creationOf(k.Group)
	if err != nil {
		return err
	}
	if err := c.mayCreate(made, ip); err != nil {
		return err
	}
	made.byREQ, l.Temporary = k.ByREQ, k.ByREQ
	x := &c.connections
	for i := range k.Connections {
		ip := k.Connections[i].Record.IP
		c.dir.hosts.RecallConnected(c.kernel.locator, ip, c.keeper.Before().Hosts[ip])
		defer c.followConnections(ip)
	}
	reg := c.connectedRegistration(ip)
	if err := x.manager.Restore(c.now(), l, reg, k.Connections, &x.out); err != nil {
		return err
	}
	x.add(made)
	c.sendConnections()
	n := 0
	for i := range k.Connections {
		if !k.Connections[i].Waited() {
			n++
		}
	}
	c.notify(false, "members may connect by RDMA-CM again", "group", ip, "port", l.Port, "connections", n, "registered", reg != nil)
	if n > 0 && reg == nil {
		c.journal.Add(api.Event{Kind: api.EventEnded, Group: ip, Reason: fmt.Sprintf("gleamd has restarted, which ends %d connections by RDMA-CM", n)})
	}
	return nil
}

// connectedRegistration returns a registration of before the restart, whose members have
// connected; nil: there is none.
func (c *control) connectedRegistration(ip netip.Addr) *cm.Registration {
	reg, _, live := c.registrar.Group(ip)
	if !live || reg.Master.IsValid() {
		return nil
	}
	return &cm.Registration{QPN: reg.QPN, MTU: reg.PathMTU, Records: slices.Clone(reg.Members)}
}
