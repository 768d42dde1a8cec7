// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/lab"
)

// lan is a bridge in a switch, with hosts behind its ports.
type lan struct {
	sw         *lab.Namespace
	net4, net6 netip.Prefix
	own4, own6 netip.Addr // the addresses of the switch
	routed     bool       // hosts reach groups, and hosts of other switches, by the switch's address
}

// make makes the bridge.
func (n *lan) make(mac net.HardwareAddr) error {
	if err := n.sw.Bridge(bridge, mac, linkMTU(maxHosts)); err != nil {
		return err
	}
	return errors.Join(n.sw.AddAddr(bridge, netip.PrefixFrom(n.own4, n.net4.Bits())), n.sw.AddAddr(bridge, netip.PrefixFrom(n.own6, n.net6.Bits())))
}

// hostAddr is the address of host i in a network.
func hostAddr(p netip.Prefix, i int) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	b[len(b)-1] = byte(i)
	a, _ := netip.AddrFromSlice(b) // of 4 or 16 bytes
	return a
}

// connect makes host i's interface in ns and the switch's port.
func (n *lan) connect(i int, ns *lab.Namespace) (*host, error) {
	h := &host{
		index: i, lan: n, ns: ns, link: fmt.Sprintf("gleamh%d", i), port: fmt.Sprintf("p%d", i), mac: mac(1, i),
		addr4: hostAddr(n.net4, i), addr6: hostAddr(n.net6, i),
	}
	port := lab.End{NS: n.sw, Name: h.port, MAC: mac(2, i)}
	if err := lab.Veth(port, lab.End{NS: ns, Name: h.link, MAC: h.mac}, linkMTU(i)); err != nil {
		return nil, err
	}
	return h, nil
}

// equip enslaves h's port and gives h its addresses.
func (h *host) equip() error {
	if err := h.lan.sw.Enslave(h.port, bridge); err != nil {
		return err
	}
	// An unfinished checksum does not survive XDP.
	if err := h.ns.SetFeature(h.link, lab.TXChecksum, false); err != nil {
		return err
	}
	for _, p := range []netip.Prefix{netip.PrefixFrom(h.addr4, h.lan.net4.Bits()), netip.PrefixFrom(h.addr6, h.lan.net6.Bits())} {
		if err := h.ns.AddAddr(h.link, p); err != nil {
			return err
		}
	}
	return nil
}

// addHost adds a host of rxe to n. The host that comes with an error has an interface.
func (m *machine) addHost(i int, n *lan) (*host, error) {
	h, err := n.connect(i, m.init)
	if err != nil {
		return nil, err
	}
	if err := h.equip(); err != nil {
		return h, err
	}
	if err := m.route(h); err != nil {
		return h, err
	}
	// A full veth ring is an error to rxe that kills the queue pair: wait in a
	// queue instead.
	if err := h.queue("pfifo", "limit", "10000"); err != nil {
		return h, err
	}
	h.rdma = fmt.Sprintf("gleam%d", i)
	if err := netlink.RdmaLinkAdd(h.rdma, "rxe", h.link); err != nil {
		return h, fmt.Errorf("rdma link add %s type rxe netdev %s (is the module rdma_rxe loaded?): %w", h.rdma, h.link, err)
	}
	return h, nil
}

// addSoft adds a host in a namespace of its own, without the kernel's rxe.
func (m *machine) addSoft(i int) error {
	ns, err := m.lab.Namespace("soft")
	if err != nil {
		return err
	}
	if m.soft, err = m.star.connect(i, ns); err != nil {
		return err
	}
	return m.soft.equip()
}

// route sends packets from h's addresses out of h's interface.
func (m *machine) route(h *host) error {
	nl := m.init.Handle()
	link, err := nl.LinkByName(h.link)
	if err != nil {
		return err
	}
	for _, r := range []struct {
		from, gateway netip.Addr
		to            netip.Prefix
		fam           int
	}{{h.addr4, h.lan.own4, h.lan.net4, unix.AF_INET}, {h.addr6, h.lan.own6, h.lan.net6, unix.AF_INET6}} {
		routes := []*netlink.Route{{Dst: ipNet(r.to), Scope: netlink.SCOPE_LINK}}
		if h.lan.routed {
			routes = append(routes, &netlink.Route{Dst: ipNet(netip.PrefixFrom(r.from, 0)), Gw: r.gateway.AsSlice()})
		}
		for _, x := range routes {
			x.LinkIndex, x.Table, x.Family = link.Attrs().Index, firstRule+h.index, r.fam
			if err := nl.RouteAdd(x); err != nil {
				return fmt.Errorf("route for %s: %w", r.from, err)
			}
		}
		rule := netlink.NewRule()
		rule.Family, rule.Priority, rule.Table = r.fam, firstRule+h.index, firstRule+h.index
		rule.Src = ipNet(netip.PrefixFrom(r.from, r.from.BitLen()))
		if err := nl.RuleAdd(rule); err != nil {
			return fmt.Errorf("rule for %s: %w", r.from, err)
		}
		m.undo = append(m.undo, func() error { return nl.RuleDel(rule) })
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Masked().Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
