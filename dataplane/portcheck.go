// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"errors"
	"fmt"
	"slices"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"

	"github.com/gleam-rdma/gleam/config"
)

// findPort returns the interface of a port and the receive queues to bind, or why
// the interface cannot be that port, as far as that can be told without touching it.
func findPort(c *config.Port) (netlink.Link, []int, error) {
	link, err := netlink.LinkByName(c.Name)
	var missing netlink.LinkNotFoundError
	if errors.As(err, &missing) {
		return nil, nil, fmt.Errorf("port %s: there is no interface of this name here: %s", c.Name, interfaceHint())
	}
	if err != nil {
		return nil, nil, fmt.Errorf("port %s: %w", c.Name, err)
	}
	a := link.Attrs()
	if a.EncapType != "ether" || len(a.HardwareAddr) != 6 {
		return nil, nil, fmt.Errorf("port %s: not an Ethernet interface (%s): group packets need one", c.Name, a.EncapType)
	}
	n := rxQueues(link)
	queues := c.Queues
	if queues == nil {
		for q := range n {
			queues = append(queues, q)
		}
	}
	if last := slices.Max(queues); last >= n {
		return nil, nil, fmt.Errorf("port %s: queue %d: the interface uses %d RX queues, numbered from 0 (see `ethtool -l %s`)", c.Name, last, n, c.Name)
	}
	return link, queues, nil
}

// rxQueues returns how many receive queues the interface uses. Netlink only
// tells how many were allocated, and AF_XDP cannot bind to one that is not in
// use: a plain veth allocates one for each CPU and uses one. Drivers that do not
// know of channels (ETHTOOL_GCHANNELS) use what they allocated.
func rxQueues(link netlink.Link) int {
	allocated := max(1, link.Attrs().NumRxQueues)
	e, err := ethtool.NewEthtool()
	if err != nil {
		return allocated
	}
	defer e.Close()
	c, err := e.GetChannels(link.Attrs().Name)
	if err != nil || c.RxCount+c.CombinedCount == 0 {
		return allocated
	}
	return min(allocated, int(c.RxCount+c.CombinedCount))
}

// driverOf names the driver of an interface, as ethtool -i does; empty if it does
// not say.
func driverOf(name string) string {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return ""
	}
	defer e.Close()
	d, _ := e.DriverName(name)
	return d
}

// interfaceHint lists the Ethernet interfaces that do exist.
func interfaceHint() string {
	links, err := netlink.LinkList()
	if err != nil {
		return "look at `ip link`"
	}
	hint := "existing ones are"
	for _, l := range links {
		if len(l.Attrs().HardwareAddr) == 6 {
			hint += " " + l.Attrs().Name
		}
	}
	return hint
}
