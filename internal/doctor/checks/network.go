// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/iface"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/rocev2"
)

// usualPMTU is the path MTU that programs use by default.
const usualPMTU = 1024

// hostNetwork is the kernel's network configuration, in the network namespace of the
// calling thread.
type hostNetwork struct {
	links      iface.Links
	addrs      []netlink.Addr
	routes     []netlink.Route // unicast, also of IPv6
	neighbours []netlink.Neigh
	learnt     func() []netlink.Neigh // what bridges have learnt; nil: nothing
	blocked    func(index int) bool   // a port of a bridge does not forward
}

// readHostNetwork reads the configuration from the kernel.
func readHostNetwork() (*hostNetwork, error) {
	links, err := iface.ReadLinks()
	if err != nil {
		return nil, err
	}
	s := &hostNetwork{links: links}
	if s.addrs, err = netlink.AddrList(nil, netlink.FAMILY_ALL); err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	// All tables: the rules that lead to a table are not checked.
	filter := &netlink.Route{Table: unix.RT_TABLE_UNSPEC, Type: unix.RTN_UNICAST}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		routes, err := netlink.RouteListFiltered(family, filter, netlink.RT_FILTER_TABLE|netlink.RT_FILTER_TYPE)
		if err != nil {
			return nil, fmt.Errorf("list routes: %w", err)
		}
		s.routes = append(s.routes, routes...)
		neighbours, err := netlink.NeighList(0, family)
		if err != nil {
			return nil, fmt.Errorf("list neighbours: %w", err)
		}
		s.neighbours = append(s.neighbours, neighbours...)
	}
	// A stranger can fill forwarding databases: they are read where a finding is to name hosts.
	s.learnt = func() []netlink.Neigh {
		list, _ := netlink.NeighList(0, unix.AF_BRIDGE)
		return list
	}
	return s, nil
}

// check returns the problems of the ports that exist.
func (s *hostNetwork) check(cfg *config.Config) (found []Finding) {
	bridges, err := locate.OpenBridges()
	if err != nil {
		return []Finding{{Check: CheckLinks, Text: err.Error()}}
	}
	defer bridges.Close()
	s.blocked = func(index int) bool {
		p, err := bridges.Port(index)
		return err == nil && p.Bridge != 0 && p.Blocked // an error: it is gone
	}
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		if link := s.links.Named(p.Name); link != nil && s.links.CheckKind(link, cfg.XDPModeOf(p)) == nil {
			found = append(found, s.checkPort(p.Name, link, s.links.Above(link.Attrs().Index), cfg.GroupPrefixes)...)
		}
	}
	return append(found, s.checkPrefixes(cfg.Ports, cfg.GroupPrefixes)...)
}

// checkPort checks one port and the interfaces on top of it.
func (s *hostNetwork) checkPort(port string, link netlink.Link, above []int, prefixes []netip.Prefix) (found []Finding) {
	a := link.Attrs()
	warn := func(f Finding) { f.Port = port; found = append(found, f) }
	switch {
	case a.RawFlags&unix.IFF_UP == 0:
		warn(Finding{Check: CheckLinks, Text: "port is down", Cost: noMembers, Command: fmt.Sprintf("ip link set %s up", a.Name)})
	case !iface.Running(a):
		f := Finding{Check: CheckLinks, Text: "port is down: the interface has no carrier", Cost: noMembers, Remedy: "plug it in, or look at the other end of the link"}
		if peer := s.links.Peer(link); peer != nil && peer.Attrs().RawFlags&unix.IFF_UP == 0 {
			f.Text, f.Command, f.Remedy = f.Text+", since its peer is down", fmt.Sprintf("ip link set %s up", peer.Attrs().Name), ""
		} else if link.Type() == "veth" {
			f.Remedy = "ip link set PEER up, in the namespace of its peer"
		}
		warn(f)
	case s.blocked(a.Index) && s.links[a.MasterIndex].Attrs().RawFlags&unix.IFF_UP != 0:
		warn(Finding{Check: CheckLinks, Note: true, Text: "blocked by the bridge: spanning tree keeps this link in reserve, or the port is disabled", Cost: "no group frames go in or out until the bridge forwards there"})
	}
	if x := a.Xdp; x != nil && x.Attached {
		f := Finding{
			Check: CheckXDP, Severe: true, Text: "an XDP program is attached, another gleamd's perhaps: a second one cannot be", Cost: "gleamd does not start",
			Command: fmt.Sprintf("ip link set dev %s %s off", a.Name, xdpKeyword(x.AttachMode)), Remedy: "or end the program that holds it",
		}
		warn(f)
	}
	if p, need := widest(prefixes); a.MTU < need {
		warn(Finding{
			Check: CheckMTU, Text: fmt.Sprintf("its MTU of %d is too small for groups of path MTU %d in %s", a.MTU, usualPMTU, p), Cost: "groups of that path MTU with members there are rejected",
			Command: fmt.Sprintf("ip link set %s mtu %d", a.Name, need), Remedy: "or register groups with a smaller one (-m at gleam perf)",
		})
	}
	if slices.ContainsFunc(s.routes, func(r netlink.Route) bool { return leadsThrough(r, above) }) {
		return found
	}
	top := s.links[above[len(above)-1]].Attrs()
	where := ""
	for _, i := range above[1:] {
		where += " or " + s.links[i].Attrs().Name
	}
	remedy := fmt.Sprintf("ip address add ADDRESS/LENGTH dev %s", top.Name)
	if top.RawFlags&unix.IFF_UP == 0 {
		remedy = fmt.Sprintf("ip link set %s up; ", top.Name) + remedy
	}
	warn(Finding{
		Check: CheckRoutes, Text: fmt.Sprintf("no route leads through %s%s: members behind it are not found, since their locations are looked up in the kernel", a.Name, where),
		Cost: "registrations with members there are rejected", Command: remedy,
	})
	return found
}

// widest returns the prefix whose groups' longest packets are the longest, with the MTU that
// they need.
func widest(prefixes []netip.Prefix) (p netip.Prefix, need int) {
	for _, q := range prefixes {
		if n := usualPMTU + rocev2.MaxHeaders(q.Addr().Is4()); n > need {
			p, need = q, n
		}
	}
	return p, need
}

const noMembers = "members behind it get nothing"

// xdpKeyword is the word of ip link for a mode that a program is attached in.
func xdpKeyword(mode uint32) string {
	switch mode {
	case nl.XDP_ATTACHED_SKB:
		return "xdpgeneric"
	case nl.XDP_ATTACHED_HW:
		return "xdpoffload"
	}
	return "xdp"
}

// leadsThrough reports whether members can be behind route r by one of the
// interfaces. Every interface has a route of link-local addresses.
func leadsThrough(r netlink.Route, interfaces []int) bool {
	if r.Dst != nil && (r.Dst.IP.IsLinkLocalUnicast() || r.Dst.IP.IsMulticast()) {
		return false
	}
	if slices.Contains(interfaces, r.LinkIndex) {
		return true
	}
	return slices.ContainsFunc(r.MultiPath, func(n *netlink.NexthopInfo) bool { return slices.Contains(interfaces, n.LinkIndex) })
}
