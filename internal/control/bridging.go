// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Frames for groups bypass the bridge that their port belongs to. The switch applies the
// bridge's rules itself: a goroutine reads them from the kernel every bridgePollInterval,
// and when an interface has changed, and updates XDP program, workers and control loop.
// It compares whole states, so that a lost event cannot leave a port open or shut.

// bridgePollInterval is the time between two polls of the bridges' state.
const bridgePollInterval = time.Second

// bridges is the part of locate.Bridges that is used here.
type bridges interface {
	Port(ifindex int) (locate.BridgePort, error)
	Stations(ifindex int, p *locate.BridgePort) ([]locate.Station, error)
	Close()
}

// portPolicy is the part of a port's XDP program that is used here: [bpf.PortProgram].
type portPolicy interface {
	SetPolicy(*bpf.Policy) error
	SetStation(bpf.Station, bool) error
}

// bridgeFollower applies the rules of the bridges to the ports.
type bridgeFollower struct {
	kernel  bridges
	ports   []bridgedPort       // ports by slot
	mu      sync.Mutex          // the lock of rebound and neighbours
	rebound map[int]bridgedPort // slots whose ports have changed since the last poll
	// neighbours are the switches that are up, by slot.
	neighbours map[int]rocev2.MAC
	notify     Notify
	bell       chan struct{} // rings when an interface has changed, for a poll at once
	// apply gives workers and control loop the changed state of port pi.
	apply func(pi int, now locate.BridgePort)
}

// bridgedPort is one port, with the state that its program has.
type bridgedPort struct {
	name             string
	ifindex          int
	program          portPolicy
	allow            *config.Allow
	state            locate.BridgePort
	stations         map[locate.Station]struct{} // the stations of a locked port
	failureReported  bool                        // the operator was told
	overflowReported bool                        // the operator was told that there are more stations than room for them
	fresh            bool                        // the program does not have the policy of state and neighbour yet
	neighbour        rocev2.MAC                  // the MAC of the switch at the port; zeros: none is up
}

// bridgedPortOf returns the follower's state of a port that was just opened.
func bridgedPortOf(p *port) bridgedPort {
	return bridgedPort{
		name: p.Name, ifindex: p.Ifindex, program: p.Program, allow: p.allow, stations: make(map[locate.Station]struct{}), fresh: true,
	}
}

// newBridgeFollower polls for the first time and sets the programs' policies: nothing is
// served before.
func newBridgeFollower(kernel bridges, ports []*port, notify Notify) (*bridgeFollower, error) {
	b := &bridgeFollower{kernel: kernel, bell: make(chan struct{}, 1), notify: notify, rebound: make(map[int]bridgedPort), apply: func(int, locate.BridgePort) {}}
	for i, p := range ports {
		b.ports = append(b.ports, bridgedPortOf(p))
		if p.Name == "" {
			continue
		}
		x := &b.ports[i]
		now, err := kernel.Port(p.Ifindex)
		if err == nil {
			err = b.setPolicy(x, now)
		}
		if err != nil {
			return nil, fmt.Errorf("set the policy of port %s: %w", p.Name, err)
		}
		x.state, x.fresh = now, false
		p.bridgeState = now
		x.report(notify, locate.BridgePort{Bridge: now.Bridge})
	}
	return b, nil
}

// run follows the bridges until ctx ends.
func (b *bridgeFollower) run(ctx context.Context) {
	tick := time.NewTicker(bridgePollInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.bell:
			b.poll()
		case <-tick.C:
			b.poll()
		}
	}
}

// wake causes a poll soon.
func (b *bridgeFollower) wake() {
	select {
	case b.bell <- struct{}{}:
	default: // it rings already
	}
}

// rebind tells the follower of another port, or another interface, in slot pi. It belongs
// to the control loop.
func (b *bridgeFollower) rebind(pi int, p *port) {
	b.mu.Lock()
	b.rebound[pi] = bridgedPortOf(p)
	b.mu.Unlock()
	b.wake()
}

// setNeighbours tells the follower which switches are up, by slot: the policies of their
// ports, which are about hosts, let them send. It belongs to the control loop.
func (b *bridgeFollower) setNeighbours(macs map[int]rocev2.MAC) {
	b.mu.Lock()
	b.neighbours = macs
	b.mu.Unlock()
	b.wake()
}

// takeRebound takes over what rebind and setNeighbours have told. The stations in the program stay as long as
// the program does.
func (b *bridgeFollower) takeRebound() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for pi, p := range b.rebound {
		if was := &b.ports[pi]; was.program == p.program && was.name == p.name {
			p.stations = was.stations
		}
		b.ports[pi] = p
	}
	clear(b.rebound)
	for pi := range b.ports {
		if p, mac := &b.ports[pi], b.neighbours[pi]; p.neighbour != mac {
			p.neighbour, p.fresh = mac, true
		}
	}
}

// poll updates every port. A port whose state cannot be read stays unchanged.
func (b *bridgeFollower) poll() {
	b.takeRebound()
	for pi := range b.ports {
		p := &b.ports[pi]
		if p.name == "" {
			continue
		}
		now, err := b.kernel.Port(p.ifindex)
		if err == nil {
			err = b.setPolicy(p, now)
		}
		if err != nil {
			if !p.failureReported {
				b.notify(true, "the bridge's state of a port is not known: gleamd treats the port as before", "port", p.name, "error", err)
			}
			p.failureReported = true
			continue
		}
		p.failureReported = false
		if now != p.state || p.fresh {
			was := p.state
			p.state, p.fresh = now, false
			b.apply(pi, now)
			p.report(b.notify, was)
		}
	}
}

// setPolicy sets the policy of p's program, if now differs from p.state or p is fresh.
// If the port is locked, it updates the stations that may send.
func (b *bridgeFollower) setPolicy(p *bridgedPort, now locate.BridgePort) error {
	if now.Locked {
		if err := b.setStations(p, &now); err != nil {
			return err
		}
	}
	if now == p.state && !p.fresh {
		return nil
	}
	policy := bpf.Policy{
		Blocked: now.Blocked && now.Bridge != 0, Locked: now.Locked, Filters: now.Filters, PVID: now.PVID, TagType: now.TagType,
		VLANs: bpf.VLANs(now.Own), Addresses: p.allow.Addresses, Neighbour: p.neighbour,
	}
	local := bpf.VLANs(now.Local)
	policy.VLANs.And(&local) // as of a frame for the bridge itself
	if p.allow.MACs != nil {
		policy.MACs = make([][6]byte, 0, len(p.allow.MACs))
		for _, m := range p.allow.MACs {
			policy.MACs = append(policy.MACs, m)
		}
	}
	return p.program.SetPolicy(&policy)
}

// setStations allows the bridge's stations at a locked port to send.
func (b *bridgeFollower) setStations(p *bridgedPort, now *locate.BridgePort) error {
	list, err := b.kernel.Stations(p.ifindex, now)
	if err != nil {
		return err
	}
	if full := len(list) > bpf.MaxStations; full {
		if !p.overflowReported {
			b.notify(true, "a locked port has more hosts than gleamd lets speak: the others' frames are dropped", "port", p.name, "hosts", len(list), "limit", bpf.MaxStations)
		}
		list = list[:bpf.MaxStations]
		p.overflowReported = true
	} else {
		p.overflowReported = false
	}
	there := make(map[locate.Station]struct{}, len(list))
	for _, s := range list {
		there[s] = struct{}{}
	}
	for s := range p.stations {
		if _, ok := there[s]; ok {
			continue
		}
		if err := p.program.SetStation(bpf.Station{MAC: s.MAC, VID: s.VID}, false); err != nil {
			return err
		}
		delete(p.stations, s)
	}
	for s := range there {
		if _, ok := p.stations[s]; ok {
			continue
		}
		if err := p.program.SetStation(bpf.Station{MAC: s.MAC, VID: s.VID}, true); err != nil {
			return err
		}
		p.stations[s] = struct{}{}
	}
	return nil
}

// report tells the operator if the state of a port at its bridge differs from was.
func (p *bridgedPort) report(notify Notify, was locate.BridgePort) {
	now := &p.state
	if describeBridge(now) == describeBridge(&was) && now.Own == was.Own && now.Local == was.Local {
		return
	}
	notify(now.Blocked && !was.Blocked, "the bridge has changed the state of a port: group frames follow", "port", p.name, "bridge", describeBridge(now))
}

// describeBridge describes the state of a port at its bridge.
func describeBridge(p *locate.BridgePort) string {
	if p.Bridge == 0 {
		return "none"
	}
	var words []string
	for _, w := range []struct {
		on   bool
		text string
	}{{p.Blocked, "blocked"}, {!p.Blocked, "forwarding"}, {p.Locked, "locked"}, {p.Isolated, "isolated"}, {p.Filters, "filters VLANs"}} {
		if w.on {
			words = append(words, w.text)
		}
	}
	if p.Filters {
		words = append(words, fmt.Sprintf("PVID %d", p.PVID))
	}
	return strings.Join(words, ", ")
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
			c.repinPort(p) // the bridge has its forwarding entries
		}
		seen := make(map[*group]struct{})
		for h := range c.dir.hosts.byLink[p.Ifindex] {
			for g := range h.groups {
				if _, done := seen[g]; !done {
					seen[g] = struct{}{}
					_ = g.handle.RefreshIsolation() // an error: the switch has stopped
					c.checkIsolation(g)
				}
			}
		}
	})
}

// checkIsolation finds out whether members of g are behind several isolated ports, and
// tells the operator if that has changed: data of such a member goes to no receiver.
func (c *control) checkIsolation(g *group) {
	var names []string
	for i := range g.slots {
		s := &g.slots[i]
		if pi := c.plane.PortIndex(s.location.Ifindex); !s.gone && pi >= 0 && c.ports[pi].bridgeState.Isolated && !slices.Contains(names, c.ports[pi].Name) {
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

// checkAllowed returns an error if the host with address ip may not be a member at its
// location.
func (d *directory) checkAllowed(ip netip.Addr, at *locate.Location) error {
	if pi := d.plane.PortIndex(at.Ifindex); pi >= 0 && !d.ports[pi].allow.Permits(ip, config.MAC(at.MAC)) {
		return fmt.Errorf("%s with MAC address %s is not in the allow lists of port %s", ip, at.MAC, d.ports[pi].Name)
	}
	return nil
}
