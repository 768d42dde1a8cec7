// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"github.com/vishvananda/netlink"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/dataplane/iface"
)

// Host looks at this machine, where no gleamd does: the kernel and the NICs in the network
// namespace of the calling thread.
func Host() *api.Kernel {
	k := Look()
	links, err := netlink.LinkList()
	if err != nil {
		return k
	}
	k.Interfaces = Interfaces(nics(links))
	return k
}

// nics are the Ethernet interfaces of devices: the kernel makes all others itself.
func nics(links []netlink.Link) (list []Link) {
	for _, l := range links {
		a := l.Attrs()
		if l.Type() == "device" && a.EncapType == "ether" {
			list = append(list, Link{Name: a.Name, Driver: iface.Driver(a.Name), Index: a.Index})
		}
	}
	return list
}
