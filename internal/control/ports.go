// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/internal/control/location"
)

// port is what the control loop has of a slot of the data plane, and of the port in it.
type port struct {
	dataplane.Port
	life            portLife
	config          config.Port // the configuration, with the rate in use
	mtu             int         // the MTU in use
	reportedUp      bool        // the state that the operator was last told
	downs           uint64      // times that it went down
	lastDown        time.Time   // the time when it went down last; zero: never
	partialReported bool        // the operator was told of partial checksums
	allow           *config.Allow
	bridgeState     locate.BridgePort // the port's state at its bridge
	blocked         bool              // true: it has a carrier, and its bridge does not forward there
}

// isBlocked reports whether the port is down for its bridge alone.
func (p *port) isBlocked() bool { return p.blocked && p.life.phase == portOpen }

// portsOf returns the slots of the data plane, whose first ones have the ports of cfg.
func portsOf(plane *dataplane.Plane, cfg *config.Config) (list []*port) {
	for i, p := range plane.Ports() {
		x := &port{Port: p, mtu: p.MTU, reportedUp: p.Up, allow: &config.Allow{}}
		if i < len(cfg.Ports) {
			x.config, x.allow = cfg.Ports[i], &cfg.Ports[i].Allow
			x.life.apply(0, portAdded, 0, "")
		}
		list = append(list, x)
	}
	return list
}

// countDevices adds the kernel's counters of the interfaces. An interface that has vanished has
// none.
func (e *Engine) countDevices(list []api.Port) {
	if e.devices == nil {
		return // in tests
	}
	for i := range list {
		if list[i].Ifindex == 0 {
			continue
		}
		if c, err := e.devices.Counters(list[i].Ifindex); err == nil {
			list[i].Device = (*api.DeviceCounters)(c)
		}
	}
}

// bridged is what package location has of a port at a bridge.
func (p *port) bridged() location.BridgedPort {
	return location.BridgedPort{Name: p.Name, Ifindex: p.Ifindex, Program: p.Program, Allow: p.allow}
}

// hostPorts is what package location sees of the ports.
type hostPorts struct {
	plane *dataplane.Plane
	list  []*port
}

func (x hostPorts) Len() int              { return len(x.list) }
func (x hostPorts) Index(ifindex int) int { return x.plane.PortIndex(ifindex) }

func (x hostPorts) Port(i int) location.Port {
	p := x.list[i]
	return location.Port{Name: p.Name, Ifindex: p.Ifindex, VLAN: p.VLAN, Bridge: p.Bridge, Up: p.reportedUp}
}
