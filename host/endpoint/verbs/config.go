// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/gleam-rdma/gleam/host/endpoint"
)

// ErrNotBuilt is what Open returns in a program built without the tag verbs.
var ErrNotBuilt = errors.New("built without libibverbs; build with -tags verbs (and cgo)")

// Config chooses a device. Everything that is given must agree; if more than
// one device does, the first that libibverbs lists is taken. The zero value
// takes the first device that has a RoCEv2 GID for an IP address.
type Config struct {
	Device    string     // RDMA device, such as rxe0 or mlx5_0 [any]
	Interface string     // its network interface, such as eth0 [any]
	LocalIP   netip.Addr // an address that it has a GID for; comes first in Addrs [any]
	Port      uint8      // port of the device, from 1 [the first that agrees]
}

// String describes what is looked for.
func (c Config) String() string {
	var s []string
	if c.Device != "" {
		s = append(s, "RDMA device "+c.Device)
	}
	if c.Interface != "" {
		s = append(s, "interface "+c.Interface)
	}
	if c.LocalIP.IsValid() {
		s = append(s, "address "+c.LocalIP.String())
	}
	if c.Port != 0 {
		s = append(s, fmt.Sprintf("port %d", c.Port))
	}
	if s == nil {
		return "any device"
	}
	return strings.Join(s, ", ")
}

// Open makes a device of what cfg chooses. Interface is looked up in the
// network namespace of the calling thread. An error says which devices there
// are, and why they will not do.
func Open(cfg Config) (endpoint.Device, error) {
	cfg.LocalIP = cfg.LocalIP.Unmap()
	d, err := open(cfg)
	if err != nil {
		return nil, fmt.Errorf("open verbs device (%s): %w", cfg, err)
	}
	return d, nil
}
