// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package iface reads what the kernel says of the interfaces that are ports of the switch:
// which interface has a configured name, its receive queues, its driver, and whether it
// is running. The data plane opens ports with it, and the control plane checks a
// configuration with it. It changes nothing.
package iface

import (
	"errors"
	"fmt"
	"slices"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/internal/config"
)

// Find returns the interface of a port and the receive queues to bind. The error says
// why the interface cannot be that port, as far as can be found out without changing it.
func Find(c *config.Port) (netlink.Link, []int, error) {
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

// Driver returns the name of an interface's driver, as ethtool -i does; empty if the
// driver does not give it.
func Driver(name string) string {
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

// Running reports whether an interface is enabled and has a carrier. Not every driver has
// an operational state beside its carrier; the kernel maintains IFF_RUNNING for all of
// them.
func Running(a *netlink.LinkAttrs) bool {
	const want = unix.IFF_UP | unix.IFF_RUNNING
	return a.RawFlags&want == want
}
