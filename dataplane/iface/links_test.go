// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package iface

import (
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
)

// TestAbove: routes may name the port, its bridge, and VLAN interfaces on top of
// either; not a bond, and nothing twice. (Not every kernel has VLAN interfaces.)
func TestAbove(t *testing.T) {
	attrs := func(index, master, parent int) netlink.LinkAttrs {
		return netlink.LinkAttrs{Index: index, MasterIndex: master, ParentIndex: parent}
	}
	s := Links{
		1: &netlink.Veth{LinkAttrs: attrs(1, 10, 0)},
		2: &netlink.Veth{LinkAttrs: attrs(2, 11, 0)},
		3: &netlink.Veth{LinkAttrs: attrs(3, 0, 4)}, // 4 is its peer
		4: &netlink.Veth{LinkAttrs: attrs(4, 0, 3)},
		5: &netlink.Vlan{LinkAttrs: attrs(5, 0, 1)},
		6: &netlink.Vlan{LinkAttrs: attrs(6, 0, 10)},
		7: &netlink.Vlan{LinkAttrs: attrs(7, 10, 6)},

		10: &netlink.Bridge{LinkAttrs: attrs(10, 0, 0)},
		11: netlink.NewLinkBond(attrs(11, 0, 0)),
	}
	for _, c := range []struct {
		index int
		want  []int
	}{
		{1, []int{1, 10, 5, 6, 7}},
		{2, []int{2}},
		{3, []int{3}},
		{10, []int{10, 6, 7}},
	} {
		if got := s.Above(c.index); !slices.Equal(got, c.want) {
			t.Errorf("above %d: %v, want %v", c.index, got, c.want)
		}
	}
}
