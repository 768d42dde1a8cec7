// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package locate

import (
	"errors"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/dataplane/iface"
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

// The kernel reports a port that enters a VRF as it reports any change of an interface, and the VRF is
// found then.
func TestPortEntersVRF(t *testing.T) {
	x := newWatched(t, nil)
	k := x.Switch.Handle()
	if err := k.LinkAdd(&netlink.Vrf{LinkAttrs: netlink.LinkAttrs{Name: "red"}, Table: 10}); errors.Is(err, unix.EOPNOTSUPP) {
		t.Skip("this kernel has no VRFs (CONFIG_NET_VRF)")
	} else if err != nil {
		t.Fatal(err)
	}
	x.run()
	red, first, second := x.link("red"), x.link("p1").Attrs().Index, x.link("p2").Attrs().Index
	x.do(func(k *netlink.Handle) error { return k.LinkSetMaster(x.link("p1"), red) })
	x.collect("the VRF of a port", func(s *Set) bool {
		if _, reported := s.Links[first]; !reported {
			return false
		}
		if err := x.l.SetPorts([]int{first, second}); err != nil {
			t.Error(err)
		}
		return slices.Equal(x.l.VRFs(), []int{0, red.Attrs().Index})
	})
}
