// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/internal/control/statefile"
)

// After a restart members are where they were, and pinned there, before any frame is served and
// before the kernel is asked for them: its tables may be what a stranger has made of them meanwhile.
// A member whose port or route is missing keeps its place by the name of the port. It gets nothing,
// and nothing counts as its packet, until
//
//   - the port or the route is there again, or
//   - the kernel finds it at the same port, MAC address and VLAN, or by another route, or
//   - it answers an inquiry where the kernel finds it, under the group's key, or
//   - the operator says where it is.
//
// So it is with a host of which the file has no place for a key: files of before version 5 have one
// for a host, without its next hop. It counts for the only key of the host's groups.

// unknownPlaceRemedy is what an operator can do for a member without a place.
const unknownPlaceRemedy = "repair the port or the route; or gleam group move-member with port and MAC address"

// recallHosts makes the hosts of the members that the file has groups of, with their places.
func (c *control) recallHosts(s *statefile.State) []*host {
	keys := make(map[netip.Addr]map[envelope.KeyID]bool)
	for _, g := range s.Groups {
		for i := range g.Registration.Members {
			if g.Place != nil && g.Place.Members[i] >= 0 {
				continue // behind another switch
			}
			ip := g.Registration.Members[i].IP
			if keys[ip] == nil {
				keys[ip] = make(map[envelope.KeyID]bool)
			}
			keys[ip][g.Key] = true
		}
	}
	var hosts []*host
	for _, ip := range slices.SortedFunc(maps.Keys(keys), netip.Addr.Compare) {
		h := c.dir.hosts.byIP[ip]
		if h == nil {
			h = c.dir.hosts.add(ip)
		}
		hosts = append(hosts, h)
		if was := s.Hosts[ip]; was != nil {
			c.recallHost(h, was, keys[ip])
		}
	}
	return hosts
}

// recallConnected gives a host that had connections by RDMA-CM alone the place where it was pinned: what
// the connections' end has to say goes there, and not to where a stranger's frames have it.
func (c *control) recallConnected(ip netip.Addr) {
	c.dir.hosts.setConnected(ip, true)
	h := c.dir.hosts.byIP[ip]
	was := c.keeper.Before().Hosts[ip]
	if was == nil || h.pinned.Known() {
		return
	}
	if held, ok := c.dir.held(&was.Pinned); ok {
		if at, err := c.kernel.locator.Recall(ip, held); err == nil {
			c.dir.setHostLocation(h, at)
		}
	}
}

// recallHost gives h, in groups of these keys, the places that it had.
func (c *control) recallHost(h *host, was *statefile.Host, keys map[envelope.KeyID]bool) {
	recall := func(x *statefile.Location) (locate.Location, error) {
		if held, ok := c.dir.held(x); ok {
			return c.kernel.locator.Recall(h.ip, held)
		}
		return locate.Location{}, errors.New("there is no such port, or the file is an older gleamd's")
	}
	for key := range keys {
		held, ok := was.Locations[key]
		if !ok && was.Locations == nil && len(keys) == 1 {
			held = was.Pinned
		}
		p := h.placeIn(key)
		at, err := recall(&held)
		if err != nil {
			p.held = held
			c.notify(true, "a member's location of before the restart is not known yet: the member gets nothing until it is", "member", h.ip, "port", held.Port, "mac", held.MAC, "error", err, "remedy", unknownPlaceRemedy)
			continue
		}
		c.dir.hosts.setPlace(h, p, at)
	}
	h.pinned, _ = recall(&was.Pinned) // the error is that of a place
}

// unknownPlace says that a member of g has had no place since the restart; "" if it has one.
func (c *control) unknownPlace(g *group, ip netip.Addr) string {
	h := c.dir.hosts.byIP[ip]
	if _, here := g.hosts[ip]; h == nil || !here {
		return ""
	}
	if p := h.places[g.key]; p != nil && p.at.Known() {
		return ""
	}
	return "its port or route of before the restart is missing, so it gets nothing: " + unknownPlaceRemedy
}

// releaseRecalled forgets h if none of its groups could be taken up; otherwise the file has what is
// left of it.
func (c *control) releaseRecalled(h *host, change *statefile.Change) {
	if !h.isKept() {
		c.dir.hosts.forget(h)
		return
	}
	for key, p := range h.places {
		if p.groups == 0 {
			c.dir.hosts.removePlace(h, key)
		}
	}
	change.PutHost(h.ip, c.savedHost(h))
}

// checkRestored returns why a group of before the restart, with members here at places, may not be
// served as the ports are configured now. Whether its address, its size, its path MTU and its key's
// quota are still allowed the registrar knows (Registrar.Restore). A port whose MTU has become too
// small is reported as it is while the switch runs: it may grow again.
func (d *directory) checkRestored(r *envelope.Registration, places []locate.Location) error {
	here := membersHere(r)
	for i := range places {
		if err := d.checkAllowed(here.Members[i].IP, &places[i]); err != nil {
			return err
		}
	}
	if p := d.neverFast(r, here, places); p != nil {
		return fmt.Errorf("fast_path: require: %w", p)
	}
	return nil
}
