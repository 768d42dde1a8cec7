// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"slices"

	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/internal/control/locate"
)

// Ports whose interfaces are deleted and made anew. The state of all ports' interfaces is
// read from the kernel whenever an interface has changed: a port whose interface is gone is
// opened again as soon as there is one of its name. The members behind it keep their
// locations, with the new interface in place of the old one; the locator corrects those
// that have moved meanwhile.

// reopenPort opens the interface of p's name, if it is time to: s is what the kernel has.
func (c *control) reopenPort(pi int, s *locate.Link) {
	p := c.ports[pi]
	e, ifindex := portUnseen, s.Named
	if s.MTU > 0 { // it was closed by reopenChanged
		ifindex = p.Ifindex
	}
	if ifindex != 0 {
		e = portSeen
	}
	if !p.life.apply(c.now(), e, ifindex, "") {
		if at, ok := p.life.next(); ok {
			c.kernel.retryPorts(at)
		}
		return
	}
	cfg := p.config
	go func() {
		o := c.plane.OpenPort(pi, &cfg)
		if !c.do(func() { c.portOpened(pi, o, &cfg) }) {
			o.Discard()
		}
	}()
}

// reopenChanged closes an open port, and has it opened again with the queues and the XDP mode
// that its configuration and its interface have now: its sockets are bound to the one, its program is attached in the other.
func (c *control) reopenChanged(pi int, why string) {
	p := c.ports[pi]
	if c.plane.Detach(pi) != nil {
		return // the switch has stopped
	}
	p.life.apply(c.now(), portVanished, 0, "")
	p.reportedUp = false
	c.notify(false, "port is opened again: what its group traffic loses meanwhile is repaired", "port", p.Name, "reason", why)
	c.kernel.linksDue = true
}

// reasonConfigured is why a reload has a port opened again.
const reasonConfigured = "its configuration has other queues, or another XDP mode"

// outgrown returns why program and sockets of an open port do not serve all that its interface receives now;
// empty: they do. The driver drops frames of several buffers before a native program that takes one,
// be they of groups or not, and a queue without a socket has no way to a worker. Where the MTU has fallen, the driver may
// take the program for one buffer, which the fast path needs; refused says that it took none natively.
func outgrown(p *dataplane.Port, chosen []int, native, severalBuffers, refused bool, s *locate.Link) string {
	switch {
	case native && !severalBuffers && s.MTU > bpf.MaxSingleBufferMTU:
		return fmt.Sprintf("its MTU is %d now, and its program takes frames of up to %d bytes", s.MTU, bpf.MaxSingleBufferMTU)
	case s.MTU > 0 && s.MTU < p.MTU && s.MTU <= bpf.MaxSingleBufferMTU && (native && severalBuffers || refused && p.MTU > ethernetMTU):
		return fmt.Sprintf("its MTU is %d now, and was %d: frames fit into one buffer, as the fast path needs", s.MTU, p.MTU)
	case chosen == nil && s.Queues != 0 && s.Queues != p.Queues:
		return fmt.Sprintf("its interface uses %d receive queues now, and used %d", s.Queues, p.Queues)
	}
	return ""
}

// ethernetMTU is the MTU at which a driver that has native XDP runs a program.
const ethernetMTU = 1500

// sameSockets reports whether two configurations of a port have the same queues and XDP mode.
func sameSockets(a, b *config.Port) bool {
	return (a.Queues == nil) == (b.Queues == nil) && slices.Equal(a.Queues, b.Queues) && a.XDP == b.XDP
}

// portOpened handles the result of reopenPort, which had the configuration cfg.
func (c *control) portOpened(pi int, o *dataplane.Opened, cfg *config.Port) {
	p := c.ports[pi]
	if p.life.phase != portOpening { // removed meanwhile
		go o.Discard()
		return
	}
	if o.Err != nil {
		again := p.life.refusals > 0
		p.life.apply(c.now(), portDenied, 0, o.Err.Error())
		if !again {
			c.notify(true, "a port is not taken up again, although an interface of its name exists: it is tried again at intervals of up to "+lastPortRetry.String(), "port", p.Name, "error", o.Err)
		}
		c.kernel.retryPorts(p.life.retryAt)
		return
	}
	was, mac := p.Ifindex, p.MAC
	port, err := c.plane.Install(o)
	if err != nil {
		return // the switch has stopped
	}
	p.life.apply(c.now(), portOpened, 0, "")
	p.Port, p.reportedUp = port, false
	c.notify(false, "port is taken up again", "port", p.Name, "ifindex", p.Ifindex, "old_ifindex", was, "times", p.life.reopened)
	c.dir.hosts.Rebind(was, p.Ifindex) // the workers' tables have the port's slot, which is the same
	if p.Ifindex != was || p.MAC != mac {
		c.switches.Move(pi, p.Ifindex)
	}
	c.hooks.onPortOpened(pi)
	c.kernel.linksDue = true
	if !sameSockets(cfg, &p.config) { // of a reload since
		c.reopenChanged(pi, reasonConfigured)
	}
}

// serveRetryPorts has the state of the ports read if that is due, and finds the next time.
func (c *control) serveRetryPorts() {
	if c.kernel.portRetryAt == 0 || c.now() < c.kernel.portRetryAt {
		return
	}
	c.kernel.linksDue, c.kernel.portRetryAt = true, 0
}
