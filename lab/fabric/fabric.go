// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/cilium/ebpf"

	"github.com/gleam-rdma/gleam/lab"
)

// Routing is how the switches get their routes.
type Routing string

// Kinds of routing.
const (
	Static Routing = "static" // routes of the fabric's own, which a failure far away does not change
	BGP    Routing = "bgp"    // FRR, unnumbered sessions, an AS for each switch, BFD
	OSPF   Routing = "ospf"   // FRR, OSPFv2 and OSPFv3, BFD
)

// Config describes a Fabric.
type Config struct {
	lab.Options // Name, for a lab that may be kept
	Topology    *Topology
	Routing     Routing // "" means Static
	Count       bool    // frames on every link, for Traffic
	Redirects   bool    // the hosts' interfaces take frames that XDP redirects to them
}

// Fabric is a running network of switches.
type Fabric struct {
	Lab      *lab.Lab
	Switches []*Switch // switches in the topology's order
	Hosts    []*Host

	topology  *Topology
	routing   Routing
	byName    map[string]*Switch
	down      map[Link]bool
	redirects bool           // Config.Redirects
	wires     *lab.Namespace // nil if no link is impaired or counted
	counts    *ebpf.Map      // counts by traffic.go; nil without Config.Count
}

// Switch is a switch of a Fabric. Its interface towards a neighbour has the neighbour's
// name; those to hosts are in the bridge br0.
type Switch struct {
	Name  string
	NS    *lab.Namespace
	IPv4  netip.Addr // the address on its loopback interface
	IPv6  netip.Addr
	Hosts []*Host

	number  int          // the number, from 1
	links   []port       // the links to other switches
	daemons *lab.Process // the supervisor of FRR's daemons; nil with static routes
}

// port is a switch's end of a link to another switch.
type port struct {
	peer *Switch
	IPv4 netip.Prefix // the address of this end; not valid with BGP
	far  netip.Prefix
	mac  net.HardwareAddr // the MAC of the far end
}

// Host is a host of a Fabric.
type Host struct {
	lab.Host
	Switch *Switch
}

// Plain returns hosts as those of any lab.
func Plain(hosts []*Host) (plain []lab.Host) {
	for _, h := range hosts {
		plain = append(plain, h.Host)
	}
	return plain
}

const linkTimeout = 30 * time.Second

// New makes a fabric, and starts its routing. Routes are there once WaitRouted returns.
// Close it; on error there is nothing to close.
func New(c Config) (*Fabric, error) {
	if c.Routing == "" {
		c.Routing = Static
	}
	if c.Routing != Static && c.Routing != BGP && c.Routing != OSPF {
		return nil, fmt.Errorf("fabric: routing %q; want static, bgp or ospf", c.Routing)
	}
	if err := c.Topology.Validate(); err != nil {
		return nil, err
	}
	if c.Routing != Static {
		if err := FRRInstalled(); err != nil {
			return nil, err
		}
	}
	l, err := lab.New(c.Options)
	if err != nil {
		return nil, err
	}
	f := &Fabric{Lab: l, topology: c.Topology, routing: c.Routing, byName: make(map[string]*Switch), down: make(map[Link]bool), redirects: c.Redirects}
	if c.Count {
		if f.counts, err = newCounts(len(c.Topology.Links)); err != nil {
			return nil, errors.Join(fmt.Errorf("fabric: %w", err), l.Close())
		}
	}
	if err := f.setUp(); err != nil {
		return nil, errors.Join(fmt.Errorf("fabric: %w", err), f.Close())
	}
	return f, nil
}

// Close closes the lab.
func (f *Fabric) Close() error { return errors.Join(f.Lab.Close(), f.counts.Close()) }

// Switch returns the switch of that name, nil if there is none.
func (f *Fabric) Switch(name string) *Switch { return f.byName[name] }

// Neighbours returns the names of the switches to which s has a link, which are those of its
// interfaces to them.
func (s *Switch) Neighbours() []string {
	var names []string
	for _, l := range s.links {
		names = append(names, l.peer.Name)
	}
	return names
}

// Ports returns the names of the interfaces of s that frames come in by: to switches, then
// to hosts, which are in the bridge.
func (s *Switch) Ports() []string {
	names := s.Neighbours()
	for _, h := range s.Hosts {
		names = append(names, h.Name)
	}
	return names
}

func (f *Fabric) setUp() error {
	steps := []func() error{f.makeNodes, f.makeLinks, f.waitUp}
	if f.routing == Static {
		steps = append(steps, f.routeStatic)
	} else {
		steps = append(steps, f.startFRR)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fabric) makeNodes() error {
	for i, name := range f.topology.Switches {
		s := &Switch{Name: name, number: i + 1, IPv4: routerID(i + 1), IPv6: loopbackIPv6(i + 1)}
		var err error
		if s.NS, err = f.Lab.Namespace(name); err != nil {
			return err
		}
		if err := s.setUp(); err != nil {
			return err
		}
		f.Switches, f.byName[name] = append(f.Switches, s), s
	}
	for _, name := range f.topology.Hosts {
		h := &Host{Host: lab.Host{Name: name, Interface: HostInterface, Port: name}}
		var err error
		if h.NS, err = f.Lab.Namespace(name); err != nil {
			return err
		}
		f.Hosts = append(f.Hosts, h)
	}
	if f.counts != nil || slices.ContainsFunc(f.topology.Links, Link.impaired) {
		var err error
		if f.wires, err = f.Lab.Namespace(wires); err != nil {
			return err
		}
	}
	return nil
}

// setUp makes the namespace of s a router.
func (s *Switch) setUp() error {
	for _, kv := range [][2]string{
		{"net.ipv4.ip_forward", "1"},
		{"net.ipv6.conf.all.forwarding", "1"},
		{"net.ipv4.fib_multipath_hash_policy", "1"}, // by flow
		{"net.ipv6.fib_multipath_hash_policy", "1"},
		{"net.ipv4.conf.all.rp_filter", "0"}, // paths need not be symmetric
		{"net.ipv4.conf.default.rp_filter", "0"},
		{"net.ipv4.conf.all.ignore_routes_with_linkdown", "1"},
		{"net.ipv4.conf.default.ignore_routes_with_linkdown", "1"},
		{"net.ipv6.conf.all.ignore_routes_with_linkdown", "1"},
		{"net.ipv6.conf.default.ignore_routes_with_linkdown", "1"},
		{"net.ipv6.conf.all.keep_addr_on_down", "1"},
		{"net.ipv6.conf.default.keep_addr_on_down", "1"},
	} {
		if err := s.NS.Sysctl(kv[0], kv[1]); err != nil {
			return err
		}
	}
	for _, a := range []netip.Addr{s.IPv4, s.IPv6} {
		if err := s.NS.AddAddr("lo", netip.PrefixFrom(a, a.BitLen())); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fabric) makeLinks() error {
	for n, l := range f.topology.Links {
		a, b := f.byName[l.A], f.byName[l.B]
		var err error
		switch {
		case a != nil && b != nil:
			err = f.joinSwitches(n, l, a, b)
		case a != nil:
			err = f.joinHost(n, l, a, f.host(l.B))
		default:
			err = f.joinHost(n, l, b, f.host(l.A))
		}
		if err != nil {
			return fmt.Errorf("link %v: %w", l, err)
		}
	}
	return nil
}

func (f *Fabric) host(name string) *Host {
	return f.Hosts[slices.IndexFunc(f.Hosts, func(h *Host) bool { return h.Name == name })]
}

// joinSwitches makes link n, between two switches.
func (f *Fabric) joinSwitches(n int, l Link, a, b *Switch) error {
	endA := lab.End{NS: a.NS, Name: b.Name, MAC: mac(n, 0)}
	endB := lab.End{NS: b.NS, Name: a.Name, MAC: mac(n, 1)}
	if err := f.wire(n, l, endA, endB); err != nil {
		return err
	}
	toA, toB := port{peer: a, mac: endA.MAC}, port{peer: b, mac: endB.MAC}
	if f.routing != BGP {
		toB.IPv4, toA.IPv4 = linkIPv4(n)
		toB.far, toA.far = toA.IPv4, toB.IPv4
		if err := errors.Join(a.NS.AddAddr(b.Name, toB.IPv4), b.NS.AddAddr(a.Name, toA.IPv4)); err != nil {
			return err
		}
	}
	a.links, b.links = append(a.links, toB), append(b.links, toA)
	return nil
}

// joinHost makes link n, between a switch and a host.
func (f *Fabric) joinHost(n int, l Link, s *Switch, h *Host) error {
	if len(s.Hosts) == 0 {
		if err := s.makeBridge(); err != nil {
			return err
		}
	}
	s.Hosts = append(s.Hosts, h)
	h.Switch, h.MAC = s, mac(n, 1)
	v4, v6 := hostsIPv4(s.number, byte(len(s.Hosts))), hostsIPv6(s.number, byte(len(s.Hosts)))
	h.IPv4, h.IPv6 = v4.Addr(), v6.Addr()
	a, b := lab.End{NS: s.NS, Name: h.Name, MAC: mac(n, 0)}, lab.End{NS: h.NS, Name: HostInterface, MAC: h.MAC}
	if l.A == h.Name {
		a, b = b, a
	}
	if err := f.wire(n, l, a, b); err != nil {
		return err
	}
	if err := errors.Join(s.NS.Enslave(h.Name, bridge), h.NS.SetFeature(HostInterface, lab.TXChecksum, false)); err != nil {
		return err
	}
	if err := f.takeRedirects(h.NS, HostInterface); err != nil {
		return err
	}
	for _, p := range []struct{ own, via netip.Prefix }{
		{v4, hostsIPv4(s.number, gateway)}, {v6, hostsIPv6(s.number, gateway)},
	} {
		if err := h.NS.AddAddr(HostInterface, p.own); err != nil {
			return err
		}
		all := netip.PrefixFrom(p.via.Addr(), 0)
		if err := h.NS.AddRoute(all, p.via.Addr(), HostInterface); err != nil {
			return err
		}
	}
	return nil
}

// makeBridge makes the bridge of the switch's hosts. Without an MTU of its own, it has the
// least of its ports.
func (s *Switch) makeBridge() error {
	if err := s.NS.Bridge(bridge, bridgeMAC(s.number), 0); err != nil {
		return err
	}
	return errors.Join(s.NS.AddAddr(bridge, hostsIPv4(s.number, gateway)), s.NS.AddAddr(bridge, hostsIPv6(s.number, gateway)))
}

func (f *Fabric) waitUp() error {
	var all []*lab.Namespace
	for _, s := range f.Switches {
		all = append(all, s.NS)
	}
	for _, h := range f.Hosts {
		all = append(all, h.NS)
	}
	if f.wires != nil {
		all = append(all, f.wires)
	}
	for _, n := range all {
		if err := n.WaitUp(linkTimeout); err != nil {
			return err
		}
	}
	return nil
}
