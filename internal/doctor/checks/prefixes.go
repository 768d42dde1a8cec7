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
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/config"
)

// Prefixes returns the problems of group prefixes at the ports of a switch, in the network
// namespace of the calling thread.
func Prefixes(ports []config.Port, prefixes []netip.Prefix) ([]Finding, error) {
	s, err := readHostNetwork()
	if err != nil {
		return nil, err
	}
	return s.checkPrefixes(ports, prefixes), nil
}

// checkPrefixes returns the problems of group prefixes at the ports that exist.
func (s *hostNetwork) checkPrefixes(ports []config.Port, prefixes []netip.Prefix) (found []Finding) {
	var all []int // the ports, and the interfaces on top of them
	for i := range ports {
		if link := s.links.Named(ports[i].Name); link != nil {
			all = append(all, s.links.Above(link.Attrs().Index)...)
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

// checkPrefix checks whether hosts and groups of a prefix can reach each other.
func (s *hostNetwork) checkPrefix(p netip.Prefix, all []int) (found []Finding) {
	four := p.Addr().Is4()
	if f, ok := s.checkHosts(p, all); ok {
		return []Finding{f}
	}
	onLink := false
	for _, a := range s.addrs {
		net, ok := prefixOf(a.IPNet)
		if !ok || net.Addr().Is4() != four {
			continue
		}
		if p.Contains(net.Addr()) {
			found = append(found, Finding{
				Check: CheckPrefixes, Cost: "that address does not answer as this machine",
				Command: fmt.Sprintf("ip address del %s dev %s", a.IPNet, s.links.Name(a.LinkIndex)),
				Text:    fmt.Sprintf("address %s of %s is inside group prefix %s: whoever sends RoCEv2 there reaches groups, not this machine", net.Addr(), s.links.Name(a.LinkIndex), p),
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

// checkHosts finds hosts behind the ports whose addresses are in a group prefix: subnets of the
// ports and routes by them that are within it, next hops in it, and neighbours.
func (s *hostNetwork) checkHosts(p netip.Prefix, all []int) (f Finding, ok bool) {
	var where, hosts []string
	add := func(list *[]string, text string) {
		if !slices.Contains(*list, text) {
			*list = append(*list, text)
		}
	}
	for _, a := range s.addrs {
		net, ok := prefixOf(a.IPNet)
		if ok && slices.Contains(all, a.LinkIndex) && !net.IsSingleIP() && within(net.Masked(), p) {
			add(&where, fmt.Sprintf("the subnet %s of %s", net.Masked(), s.links.Name(a.LinkIndex)))
		}
	}
	for i := range s.routes {
		r := &s.routes[i]
		if !leadsThrough(*r, all) {
			continue
		}
		if net, ok := prefixOf(r.Dst); ok && net.Bits() > p.Bits() && within(net.Masked(), p) {
			add(&where, fmt.Sprintf("the route to %s", net.Masked()))
		}
		hops := []netlink.NexthopInfo{{Gw: r.Gw}}
		for _, h := range r.MultiPath {
			hops = append(hops, *h)
		}
		for _, h := range hops {
			if gw, ok := netip.AddrFromSlice(h.Gw); ok && p.Contains(gw.Unmap()) {
				add(&hosts, fmt.Sprintf("%s (a next hop of this machine)", gw.Unmap()))
			}
		}
	}
	certain := len(where)+len(hosts) > 0
	for i := range s.neighbours {
		n := &s.neighbours[i]
		const known = netlink.NUD_PERMANENT | netlink.NUD_REACHABLE | netlink.NUD_STALE | netlink.NUD_DELAY | netlink.NUD_PROBE
		if ip, ok := netip.AddrFromSlice(n.IP); ok && n.State&known != 0 && slices.Contains(all, n.LinkIndex) && p.Contains(ip.Unmap()) {
			add(&hosts, fmt.Sprintf("%s (%s at %s)", ip.Unmap(), n.HardwareAddr, s.links.Name(n.LinkIndex)))
		}
	}
	if len(where)+len(hosts) == 0 {
		return f, false
	}
	var learnt []netlink.Neigh // hosts whose addresses are not known
	if len(where) > 0 && s.learnt != nil {
		learnt = s.learnt()
	}
	for i := range learnt {
		n := &learnt[i]
		if n.State&netlink.NUD_PERMANENT == 0 && slices.Contains(all, n.LinkIndex) && !strings.Contains(strings.Join(hosts, " "), n.HardwareAddr.String()) {
			add(&hosts, fmt.Sprintf("%s at %s", n.HardwareAddr, s.links.Name(n.LinkIndex)))
		}
	}
	text := fmt.Sprintf("group prefix %s holds addresses of hosts", p)
	if len(where) > 0 {
		text += ": " + some(where)
	}
	if len(hosts) > 0 {
		text += ", among them the hosts "
		if len(where) == 0 {
			text = strings.TrimSuffix(text, ", among them the hosts ") + ": "
		}
		text += some(hosts)
	}
	return Finding{
		Check: CheckPrefixes, Fatal: true, learnt: !certain, Text: text,
		Cost:   "the switch takes ARP for these hosts as ARP for groups: they lose each other",
		Remedy: "a prefix in which no host has an address, such as an unused part of their subnet, or one outside of it with a route at each host",
	}, true
}

// within reports whether all of a prefix is in another one.
func within(q, p netip.Prefix) bool { return q.Bits() >= p.Bits() && p.Contains(q.Addr()) }

// some joins the first words of a list.
func some(list []string) string {
	const most = 8
	if n := len(list); n > most {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), n-most)
	}
	return strings.Join(list, ", ")
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
