// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
)

// What the switch alone knows about a refusal: the port behind which a member is, or should be, and
// why it is not found there. The answer on the wire has no room for it; journal, log and operators'
// commands have it.

// refusedText names port and cause of a rejection, behind a semicolon; "": it is not about a place.
func (c *control) refusedText(err error) string {
	var p *envelope.Problem
	if !errors.As(err, &p) {
		return ""
	}
	if p.Reason == envelope.PathMTUMismatch {
		return c.narrowText(int(p.Value))
	}
	h := c.dir.hosts.Of(p.Member.IP)
	if h == nil {
		return ""
	}
	switch p.Reason {
	case envelope.UnknownMemberLocation:
		switch {
		case errors.Is(h.Err(), locate.ErrPending):
			return "; " + h.Err().Error() + ", and no host answers there: see that it is up, and its address"
		case h.Err() != nil:
			return "; " + h.Err().Error()
		}
	case envelope.NotAllowed:
		if err := c.dir.checkAllowed(h.IP(), h.At()); err != nil {
			return "; " + err.Error()
		}
	case envelope.OverlappingMembers:
		for group := range h.Groups() {
			if g := c.dir.groups[group]; g != nil && g.reg.Find(p.Member) >= 0 && p.Value == uint64(envelope.InAnotherGroup) {
				return "; it is in group " + group.String() + c.atText(h.IP())
			}
		}
		return c.atText(h.IP())
	case envelope.UsedNumbers, envelope.BadMember, envelope.NotInTrees:
		return c.atText(h.IP())
	}
	return ""
}

// atText says where the kernel has a host, behind a semicolon; "": it is not known.
func (c *control) atText(ip netip.Addr) string {
	if h := c.dir.hosts.Of(ip.Unmap()); h != nil && c.plane.PortIndex(h.At().Ifindex) >= 0 {
		return "; it is at " + c.dir.hosts.Text(h.At())
	}
	return ""
}

// narrowText names the ports whose MTU has room for no larger path MTU than limit.
func (c *control) narrowText(limit int) string {
	var names []string
	for _, p := range c.ports {
		if p.Name != "" && pathMTUWithin(p.mtu, true) <= limit {
			names = append(names, p.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; the MTU of " + strings.Join(names, ", ") + " has no room for more"
}

// checkAllowed returns an error if the host with address ip may not be a member at its
// location.
func (d *directory) checkAllowed(ip netip.Addr, at locate.Location) error {
	if pi := d.plane.PortIndex(at.Ifindex); pi >= 0 && !d.ports[pi].allow.Permits(ip, config.MAC(at.MAC)) {
		return fmt.Errorf("%s with MAC address %s is not in the allow lists of port %s", ip, at.MAC, d.ports[pi].Name)
	}
	return nil
}
