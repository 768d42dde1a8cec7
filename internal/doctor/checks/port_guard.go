// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/gleam-rdma/gleam/bpf"
)

// OwnFrame is what it means that the port guard drops a frame with the MAC address of a port.
const OwnFrame = "the last one has the MAC address of a port of this switch: its announcements come back, since this port and that one lead to one network, or a host forges its address"

// Guarded is a port of a gleamd that runs, with what its guard has dropped lately.
type Guarded struct {
	Port    string
	MAC     string
	Blocked bool // its bridge does not forward there
	Drops   []GuardDrop
}

// GuardDrop are the frames that the guard of a port has dropped for a reason.
type GuardDrop struct {
	Reason bpf.Reason
	Frames uint64 // frames dropped since gleamd started
	MAC    string // the sender's of the last one
}

// CheckGuards checks that no host behind the ports sends from, or answers for, addresses in a
// group prefix: the log of the port guard tells it of each reason. A switch that knows no host's
// address cannot find it before.
func CheckGuards(o *Outcome, ports []Guarded) {
	own := func(mac string) bool { return slices.ContainsFunc(ports, func(p Guarded) bool { return p.MAC == mac }) }
	var found []Finding
	for i := range ports {
		p := &ports[i]
		var said, macs []string
		back := true
		for _, d := range p.Drops {
			if !d.Reason.IsGroupSender() || p.Blocked && own(d.MAC) {
				continue // announcements of other ports, by a second link: the bridge blocks it for that
			}
			back = back && own(d.MAC)
			said = append(said, fmt.Sprintf("%d %s", d.Frames, d.Reason))
			if who := d.MAC + addressesOf(d.MAC); !slices.Contains(macs, who) {
				macs = append(macs, who)
			}
		}
		if len(said) == 0 {
			continue
		}
		f := Finding{
			Port: p.Port, Severe: true,
			Text:   fmt.Sprintf("the port guard drops frames from addresses in group_prefixes (%s), the last from %s: a host has an address within group_prefixes, or somebody attacks", strings.Join(said, ", "), strings.Join(macs, " and ")),
			Cost:   "if it is a host's address, other hosts do not find that host by ARP or neighbour discovery: unicast between them is lost",
			Remedy: "group_prefixes in which no host has an address, and a reload; or another address of that host: ip address there has those that it has",
		}
		if back {
			f.Severe, f.Text = false, fmt.Sprintf("the port guard drops frames from addresses in group_prefixes (%s): %s", strings.Join(said, ", "), OwnFrame)
			f.Cost, f.Remedy = "frames of groups may come twice", "take one of the links away, or have the bridge block it (spanning tree)"
		}
		found = append(found, f)
	}
	o.add(CheckPortGuard, found...)
}

// addressesOf names the IP addresses that the machine's neighbour table has at a MAC address.
func addressesOf(mac string) string {
	list, err := netlink.NeighList(0, netlink.FAMILY_ALL)
	at, err2 := net.ParseMAC(mac)
	if err != nil || err2 != nil {
		return ""
	}
	var known []string
	for i := range list {
		if ip, ok := netip.AddrFromSlice(list[i].IP); ok && slices.Equal(list[i].HardwareAddr, at) {
			known = append(known, ip.Unmap().String())
		}
	}
	if len(known) == 0 {
		return ""
	}
	return " (" + some(known) + ")"
}
