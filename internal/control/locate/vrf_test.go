// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package locate

import (
	"slices"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/gleam-rdma/gleam/internal/dataplane/iface"
)

// The tables for members are those of the ports' VRFs: of the port itself, of its bridge, and of a
// VLAN interface on top. (What the kernel has in them: test/rxe/kinds.sh.)
func TestTablesOfPorts(t *testing.T) {
	at := func(index, master, parent int) netlink.LinkAttrs {
		return netlink.LinkAttrs{Index: index, MasterIndex: master, ParentIndex: parent}
	}
	links := iface.Links{
		1: &netlink.Veth{LinkAttrs: at(1, 20, 0)},
		2: &netlink.Veth{LinkAttrs: at(2, 10, 0)}, 10: &netlink.Bridge{LinkAttrs: at(10, 21, 0)},
		3: &netlink.Veth{LinkAttrs: at(3, 11, 0)}, 11: &netlink.Bridge{LinkAttrs: at(11, 0, 0)}, 12: &netlink.Vlan{LinkAttrs: at(12, 22, 11)},
		4:  &netlink.Veth{LinkAttrs: at(4, 0, 0)},
		20: &netlink.Vrf{LinkAttrs: at(20, 0, 0)}, 21: &netlink.Vrf{LinkAttrs: at(21, 0, 0)}, 22: &netlink.Vrf{LinkAttrs: at(22, 0, 0)},
	}
	for _, c := range []struct {
		ports []int
		want  []int
	}{
		{[]int{4}, nil}, {nil, nil}, {[]int{9}, nil}, {[]int{1}, []int{20}}, {[]int{2}, []int{21}}, {[]int{3}, []int{22}},
		{[]int{1, 2, 3}, []int{20, 21, 22}}, {[]int{4, 2}, []int{0, 21}},
	} {
		ports := make(map[int]bool)
		for _, p := range c.ports {
			ports[p] = true
		}
		l := &Locator{tables: tablesOf(links, ports)}
		if got := l.VRFs(); !slices.Equal(got, c.want) {
			t.Errorf("ports %v: VRFs %v, want %v", c.ports, got, c.want)
		}
	}
}
