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

// findPort returns the interface of a port and the receive queues to bind. The error says
// why the interface cannot be that port, as far as can be found out without changing it.
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

// rxQueues returns the number of receive queues that the interface uses. Netlink gives
// only the number of allocated queues, and AF_XDP cannot bind to one that is not in use:
// a plain veth allocates one for each CPU and uses one. Drivers without channels
// (ETHTOOL_GCHANNELS) use all that they allocate.
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

// driverOf returns the name of an interface's driver, as ethtool -i does; empty if the
// driver does not give it.
func driverOf(name string) string {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return ""
	}
	defer e.Close()
	d, _ := e.DriverName(name)
	return d
}

// interfaceHint lists the Ethernet interfaces that exist.
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
