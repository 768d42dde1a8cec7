// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package iface

import (
	"errors"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/config"
)

// Links are the interfaces of a network namespace, by index.
type Links map[int]netlink.Link

// ReadLinks reads those of the calling thread's network namespace.
func ReadLinks() (Links, error) { return ReadLinksBy(&netlink.Handle{}) }

// maxReads bounds the reads of a list that changes while the kernel gives it.
const maxReads = 5

// ReadLinksBy reads those of a handle's network namespace.
func ReadLinksBy(h *netlink.Handle) (Links, error) {
	list, err := h.LinkList()
	for n := 1; errors.Is(err, netlink.ErrDumpInterrupted) && n < maxReads; n++ {
		list, err = h.LinkList()
	}
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	l := make(Links, len(list))
	for _, x := range list {
		l[x.Attrs().Index] = x
	}
	return l, nil
}

// Named returns the interface of a name, which may be an alternative one; nil: there is none.
func (l Links) Named(name string) netlink.Link {
	for _, x := range l {
		if a := x.Attrs(); a.Name == name || slices.Contains(a.AltNames, name) {
			return x
		}
	}
	return nil
}

// Name returns the name of an interface, or what stands for it.
func (l Links) Name(index int) string {
	if x := l[index]; x != nil {
		return x.Attrs().Name
	}
	return fmt.Sprintf("interface %d", index)
}

// Sorted returns the indexes in ascending order.
func (l Links) Sorted() (indexes []int) {
	for i := range l {
		indexes = append(indexes, i)
	}
	slices.Sort(indexes)
	return indexes
}

// master returns the interface that x belongs to: its bridge, bond, VRF; nil: none.
func (l Links) master(x netlink.Link) netlink.Link { return l[x.Attrs().MasterIndex] }

// lower returns the interface below x, by which the frames of x go; nil: none here.
func (l Links) lower(x netlink.Link) netlink.Link {
	a := x.Attrs()
	if a.NetNsID >= 0 || !slices.Contains(onTop, x.Type()) {
		return nil // in another namespace; or the peer of a veth
	}
	return l[a.ParentIndex]
}

// onTop are the kinds whose interfaces send by another one, which the kernel names.
var onTop = []string{"vlan", "macvlan", "macvtap", "ipvlan", "ipvtap", "macsec"}

// upper returns the first interface of a kind on top of x; nil: none.
func (l Links) upper(x netlink.Link, kind string) netlink.Link {
	for _, i := range l.Sorted() {
		if y := l[i]; y.Type() == kind && l.lower(y) == x {
			return y
		}
	}
	return nil
}

// members returns the names of the interfaces that belong to x.
func (l Links) members(x netlink.Link) (names []string) {
	for _, i := range l.Sorted() {
		if a := l[i].Attrs(); a.MasterIndex == x.Attrs().Index {
			names = append(names, a.Name)
		}
	}
	return names
}

// Peer returns the other end of a veth, if it is in the same namespace; nil otherwise.
func (l Links) Peer(x netlink.Link) netlink.Link {
	if a := x.Attrs(); x.Type() == "veth" && a.NetNsID < 0 {
		return l[a.ParentIndex]
	}
	return nil
}

// isOver reports whether the frames of y are frames of x as well: x is on top of it, or has it
// as a member, by way of others perhaps.
func (l Links) isOver(x, y netlink.Link) bool {
	over := []netlink.Link{y}
	for i := 0; i < len(over); i++ {
		for _, z := range l {
			if (l.master(over[i]) == z || l.lower(z) == over[i]) && !slices.Contains(over, z) {
				over = append(over, z)
			}
		}
	}
	return slices.Contains(over[1:], x)
}

// CheckTogether returns an error if two ports are one interface, or one of them is on top of
// the other: the kernel runs no XDP program on both, and their frames are the same.
func (l Links) CheckTogether(ports []config.Port) error {
	for i := range ports {
		x := l.Named(ports[i].Name)
		for k := range i {
			y := l.Named(ports[k].Name)
			switch {
			case x == nil || y == nil:
			case x == y:
				return fmt.Errorf("port %s: it is the interface %s, which is port %s already: leave one of the two out", ports[i].Name, x.Attrs().Name, ports[k].Name)
			case l.isOver(x, y):
				return l.together(&ports[i], x, &ports[k])
			case l.isOver(y, x):
				return l.together(&ports[k], y, &ports[i])
			}
		}
	}
	return nil
}

// together is the error of a port whose interface x is on top of another port.
func (l Links) together(over *config.Port, x netlink.Link, under *config.Port) error {
	what, remedy := fmt.Sprintf("it is a %s interface on top of port %s", x.Type(), under.Name), "leave one of the two out"
	switch x.Type() {
	case "bridge":
		what, remedy = fmt.Sprintf("it is the bridge of port %s", under.Name), fmt.Sprintf("leave %s out: the bridge's own ports are ports of the switch", over.Name)
	case "vlan":
		remedy = fmt.Sprintf("leave %s out: %s has its frames too, and sends them with the tag by vlan: %d", over.Name, under.Name, x.(*netlink.Vlan).VlanId)
	case "vrf":
		what, remedy = fmt.Sprintf("it is the VRF of port %s", under.Name), fmt.Sprintf("leave %s out", over.Name)
	}
	return fmt.Errorf("port %s: %s, whose frames are the same, and the kernel runs no XDP program at both: %s", over.Name, what, remedy)
}

// Above returns an interface itself, the bridge that it is a port of, and the VLAN interfaces on
// top of these: whichever of them a route names, package locate finds the way down to the port.
func (l Links) Above(index int) []int {
	found := []int{index}
	for i := 0; i < len(found); i++ {
		x := l[found[i]]
		if x == nil {
			continue
		}
		if m := l.master(x); m != nil && m.Type() == "bridge" && !slices.Contains(found, m.Attrs().Index) {
			found = append(found, m.Attrs().Index)
		}
		for _, j := range l.Sorted() {
			if y := l[j]; y.Type() == "vlan" && y.Attrs().ParentIndex == found[i] && !slices.Contains(found, j) {
				found = append(found, j)
			}
		}
	}
	return found
}

// VRF returns the index of the VRF that an interface, its bridge, or a VLAN interface on top
// belongs to; 0: none.
func (l Links) VRF(index int) int {
	for _, i := range l.Above(index) {
		if x := l[i]; x != nil {
			if m := l.master(x); m != nil && m.Type() == "vrf" {
				return m.Attrs().Index
			}
		}
	}
	return 0
}

// Running reports whether an interface is enabled and has a carrier. Not every driver has
// an operational state beside its carrier; the kernel maintains IFF_RUNNING for all of
// them.
func Running(a *netlink.LinkAttrs) bool {
	const want = unix.IFF_UP | unix.IFF_RUNNING
	return a.RawFlags&want == want
}
