// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/dataplane/iface"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/location"
	"github.com/gleam-rdma/gleam/internal/doctor/checks"
)

// A reload of the configuration. What can fail comes first: the members behind ports that
// are removed are counted, ports that are added are opened, keys are checked. The rest is one
// closure of the control loop.

// reconfiguration is a reload under way.
type reconfiguration struct {
	e         *Engine
	now, next *config.Config
	force     bool
	removed   []int // slots
	changed   map[int]*config.Port
	reopened  []*config.Port // open ones, which are opened again
	added     map[int]*config.Port
	opened    map[int]*dataplane.Opened
	found     []checks.Finding // about new prefixes
	lost      Lost
}

// Lost is what a reload has ended by force.
type Lost struct {
	Members int          // hosts that were members behind ports that are removed now
	Groups  []netip.Addr // groups that are in none of the group prefixes any more
}

// Reconfigure applies next, which differs from now, the configuration in use, in keys that
// a reload applies alone. What it ends needs force. After an error nothing has changed.
func (e *Engine) Reconfigure(now, next *config.Config, force bool) (_ Lost, err error) {
	r := &reconfiguration{e: e, now: now, next: next, force: force, changed: make(map[int]*config.Port), added: make(map[int]*config.Port), opened: make(map[int]*dataplane.Opened)}
	defer func() {
		if err != nil {
			for _, o := range r.opened {
				o.Discard()
			}
		}
	}()
	rekeyed := !reflect.DeepEqual(now.Switch.Keys, next.Switch.Keys)
	if rekeyed && (len(now.Switch.Keys) == 0 || len(next.Switch.Keys) == 0) {
		return Lost{}, errors.New("switch.keys: a restart begins, and ends, the exchange of hellos: a reload replaces keys by others")
	}
	if !e.control.do(func() { err = r.plan() }) {
		return Lost{}, errStopped
	}
	if err != nil {
		return Lost{}, err
	}
	var links iface.Links // none if the ports are not attached
	if err = e.plane.Within(func() (err error) {
		links, err = iface.ReadLinks()
		return err
	}); err != nil {
		return Lost{}, err
	}
	if err = r.checkMachine(); err != nil {
		return Lost{}, err
	}
	if err = links.CheckTogether(next.Ports); err != nil {
		return Lost{}, &config.Error{Key: "ports", Reason: err.Error()}
	}
	for pi, p := range r.added {
		o := e.plane.OpenPort(pi, p)
		if r.opened[pi] = o; o.Err != nil {
			return Lost{}, refused(p.Name, "%s", o.Err)
		}
	}
	for _, p := range r.reopened {
		if links == nil {
			break // the ports are not attached
		}
		if _, err = links.Find(p, e.cfg.XDPModeOf(p)); err != nil {
			return Lost{}, refused(p.Name, "%s", err)
		}
	}
	if err = r.applyKeys(now, next); err == nil && !e.control.do(func() { err = r.apply() }) {
		err = errStopped
	}
	if err != nil { // the file may be applied in part; keys are all of one file
		return r.lost, errors.Join(err, r.applyKeys(next, now))
	}
	e.report(r.found)
	return r.lost, nil
}

// applyKeys replaces the keys of a configuration by those of another one.
func (r *reconfiguration) applyKeys(from, to *config.Config) (err error) {
	e := r.e
	if !reflect.DeepEqual(from.Envelope.Keys, to.Envelope.Keys) {
		if err := e.setKeys(&to.Envelope); err != nil {
			return err
		}
	}
	if reflect.DeepEqual(from.Switch.Keys, to.Switch.Keys) {
		return nil
	}
	if err := e.switches.Hellos.SetKeys(&to.Switch); err != nil {
		return err
	}
	if err := e.plane.SetSwitchKeys(to.Switch.Keys); err != nil {
		return err
	}
	if !e.control.do(func() { err = e.control.setTrees(&to.Switch) }) {
		return errStopped
	}
	return err
}

// refused is the reason why a reload does not do what the file has of a port. The caller
// knows file and line.
func refused(port, format string, args ...any) error {
	return &config.Error{Key: "ports[" + port + "]", Reason: fmt.Sprintf(format, args...)}
}

// plan finds the slots of the ports that are added, removed or changed, and counts the
// members behind those that are removed, and the groups that lose their prefixes.
func (r *reconfiguration) plan() error {
	c := r.e.control
	if err := errors.Join(r.planPrefixes(), r.checkHosts()); err != nil {
		return err
	}
	var free []int
	for pi, p := range c.ports {
		i := slices.IndexFunc(r.next.Ports, func(x config.Port) bool { return x.Name == p.Name })
		switch {
		case p.Name == "":
			free = append(free, pi)
		case i < 0:
			r.removed = append(r.removed, pi)
			members, groups := c.membersAt(p)
			if r.lost.Members += members; members > 0 && !r.force {
				return refused(p.Name, "%d members of %d groups are behind this port, and are lost if it is removed: remove them first, or use gleam reload --force", members, groups)
			}
		default:
			was := slices.IndexFunc(r.now.Ports, func(x config.Port) bool { return x.Name == p.Name })
			if was < 0 || !reflect.DeepEqual(r.now.Ports[was], r.next.Ports[i]) {
				r.changed[pi] = &r.next.Ports[i]
				if p.life.phase == portOpen && !sameSockets(&p.config, r.changed[pi]) {
					r.reopened = append(r.reopened, r.changed[pi])
				}
			}
		}
	}
	for i := range r.next.Ports {
		p := &r.next.Ports[i]
		if slices.ContainsFunc(c.ports, func(x *port) bool { return x.Name == p.Name }) {
			continue
		}
		if len(free) == 0 {
			return refused(p.Name, "%s", dataplane.ErrNoSlot)
		}
		r.added[free[0]], free = p, free[1:]
	}
	return nil
}

// membersAt counts the hosts that are members behind p, and their groups.
func (c *control) membersAt(p *port) (members, groups int) {
	seen := make(map[netip.Addr]struct{})
	for h := range c.dir.hosts.MembersAt(p.Ifindex) {
		members++
		for group := range h.Groups() {
			seen[group] = struct{}{}
		}
	}
	return members, len(seen)
}

// apply runs on the control loop.
func (r *reconfiguration) apply() error {
	c, plane := r.e.control, r.e.plane
	if err := r.applyPrefixes(); err != nil {
		return err
	}
	for _, pi := range r.removed {
		if err := c.removePort(pi); err != nil {
			return err
		}
	}
	for pi, o := range r.opened {
		if err := c.addPort(pi, r.added[pi], o); err != nil {
			return err
		}
		if saysHello(&r.now.Switch, c.ports[pi].Name) {
			c.switches.Add(c.ports[pi].hellosAt(pi))
		}
		delete(r.opened, pi)
	}
	for pi, x := range r.changed {
		if err := c.changePort(pi, x); err != nil {
			return err
		}
	}
	if err := plane.SetLimits(&r.next.Limits, len(r.next.Ports)); err != nil {
		return err
	}
	c.registrar.SetLimits(envelope.Limits{
		MaxGroups: r.next.Limits.Groups, MaxMembers: r.next.Limits.MembersPerGroup,
		MaxLease: r.next.Envelope.LeaseMax, LocateTimeout: r.next.Envelope.LocateTimeout,
	})
	c.dir.defaults.sourceTimeout = r.next.Limits.SourceTimeout
	if len(r.removed)+len(r.added) > 0 {
		c.kernel.linksDue = true // the locator learns of the ports as well
	}
	return nil
}

// removePort closes the port of a slot. Members behind it have no location any more.
func (c *control) removePort(pi int) error {
	p := c.ports[pi]
	hs := c.dir.hosts.MembersAt(p.Ifindex)
	if err := c.plane.ClosePort(pi); err != nil {
		return err
	}
	c.notify(len(hs) > 0, "port is removed: it is the kernel's again", "port", p.Name, "members", len(hs))
	c.dir.hosts.Repin(p.Ifindex)
	if c.switches.End(pi) {
		c.followNeighbours() // while the port has its name
	}
	*p = port{allow: &config.Allow{}}
	c.hooks.onPortOpened(pi)
	c.rebuildTables(hs)
	c.dir.hosts.LookUpAll(hs)
	return nil
}

// addPort makes an opened port that of a slot. Members that were at its interface before
// have their location again.
func (c *control) addPort(pi int, x *config.Port, o *dataplane.Opened) error {
	p := c.ports[pi]
	at, err := c.plane.Install(o)
	if err != nil {
		return err
	}
	*p = port{Port: at, config: *x, mtu: at.MTU, allow: &x.Allow}
	p.life.apply(c.now(), portAdded, 0, "")
	c.notify(false, "port is added", "port", p.Name, "ifindex", p.Ifindex)
	c.hooks.onPortOpened(pi)
	hs := c.dir.hosts.MembersAt(p.Ifindex)
	c.rebuildTables(hs)
	c.dir.hosts.LookUpAll(hs)
	c.dir.hosts.LookUpLost() // a place may have the port's name
	return nil
}

// changePort gives a port other options. Its rate is that of the file again.
func (c *control) changePort(pi int, x *config.Port) error {
	p := c.ports[pi]
	if err := c.plane.SetOptions(pi, x); err != nil {
		return err
	}
	if !sameSockets(&p.config, x) && p.life.phase == portOpen {
		defer c.reopenChanged(pi, reasonConfigured)
	}
	retagged := p.VLAN != uint16(x.VLAN)
	p.config, p.allow, p.VLAN = *x, &x.Allow, uint16(x.VLAN)
	c.hooks.onPortOpened(pi) // the lists of senders
	if retagged {
		c.rebuildTables(c.dir.hosts.MembersAt(p.Ifindex))
		c.announcePort(pi)
	}
	return nil
}

// rebuildTables has the workers get new tables of the groups of hosts.
func (c *control) rebuildTables(hs map[*location.Host]struct{}) {
	for h := range hs {
		for group := range h.Groups() {
			c.dir.noteStaleTable(c.dir.groups[group])
		}
	}
}
