// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package iface reads what the kernel says of the interfaces that are ports of the switch:
// which interface has a configured name, whether its kind can be a port and how, its receive
// queues, its driver, and whether it is running. The data plane opens ports with it, and the control plane checks a
// configuration with it. It changes nothing.
package iface

import (
	"errors"
	"fmt"
	"slices"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/config"
)

// Found is the interface of a configured port.
type Found struct {
	Link   netlink.Link
	Queues []int          // receive queues to bind
	Mode   config.XDPMode // the mode that the XDP program is to be attached in
	Kind   *Kind
}

// Find returns the interface of a port; mode is that of the configuration. The error says
// why the interface cannot be that port, as far as can be found out without changing it.
func (l Links) Find(c *config.Port, mode config.XDPMode) (f Found, err error) {
	link := l.Named(c.Name)
	if link == nil {
		return f, fmt.Errorf("port %s: there is no interface of this name here: %s", c.Name, l.hint())
	}
	if err := l.CheckKind(link, mode); err != nil {
		return f, fmt.Errorf("port %s: %w", c.Name, err)
	}
	n := rxQueues(link)
	queues := c.Queues
	if queues == nil {
		for q := range n {
			queues = append(queues, q)
		}
	}
	if last := slices.Max(queues); last >= n {
		return f, fmt.Errorf("port %s: queue %d: the interface uses %d RX queues, numbered from 0 (see `ethtool -l %s`)", c.Name, last, n, c.Name)
	}
	return Found{Link: link, Queues: queues, Mode: l.ModeAt(link, mode), Kind: l.Kind(link)}, nil
}

// Channels asks drivers how many receive queues their interfaces use.
type Channels struct{ ethtool *ethtool.Ethtool }

// OpenChannels opens a socket in the calling thread's network namespace.
func OpenChannels() (*Channels, error) {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return nil, fmt.Errorf("open a socket for ethtool: %w", err)
	}
	return &Channels{e}, nil
}

// Close closes the socket.
func (c *Channels) Close() { c.ethtool.Close() }

// RxQueues returns the number of receive queues that an interface uses. Netlink gives
// only the number of allocated queues, and AF_XDP cannot bind to one that is not in use:
// a plain veth allocates one for each CPU and uses one. Drivers without channels
// (ETHTOOL_GCHANNELS) use all that they allocate. With an error, such as that of a driver that
// resets its device, the number is that of the allocated ones.
func (c *Channels) RxQueues(link netlink.Link) (int, error) {
	a := link.Attrs()
	allocated := max(1, a.NumRxQueues)
	n, err := c.ethtool.GetChannels(a.Name)
	if err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
		return allocated, fmt.Errorf("ask for the channels of %s: %w", a.Name, err)
	}
	if err != nil || n.RxCount+n.CombinedCount == 0 {
		return allocated, nil
	}
	return min(allocated, int(n.RxCount+n.CombinedCount)), nil
}

// rxQueues is RxQueues by a socket of its own. With an error it is the number of allocated queues, of which AF_XDP
// refuses those that are not in use.
func rxQueues(link netlink.Link) int {
	c, err := OpenChannels()
	if err != nil {
		return max(1, link.Attrs().NumRxQueues)
	}
	defer c.Close()
	n, _ := c.RxQueues(link)
	return n
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

// hint lists the Ethernet interfaces that exist.
func (l Links) hint() string {
	var names string
	for _, i := range l.Sorted() {
		if a := l[i].Attrs(); len(a.HardwareAddr) == 6 {
			names += " " + a.Name
		}
	}
	if names == "" {
		return "there is none here but lo"
	}
	return "existing ones are" + names
}
