// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/internal/config"
	"github.com/gleam-rdma/gleam/internal/control/neighbours"
	"github.com/gleam-rdma/gleam/internal/dataplane/iface"
	"github.com/gleam-rdma/gleam/internal/rocev2"
)

// usualPMTU is the path MTU that programs use by default.
const usualPMTU = 1024

// Finding is a property of this machine that keeps the switch, or groups, from working.
// If Fatal is set, the switch does not start.
type Finding struct {
	Check   string // that has found it
	Fatal   bool
	Port    string // empty: not about one port
	Text    string
	Cost    string // what comes of it; empty if Text contains it
	Command string // repairs it, for a shell
	Remedy  string // in words; empty if Text or Command contains it

	watched bool // a running switch watches it, and says so itself
}

// String returns the finding in a line.
func (f Finding) String() string {
	s := f.Text
	if f.Port != "" {
		s = "port " + f.Port + ": " + s
	}
	if r := f.repair(); r != "" {
		s += ": " + r
	}
	return s
}

// repair returns command and remedy in a line.
func (f *Finding) repair() string {
	if f.Command != "" && f.Remedy != "" {
		return f.Command + ", " + f.Remedy
	}
	return f.Command + f.Remedy
}

// Checks that findings of this package are of.
const (
	CheckInterfaces = "interfaces"
	CheckSwitchID   = "switch-id"
	CheckLinks      = "links"
	CheckXDP        = "xdp-programs"
	CheckMTU        = "mtu"
	CheckRoutes     = "routes"
	CheckPrefixes   = "group-prefixes"
	CheckFastPath   = "fast-path"
	CheckStateFile  = "state-file"
)

// hostNetwork is the kernel's network configuration, in the network namespace of the
// calling thread.
type hostNetwork struct {
	links  map[int]netlink.Link // by index
	addrs  []netlink.Addr
	routes []netlink.Route // unicast, also of IPv6
}

// Check looks for problems that would keep a switch with configuration cfg from working
// here. It changes nothing and needs no privilege.
func Check(cfg *config.Config) (found []Finding) {
	for i := range cfg.Ports {
		if _, _, err := iface.Find(&cfg.Ports[i]); err != nil {
			found = append(found, Finding{Check: CheckInterfaces, Fatal: true, Text: err.Error()})
		}
	}
	if len(cfg.Switch.Keys) > 0 {
		if _, err := neighbours.ID(&cfg.Switch); err != nil {
			found = append(found, Finding{Check: CheckSwitchID, Fatal: true, Text: err.Error()})
		}
	}
	s, err := readHostNetwork()
	if err != nil {
		return append(found, Finding{Check: CheckRoutes, Text: fmt.Sprintf("addresses and routes are not checked: %v", err)})
	}
	return append(append(found, s.check(cfg)...), s.checkFastPath(cfg)...)
}

// checkFastPath returns what keeps groups from the fast path, if they may take it.
func (s *hostNetwork) checkFastPath(cfg *config.Config) []Finding {
	if cfg.FastPath == config.FastPathOff {
		return nil
	}
	h, done := readFastHost()
	defer done()
	links := make([]netlink.Link, len(cfg.Ports))
	for i := range cfg.Ports {
		links[i] = s.link(cfg.Ports[i].Name)
	}
	return h.check(cfg, links, iface.Driver)
}

// readHostNetwork reads the configuration from the kernel.
func readHostNetwork() (*hostNetwork, error) {
	s := &hostNetwork{links: make(map[int]netlink.Link)}
	links, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	for _, l := range links {
		s.links[l.Attrs().Index] = l
	}
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
	}
	return s, nil
}

// check returns the problems of the ports that exist.
func (s *hostNetwork) check(cfg *config.Config) (found []Finding) {
	for i := range cfg.Ports {
		if link := s.link(cfg.Ports[i].Name); link != nil {
			found = append(found, s.checkPort(link, s.above(link.Attrs().Index), cfg.GroupPrefixes)...)
		}
	}
	return append(found, s.checkPrefixes(cfg.Ports, cfg.GroupPrefixes)...)
}

// checkPrefixes returns the problems of group prefixes at the ports that exist.
func (s *hostNetwork) checkPrefixes(ports []config.Port, prefixes []netip.Prefix) (found []Finding) {
	var all []int // the ports, and the interfaces on top of them
	for i := range ports {
		if link := s.link(ports[i].Name); link != nil {
			all = append(all, s.above(link.Attrs().Index)...)
		}
	}
	if len(all) == 0 {
		return nil
	}
	for _, p := range prefixes {
		found = append(found, s.checkPrefix(p, all)...)
	}
	return found
}

// checkPort checks one port and the interfaces on top of it.
func (s *hostNetwork) checkPort(link netlink.Link, above []int, prefixes []netip.Prefix) (found []Finding) {
	a := link.Attrs()
	warn := func(f Finding) { f.Port = a.Name; found = append(found, f) }
	switch {
	case a.RawFlags&unix.IFF_UP == 0:
		warn(Finding{Check: CheckLinks, Text: "port is down", Cost: noMembers, Command: fmt.Sprintf("ip link set %s up", a.Name)})
	case !iface.Running(a):
		warn(Finding{Check: CheckLinks, Text: "port is down: the interface has no carrier", Cost: noMembers, Remedy: "plug it in, or look at the other end of the link"})
	}
	if x := a.Xdp; x != nil && x.Attached {
		f := Finding{
			Check: CheckXDP, Text: "an XDP program is attached, another gleamd's perhaps: a second one cannot be", Cost: "gleamd does not start",
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

// checkPrefix checks whether hosts and groups of a prefix can reach each other.
func (s *hostNetwork) checkPrefix(p netip.Prefix, all []int) (found []Finding) {
	four := p.Addr().Is4()
	onLink := false
	for _, a := range s.addrs {
		net, ok := prefixOf(a.IPNet)
		if !ok || net.Addr().Is4() != four {
			continue
		}
		if p.Contains(net.Addr()) {
			found = append(found, Finding{
				Check: CheckPrefixes, Cost: "that address does not answer as this machine",
				Command: fmt.Sprintf("ip address del %s dev %s", a.IPNet, s.name(a.LinkIndex)),
				Text:    fmt.Sprintf("address %s of %s is inside group prefix %s: whoever sends RoCEv2 there reaches groups, not this machine", net.Addr(), s.name(a.LinkIndex), p),
				Remedy:  "and choose another address or prefix",
			})
		}
		if slices.Contains(all, a.LinkIndex) && net.Bits() <= p.Bits() && net.Masked().Contains(p.Addr()) {
			onLink = true
		}
	}
	family := "IPv6"
	if four {
		family = "IPv4"
	}
	switch {
	case !slices.ContainsFunc(s.routes, func(r netlink.Route) bool { return isIPv4(r) == four && leadsThrough(r, all) }):
		found = append(found, Finding{
			Check: CheckPrefixes, Cost: "registrations of groups there are rejected",
			Text:   fmt.Sprintf("no %s route leads through any port: no member of a group in %s is found", family, p),
			Remedy: fmt.Sprintf("give this switch %s addresses, or take the prefix out of group_prefixes", family),
		})
	case !onLink:
		found = append(found, Finding{
			Check: CheckPrefixes, Cost: "hosts without one cannot join, nor send",
			Text:   fmt.Sprintf("group prefix %s is in no subnet of the ports: hosts reach its groups only if they have a route", p),
			Remedy: fmt.Sprintf("at each host: ip route add %s dev INTERFACE", p),
		})
	}
	return found
}

// link returns the interface of that name, or nil.
func (s *hostNetwork) link(name string) netlink.Link {
	for _, l := range s.links {
		if l.Attrs().Name == name {
			return l
		}
	}
	return nil
}

func (s *hostNetwork) name(index int) string {
	if l := s.links[index]; l != nil {
		return l.Attrs().Name
	}
	return fmt.Sprintf("interface %d", index)
}

// above returns the interface itself, the bridge that it is a port of, and the VLAN
// interfaces on top of these: whichever of them a route names, package locate finds the
// way down to the port.
func (s *hostNetwork) above(index int) []int {
	found := []int{index}
	for i := 0; i < len(found); i++ {
		if m := s.links[s.links[found[i]].Attrs().MasterIndex]; m != nil && m.Type() == "bridge" && !slices.Contains(found, m.Attrs().Index) {
			found = append(found, m.Attrs().Index)
		}
		for _, j := range s.sorted() {
			if l := s.links[j]; l.Type() == "vlan" && l.Attrs().ParentIndex == found[i] && !slices.Contains(found, j) {
				found = append(found, j)
			}
		}
	}
	return found
}

func (s *hostNetwork) sorted() (indexes []int) {
	for i := range s.links {
		indexes = append(indexes, i)
	}
	slices.Sort(indexes)
	return indexes
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

func isIPv4(r netlink.Route) bool { return r.Family == unix.AF_INET }

// prefixOf returns an interface's address with the length of its subnet.
func prefixOf(n *net.IPNet) (netip.Prefix, bool) {
	if n == nil {
		return netip.Prefix{}, false
	}
	a, ok := netip.AddrFromSlice(n.IP)
	bits, _ := n.Mask.Size()
	return netip.PrefixFrom(a.Unmap(), bits), ok
}
