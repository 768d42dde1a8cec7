// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"errors"
	"fmt"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/rocev2"
)

// linksChanged applies the state of the ports' interfaces, and reports changes.
func (c *control) linksChanged(states []portState) {
	c.onLinkChange()
	for pi, p := range c.workers.ports {
		up, mtu := states[pi].up && !p.bridgeState.Blocked, states[pi].mtu
		var gone, lost bool
		if !c.workers.all[c.workers.txWorker(pi)].do(func() {
			gone = p.vanished
			lost = !gone && len(p.rxSockets) > 0 && errors.Is(p.rxSockets[0].State(), xsk.ErrGone)
		}) {
			return
		}
		ok := true
		switch {
		case gone:
			up = false
		case lost:
			up = false
			ok = c.workers.pauseAll(func() { c.workers.closePort(pi) })
		default:
			ok = c.workers.do(func(w *worker) { w.ports[pi].down = !up })
		}
		if !ok {
			return
		}
		was := p.reportedUp
		p.reportedUp = up
		if was != up {
			c.repinPort(p)
		}
		switch {
		case lost:
			c.notify(true, "port is gone: its interface was deleted or moved away; should it come back, restart gleamd", "port", p.name)
		case up && !was:
			c.notify(false, "port is up", "port", p.name)
			c.announcePort(p)
		case was && !up:
			c.notify(true, "port is down: packets for it are dropped and counted as port_down", "port", p.name)
		}
		if mtu = p.usableMTU(mtu); mtu > 0 && mtu != p.mtu {
			c.mtuChanged(pi, mtu)
		}
	}
}

// usableMTU returns the MTU to use for a port whose interface has the given one: longer
// packets need several buffers, which only ports that were opened with them receive.
func (p *port) usableMTU(mtu int) int {
	if p.maxMTU > 0 {
		return min(mtu, p.maxMTU)
	}
	return mtu
}

// mtuChanged gives workers and registrations the new MTU of port pi, and reports the
// groups whose copies do not fit any more, or fit again.
func (c *control) mtuChanged(pi, mtu int) {
	p := c.workers.ports[pi]
	c.notify(mtu < p.mtu, "the MTU of a port has changed", "port", p.name, "mtu", mtu, "was", p.mtu)
	if !c.workers.do(func(w *worker) { w.ports[pi].mtu = mtu }) {
		return
	}
	done := make(map[*group]bool)
	for h := range c.dir.hosts.byLink[p.ifindex] {
		for g := range h.groups {
			if !done[g] {
				done[g] = true
				c.checkPMTU(g)
			}
		}
	}
}

// checkPMTU finds out whether the longest copies of g fit the ports of its members, and
// reports a change.
func (c *control) checkPMTU(g *group) {
	need := g.reg.PMTU + maxHeaders(g.reg.Group.Is4())
	narrow := ""
	for i := range g.slots {
		s := &g.slots[i]
		if pi := c.firstWorker.portIndex(s.location.Ifindex); !s.gone && pi >= 0 && c.firstWorker.ports[pi].mtu < need {
			narrow = fmt.Sprintf("packets of up to %d bytes do not fit port %s, whose MTU is %d: longer copies to %s are dropped (%s); raise the MTU, or register the group with a path MTU of %d",
				need, c.firstWorker.ports[pi].name, c.firstWorker.ports[pi].mtu, s.record.IP, dropTooLong, pathMTUWithin(c.firstWorker.ports[pi].mtu, g.reg.Group.Is4()))
			break
		}
	}
	was := g.mtuText
	g.mtuText = narrow
	switch {
	case narrow != "" && was == "":
		c.notify(true, "copies of a group do not fit", "group", g.reg.Group, "why", narrow)
		c.journal.add(api.Event{Kind: api.EventMTU, Group: g.reg.Group, Reason: narrow})
	case narrow == "" && was != "":
		c.notify(false, "copies of a group fit again", "group", g.reg.Group)
		c.journal.add(api.Event{Kind: api.EventMTU, Group: g.reg.Group, Reason: "packets of all lengths fit all ports again"})
	}
}

// pathMTUWithin returns the largest path MTU whose packets fit the given MTU.
func pathMTUWithin(mtu int, v4 bool) int {
	for _, p := range []int{4096, 2048, 1024, 512} {
		if p+maxHeaders(v4) <= mtu {
			return p
		}
	}
	return 256
}

// maxHeaders returns the bytes that RoCEv2 adds to the path MTU within an IP packet, at
// most: IP, UDP, BTH, RETH, ImmDt and ICRC.
func maxHeaders(v4 bool) int {
	n := rocev2.UDPLen + rocev2.BTHLen + rocev2.RETHLen + rocev2.ImmDtLen + rocev2.ICRCLen
	if v4 {
		return n + rocev2.IPv4Len
	}
	return n + rocev2.IPv6Len
}
