// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/config/linkrate"
)

// Addresses of a Star. Hosts reach group addresses on-link: both group prefixes
// lie inside the hosts' own.
var (
	StarIPv4        = netip.MustParsePrefix("10.77.0.0/16")
	StarIPv6        = netip.MustParsePrefix("fd77::/64")
	StarGroupsIPv4  = netip.MustParsePrefix("10.77.254.0/24")
	StarGroupsIPv6  = netip.MustParsePrefix("fd77::6c64:0/111")
	StarSwitchIPv4  = netip.MustParseAddr("10.77.255.254")
	StarSwitchIPv6  = netip.MustParseAddr("fd77::ffff")
	starLinkTimeout = 30 * time.Second
)

// MaxHosts is the most hosts a Star has.
const MaxHosts = 128

// HostInterface is the name of the interface of every host of a Star.
const HostInterface = "eth0"

// StarBridge is the name of the bridge in the switch of a Star.
const StarBridge = "br0"

// StarConfig describes a Star.
type StarConfig struct {
	Options             // Name, for a lab that may be kept
	Hosts   int         // 1 to MaxHosts
	MTU     int         // bytes without the Ethernet header; 0 means 1500
	MTUs    map[int]int // the MTUs of the links to single hosts, by number from 1, where it is not MTU
	Queues  int         // queues of each switch port; 0 means 1

	// Rack puts the last Rack hosts behind one port together, which leads to a
	// second bridge. 0 gives every host a port of its own.
	Rack int

	// Rate bounds what each host sends; 0 is without a bound.
	Rate linkrate.Rate

	// Redirects makes what the switch's ports are connected to take frames that XDP
	// redirects there.
	Redirects bool

	// NoBridge leaves the switch's ports out of a bridge: every port has a route
	// to its host, and the switch forwards between them as a router that answers
	// ARP and neighbour solicitations for all hosts. Not together with Rack.
	NoBridge bool
}

// Star is a switch with hosts around it. Host i (from 1) is called "hi" and has
// the addresses 10.77.0.i/16 and fd77::i/64 on eth0; the switch's ports are
// p1, p2, … in a bridge br0, which has 10.77.255.254/16 and fd77::ffff/64.
type Star struct {
	Lab    *Lab
	Switch *Namespace
	Ports  []string // interfaces of the switch, in order
	Hosts  []Host   // Hosts[0] is h1
	Rack   *Namespace
}

// Host is a host of a Star.
type Host struct {
	Name      string // "h1"
	NS        *Namespace
	Interface string // HostInterface
	MAC       net.HardwareAddr
	IPv4      netip.Addr
	IPv6      netip.Addr
	Port      string // the switch's port it is behind
}

// Kinds of interface, as told apart in their MAC addresses.
const (
	macHost   = 0x01
	macPort   = 0x02
	macBridge = 0x03
	macRack   = 0x04 // ports of the rack's bridge
)

// mac returns the deterministic, locally administered address 02:67:6c:KIND:HH:LL.
func mac(kind byte, i int) net.HardwareAddr {
	return net.HardwareAddr{0x02, 0x67, 0x6c, kind, byte(i >> 8), byte(i)}
}

// NewStar makes a Star and waits until its links are up. Close its Lab; on
// error there is nothing to close.
func NewStar(c StarConfig) (*Star, error) {
	switch {
	case c.Hosts < 1 || c.Hosts > MaxHosts:
		return nil, fmt.Errorf("star: %d hosts; want 1 to %d", c.Hosts, MaxHosts)
	case c.Rack < 0 || c.Rack > c.Hosts:
		return nil, fmt.Errorf("star: %d hosts in the rack, of %d", c.Rack, c.Hosts)
	case c.Rack > 0 && c.NoBridge:
		return nil, errors.New("star: a rack needs the switch's ports in a bridge")
	}
	if c.MTU == 0 {
		c.MTU = 1500
	}
	l, err := New(c.Options)
	if err != nil {
		return nil, err
	}
	s := &Star{Lab: l}
	if err := s.setup(c); err != nil {
		return nil, errors.Join(fmt.Errorf("star: %w", err), l.Close())
	}
	return s, nil
}

func (s *Star) setup(c StarConfig) error {
	steps := []func(StarConfig) error{s.buildSwitch, s.buildRack, s.buildHosts}
	if c.NoBridge {
		steps = append(steps, s.route)
	}
	for _, step := range steps {
		if err := step(c); err != nil {
			return err
		}
	}
	all := []*Namespace{s.Switch}
	if s.Rack != nil {
		all = append(all, s.Rack)
	}
	for _, h := range s.Hosts {
		all = append(all, h.NS)
	}
	for _, n := range all {
		if err := n.WaitUp(starLinkTimeout); err != nil {
			return err
		}
	}
	return nil
}

// buildSwitch makes the switch's namespace with its bridge.
func (s *Star) buildSwitch(c StarConfig) error {
	var err error
	if s.Switch, err = s.Lab.Namespace("sw"); err != nil {
		return err
	}
	if c.NoBridge {
		return nil
	}
	if err := s.Switch.Bridge(StarBridge, mac(macBridge, 1), c.MTU); err != nil {
		return err
	}
	for _, p := range []netip.Prefix{
		netip.PrefixFrom(StarSwitchIPv4, StarIPv4.Bits()), netip.PrefixFrom(StarSwitchIPv6, StarIPv6.Bits()),
	} {
		if err := s.Switch.AddAddr(StarBridge, p); err != nil {
			return err
		}
	}
	return nil
}

// buildRack makes the second bridge and its link to the switch's last port.
func (s *Star) buildRack(c StarConfig) error {
	if c.Rack == 0 {
		return nil
	}
	var err error
	if s.Rack, err = s.Lab.Namespace("rack"); err != nil {
		return err
	}
	if err := s.Rack.Bridge(StarBridge, mac(macBridge, 2), c.MTU); err != nil {
		return err
	}
	return s.connect(c, End{NS: s.Rack, Name: "up", MAC: mac(macRack, 0)}, c.Hosts-c.Rack+1)
}

// connect makes port number i of the switch and joins it to far.
func (s *Star) connect(c StarConfig, far End, i int) error {
	port := End{NS: s.Switch, Name: fmt.Sprintf("p%d", i), MAC: mac(macPort, i), Queues: c.Queues}
	if err := Veth(port, far, c.linkMTU(i)); err != nil {
		return err
	}
	if c.Redirects {
		if err := far.NS.SetFeature(far.Name, GRO, true); err != nil {
			return err
		}
	}
	if far.NS == s.Rack {
		if err := s.Rack.Enslave(far.Name, StarBridge); err != nil {
			return err
		}
	}
	if c.NoBridge {
		return nil
	}
	return s.Switch.Enslave(port.Name, StarBridge)
}

func (s *Star) buildHosts(c StarConfig) error {
	rackPort := c.Hosts - c.Rack + 1 // also the first host of the rack
	for i := 1; i <= c.Hosts; i++ {
		h := Host{
			Name: fmt.Sprintf("h%d", i), Interface: HostInterface, MAC: mac(macHost, i),
			IPv4: netip.AddrFrom4([4]byte{10, 77, 0, byte(i)}),
			IPv6: netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x77, 15: byte(i)}),
			Port: fmt.Sprintf("p%d", min(i, rackPort)),
		}
		var err error
		if h.NS, err = s.Lab.Namespace(h.Name); err != nil {
			return err
		}
		end := End{NS: h.NS, Name: h.Interface, MAC: h.MAC}
		if i < rackPort {
			err = s.connect(c, end, i)
		} else {
			err = s.connectRack(c, end, i)
		}
		if err != nil {
			return err
		}
		if err := h.NS.SetFeature(h.Interface, TXChecksum, false); err != nil {
			return err
		}
		for _, p := range []netip.Prefix{
			netip.PrefixFrom(h.IPv4, StarIPv4.Bits()), netip.PrefixFrom(h.IPv6, StarIPv6.Bits()),
		} {
			if err := h.NS.AddAddr(h.Interface, p); err != nil {
				return err
			}
		}
		if c.Rate > 0 {
			if err := h.NS.SetRate(h.Interface, c.Rate); err != nil {
				return err
			}
		}
		s.Hosts = append(s.Hosts, h)
	}
	for i := 1; i <= c.Hosts-max(c.Rack-1, 0); i++ {
		s.Ports = append(s.Ports, fmt.Sprintf("p%d", i))
	}
	return nil
}

// linkMTU is the MTU of the link to host i.
func (c *StarConfig) linkMTU(i int) int {
	if mtu, ok := c.MTUs[i]; ok {
		return mtu
	}
	return c.MTU
}

// connectRack makes a port of the rack's bridge and joins it to a host.
func (s *Star) connectRack(c StarConfig, host End, i int) error {
	port := End{NS: s.Rack, Name: fmt.Sprintf("r%d", i), MAC: mac(macRack, i)}
	if err := Veth(port, host, c.linkMTU(i)); err != nil {
		return err
	}
	return s.Rack.Enslave(port.Name, StarBridge)
}

// Config returns the lines of gleamd's configuration file that follow from the
// topology: its ports and group prefixes.
func (s *Star) Config() string {
	text := "ports:\n"
	for _, p := range s.Ports {
		text += "  - name: " + p + "\n"
	}
	return text + fmt.Sprintf("group_prefixes:\n  - %s\n  - %s\n", StarGroupsIPv4, StarGroupsIPv6)
}

// Close closes the lab.
func (s *Star) Close() error { return s.Lab.Close() }
