// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/internal/control/location"
	"github.com/gleam-rdma/gleam/rocev2"
)

// linksChanged applies the state of the ports' interfaces, and reports changes. asked are
// the interfaces whose states these are.
func (c *control) linksChanged(asked []location.Port, states []locate.Link) {
	c.hooks.onLinkChange()
	for pi, p := range c.ports {
		if p.Name == "" || asked[pi].Name != p.Name || asked[pi].Ifindex != p.Ifindex {
			continue // no port, or another one since
		}
		s := &states[pi]
		up, mtu := s.Up && !p.bridgeState.Blocked, s.MTU
		blocked := p.blocked
		p.blocked = s.Up && p.bridgeState.Blocked
		c.switches.SetLink(pi, s.Up, mtu)
		presence, err := c.plane.SetUp(pi, up)
		if err != nil {
			return
		}
		up = up && presence == dataplane.Present
		was := p.reportedUp
		p.reportedUp = up
		if was != up {
			c.dir.hosts.Repin(p.Ifindex)
		}
		switch {
		case presence == dataplane.Lost:
			p.life.apply(c.now(), portVanished, 0, "")
			c.notify(true, "port is gone: its interface was deleted or moved away; one of its name will be taken up again", "port", p.Name)
			if was {
				p.wentDown()
				c.portChanged(p, "gone: its interface was deleted or moved away")
			}
		case up && !was:
			c.notify(false, "port is up", "port", p.Name)
			c.portChanged(p, "up")
			c.announcePort(pi)
		case was && p.blocked, p.blocked && !blocked:
			c.notify(false, "port is blocked by its bridge (spanning tree, or disabled): groups take no part in this link until the bridge forwards there", "port", p.Name)
			c.portChanged(p, "blocked by its bridge")
		case was && !up:
			c.notify(true, "port is down: packets for it are dropped and counted as port_down", "port", p.Name)
			p.wentDown()
			c.portChanged(p, "down")
		}
		if presence != dataplane.Present {
			c.reopenPort(pi, s)
		} else if why := p.outgrown(s); why != "" {
			c.reopenChanged(pi, why)
			continue
		} else if mtu > 0 && s.MAC != locate.MAC(p.MAC) {
			c.macChanged(pi, s.MAC)
		}
		if mtu = p.usableMTU(mtu); mtu > 0 && mtu != p.mtu {
			c.mtuChanged(pi, mtu)
		}
	}
}

// outgrown returns why an open port is to be opened again, as its interface has changed; empty: it stays as it is. The
// ports of a data plane without interfaces have no program.
func (p *port) outgrown(s *locate.Link) string {
	if p.life.phase != portOpen || p.Program == nil {
		return ""
	}
	x := p.Program
	return outgrown(&p.Port, p.config.Queues, x.Mode() == bpf.Native, x.Frags(), x.NativeError() != nil, s)
}

// macChanged follows a change of the MAC address of a port's interface: frames leave from it,
// and hosts are told that group addresses have it.
func (c *control) macChanged(pi int, mac locate.MAC) {
	p := c.ports[pi]
	c.notify(false, "the MAC address of a port has changed", "port", p.Name, "mac", rocev2.MAC(mac), "old_mac", p.MAC)
	if c.plane.SetMAC(pi, rocev2.MAC(mac)) != nil {
		return
	}
	p.MAC = rocev2.MAC(mac)
	c.hooks.onPortState(pi)
	c.switches.Move(pi, p.Ifindex)
	c.announcePort(pi)
}

// usableMTU returns the MTU to use for a port whose interface has the given one: longer
// packets need several buffers, which only ports that were opened with them receive.
func (p *port) usableMTU(mtu int) int {
	if p.MaxMTU > 0 {
		return min(mtu, p.MaxMTU)
	}
	return mtu
}

// mtuChanged gives workers and registrations the new MTU of port pi, and has the groups reported
// whose copies do not fit any more, or fit again.
func (c *control) mtuChanged(pi, mtu int) {
	p := c.ports[pi]
	c.notify(mtu < p.mtu, "the MTU of a port has changed", "port", p.Name, "mtu", mtu, "old_mtu", p.mtu)
	if c.plane.SetMTU(pi, mtu) != nil {
		return
	}
	p.mtu = mtu
	addSweep(&c.kernel.rechecks, pi)
}

// nextRecheck returns when the next group of a port that has changed is to be checked: now, if there is any.
func (c *control) nextRecheck() (at time.Duration, ok bool) { return 0, len(c.kernel.rechecks) > 0 }

// continueRechecks checks groups of ports that have changed: a port with 100,000 of them does not hold up the loop.
func (c *control) continueRechecks() {
	for looks, checked := 0, 0; looks < sweepGroups && checked < recheckGroups && len(c.kernel.rechecks) > 0; looks++ {
		c.lookAtNext(&c.kernel.rechecks, func(g *group, pi int) {
			if !slices.ContainsFunc(g.slots, func(s slot) bool { return c.dir.portOf(&s) == pi }) {
				return
			}
			checked++
			_ = g.handle.RefreshIsolation() // an error: the switch has stopped
			c.checkIsolation(g)
			c.checkPMTU(g)
		})
	}
}

// checkPMTU finds out whether the longest copies of g fit the ports of its members, and
// reports a change.
func (c *control) checkPMTU(g *group) {
	need := g.reg.PathMTU + rocev2.MaxHeaders(g.reg.Group.Is4())
	narrow := ""
	for i := range g.slots {
		s := &g.slots[i]
		if pi := c.dir.portOf(s); !s.gone && pi >= 0 && c.ports[pi].mtu < need {
			narrow = fmt.Sprintf("packets of up to %d bytes do not fit port %s, whose MTU is %d: longer copies to %s are dropped (%s); raise the MTU, or register the group with a path MTU of %d",
				need, c.ports[pi].Name, c.ports[pi].mtu, s.record.IP, dataplane.FrameTooLong, pathMTUWithin(c.ports[pi].mtu, g.reg.Group.Is4()))
			break
		}
	}
	was := g.mtuText
	g.mtuText = narrow
	switch {
	case narrow != "" && was == "":
		c.notify(true, "the MTU of a member's port is too small for the group", "group", g.reg.Group, "reason", narrow)
		c.journal.Add(api.Event{Kind: api.EventMTU, Group: g.reg.Group, Reason: narrow})
	case narrow == "" && was != "":
		c.notify(false, "the MTUs of all members' ports are sufficient again", "group", g.reg.Group)
		c.journal.Add(api.Event{Kind: api.EventMTU, Group: g.reg.Group, Reason: "packets of all lengths fit all ports again"})
	}
}

// pathMTUWithin returns the largest path MTU whose packets fit the given MTU.
func pathMTUWithin(mtu int, v4 bool) int {
	for _, p := range []int{4096, 2048, 1024, 512} {
		if p+rocev2.MaxHeaders(v4) <= mtu {
			return p
		}
	}
	return 256
}

// bridgeChanged gives workers and control loop the new state of a port at its bridge.
func (e *Engine) bridgeChanged(pi int, now locate.BridgePort) {
	e.plane.SetIsolated(pi, now.Isolated)
	e.control.do(func() {
		c := e.control
		p := c.ports[pi]
		p.bridgeState = now
		c.hooks.onPortState(pi)
		c.kernel.linksDue = true
		if p.Bridge != now.Bridge {
			p.Bridge = now.Bridge
			c.dir.hosts.Repin(p.Ifindex) // the bridge has its forwarding entries
		}
		addSweep(&c.kernel.rechecks, pi)
	})
}

// checkIsolation finds out whether members of g are behind several isolated ports, and
// tells the operator if that has changed: data of such a member goes to no receiver.
func (c *control) checkIsolation(g *group) {
	var names []string
	for i := range g.slots {
		s := &g.slots[i]
		if pi := c.plane.PortIndex(s.at().Ifindex); !s.gone && pi >= 0 && c.ports[pi].bridgeState.Isolated && !slices.Contains(names, c.ports[pi].Name) {
			names = append(names, c.ports[pi].Name)
		}
	}
	why := ""
	if len(names) > 1 {
		slices.Sort(names)
		why = fmt.Sprintf("members are behind the isolated ports %s: what they send goes to nobody (%s); a source has to be behind another port", strings.Join(names, ", "), dataplane.Isolated)
	}
	if was := g.isolationText; was != why {
		g.isolationText = why
		if why != "" {
			c.notify(true, "members of a group may not send", "group", g.reg.Group, "reason", why)
		}
	}
}
