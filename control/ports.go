// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/control/locate"
	"github.com/gleam-rdma/gleam/dataplane"
)

// port is what the control loop has of a port of the data plane.
type port struct {
	dataplane.Port
	mtu             int  // the MTU in use
	reportedUp      bool // the state that the operator was last told
	partialReported bool // the operator was told of partial checksums
	allow           *config.Allow
	bridgeState     locate.BridgePort // the port's state at its bridge
}

// portsOf returns the ports of the data plane, which has those of cfg.
func portsOf(plane *dataplane.Plane, cfg *config.Config) (list []*port) {
	for i, p := range plane.Ports() {
		list = append(list, &port{Port: p, mtu: p.MTU, reportedUp: p.Up, allow: &cfg.Ports[i].Allow})
	}
	return list
}
