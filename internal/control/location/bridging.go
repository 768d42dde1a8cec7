// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"context"
	"fmt"
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

// BridgeTables is the part of locate.Bridges that is used here.
type BridgeTables interface {
	Port(ifindex int) (locate.BridgePort, error)
	Stations(ifindex int, p *locate.BridgePort) ([]locate.Station, error)
	Close()
}

// PortPolicy is the part of a port's XDP program that is used here: [bpf.PortProgram].
type PortPolicy interface {
	SetPolicy(*bpf.Policy) error
	SetStation(bpf.Station, bool) error
}

// Bridging applies the rules of the bridges to the ports.
type Bridging struct {
	kernel  BridgeTables
	ports   []bridgedPort       // ports by slot
	mu      sync.Mutex          // the lock of rebound and neighbours
	rebound map[int]bridgedPort // slots whose ports have changed since the last poll
	// neighbours are the switches that are up, by slot.
	neighbours map[int]rocev2.MAC
	notify     dataplane.Notify
	bell       chan struct{} // rings when an interface has changed, for a poll at once
	// apply gives workers and control loop the changed state of port pi.
	apply func(pi int, now locate.BridgePort)
}

// BridgedPort is a port that was just opened; the zero value is a slot without one.
type BridgedPort struct {
	Name    string
	Ifindex int
	Program PortPolicy
	Allow   *config.Allow
}

// bridgedPort is one port, with the state that its program has.
type bridgedPort struct {
	BridgedPort
	state            locate.BridgePort
	stations         map[locate.Station]struct{} // the stations of a locked port
	failureReported  bool                        // the operator was told
	overflowReported bool                        // the operator was told that there are more stations than room for them
	fresh            bool                        // the program does not have the policy of state and neighbour yet
	neighbour        rocev2.MAC                  // the MAC of the switch at the port; zeros: none is up
}

// opened returns the state of a port that was just opened.
func opened(p BridgedPort) bridgedPort {
	return bridgedPort{BridgedPort: p, stations: make(map[locate.Station]struct{}), fresh: true}
}

// NewBridging polls for the first time and sets the programs' policies: nothing is
// served before.
func NewBridging(kernel BridgeTables, ports []BridgedPort, apply func(pi int, now locate.BridgePort), notify dataplane.Notify) (*Bridging, error) {
	b := &Bridging{kernel: kernel, bell: make(chan struct{}, 1), notify: notify, rebound: make(map[int]bridgedPort), apply: apply}
	for i, p := range ports {
		b.ports = append(b.ports, opened(p))
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
		x.report(notify, locate.BridgePort{Bridge: now.Bridge})
	}
	return b, nil
}

// State returns the state that a port has at its bridge. It is called before Run.
func (b *Bridging) State(pi int) locate.BridgePort { return b.ports[pi].state }

// Close ends the reading of the bridges. Run must have returned.
func (b *Bridging) Close() { b.kernel.Close() }

// Run follows the bridges until ctx ends.
func (b *Bridging) Run(ctx context.Context) {
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

// Wake causes a poll soon.
func (b *Bridging) Wake() {
	select {
	case b.bell <- struct{}{}:
	default: // it rings already
	}
}

// Rebind tells the follower of another port, or another interface, in slot pi. It belongs
// to the control loop.
func (b *Bridging) Rebind(pi int, p BridgedPort) {
	b.mu.Lock()
	b.rebound[pi] = opened(p)
	b.mu.Unlock()
	b.Wake()
}

// SetNeighbours tells the follower which switches are up, by slot: the policies of their
// ports, which are about hosts, let them send. It belongs to the control loop.
func (b *Bridging) SetNeighbours(macs map[int]rocev2.MAC) {
	b.mu.Lock()
	b.neighbours = macs
	b.mu.Unlock()
	b.Wake()
}

// takeRebound takes over what Rebind and SetNeighbours have told. The stations in the program stay as long as
// the program does.
func (b *Bridging) takeRebound() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for pi, p := range b.rebound {
		if was := &b.ports[pi]; was.Program == p.Program && was.Name == p.Name {
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
func (b *Bridging) poll() {
	b.takeRebound()
	for pi := range b.ports {
		p := &b.ports[pi]
		if p.Name == "" {
			continue
		}
		now, err := b.kernel.Port(p.Ifindex)
		if err == nil {
			err = b.setPolicy(p, now)
		}
		if err != nil {
			if !p.failureReported {
				b.notify(true, "the bridge's state of a port is not known: gleamd treats the port as before", "port", p.Name, "error", err)
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
func (b *Bridging) setPolicy(p *bridgedPort, now locate.BridgePort) error {
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
		VLANs: bpf.VLANs(now.Own), Addresses: p.Allow.Addresses, Neighbour: p.neighbour,
	}
	local := bpf.VLANs(now.Local)
	policy.VLANs.And(&local) // as of a frame for the bridge itself
	if p.Allow.MACs != nil {
		policy.MACs = make([][6]byte, 0, len(p.Allow.MACs))
		for _, m := range p.Allow.MACs {
			policy.MACs = append(policy.MACs, m)
		}
	}
	return p.Program.SetPolicy(&policy)
}

// setStations allows the bridge's stations at a locked port to send.
func (b *Bridging) setStations(p *bridgedPort, now *locate.BridgePort) error {
	list, err := b.kernel.Stations(p.Ifindex, now)
	if err != nil {
		return err
	}
	if full := len(list) > bpf.MaxStations; full {
		if !p.overflowReported {
			b.notify(true, "a locked port has more hosts than gleamd lets speak: the others' frames are dropped", "port", p.Name, "hosts", len(list), "limit", bpf.MaxStations)
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
		if err := p.Program.SetStation(bpf.Station{MAC: s.MAC, VID: s.VID}, false); err != nil {
			return err
		}
		delete(p.stations, s)
	}
	for s := range there {
		if _, ok := p.stations[s]; ok {
			continue
		}
		if err := p.Program.SetStation(bpf.Station{MAC: s.MAC, VID: s.VID}, true); err != nil {
			return err
		}
		p.stations[s] = struct{}{}
	}
	return nil
}

// report tells the operator if the state of a port at its bridge differs from was.
func (p *bridgedPort) report(notify dataplane.Notify, was locate.BridgePort) {
	now := &p.state
	if DescribeBridge(now) == DescribeBridge(&was) && now.Own == was.Own && now.Local == was.Local {
		return
	}
	notify(now.Blocked && !was.Blocked, "the bridge has changed the state of a port: group frames follow", "port", p.Name, "bridge", DescribeBridge(now))
}

// DescribeBridge describes the state of a port at its bridge.
func DescribeBridge(p *locate.BridgePort) string {
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
