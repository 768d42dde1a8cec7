// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink"

	"github.com/gleam-rdma/gleam/config"
)

// checkPorts returns what keeps the configured interfaces from being ports. It
// changes nothing and needs no privilege.
func checkPorts(cfg *config.Config) (errs []error) {
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		link, err := netlink.LinkByName(p.Name)
		var missing netlink.LinkNotFoundError
		if errors.As(err, &missing) {
			errs = append(errs, fmt.Errorf("port %s: there is no interface of this name here; see `ip link`", p.Name))
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("port %s: %w", p.Name, err))
			continue
		}
		a := link.Attrs()
		if a.EncapType != "ether" || len(a.HardwareAddr) != 6 {
			errs = append(errs, fmt.Errorf("port %s: not an Ethernet interface (%s); group packets need one", p.Name, a.EncapType))
		}
		if n := max(1, a.NumRxQueues); len(p.Queues) > 0 && slices.Max(p.Queues) >= n {
			errs = append(errs, fmt.Errorf("port %s: queue %d: the interface has %d RX queues, numbered from 0", p.Name, slices.Max(p.Queues), n))
		}
	}
	return errs
}
