// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"fmt"
	"strings"
)

// daemon is one of FRR's, with its configuration.
type daemon struct {
	name   string
	args   string
	config string
}

// daemonsOf returns FRR's daemons of s, in the order in which they are started: zebra first,
// since a daemon that does not find it tries again after 10 seconds.
func (f *Fabric) daemonsOf(s *Switch) []daemon {
	d := []daemon{
		{name: "zebra", args: "-s 16777216", config: s.zebra()},
		{name: "bfdd", config: "bfd\n profile fast\n  detect-multiplier 3\n  receive-interval 100\n  transmit-interval 100\n"},
	}
	if f.routing == BGP {
		return append(d, daemon{name: "bgpd", args: "-p 179", config: s.bgpd()})
	}
	return append(d, daemon{name: "ospfd", config: s.ospfd()}, daemon{name: "ospf6d", config: s.ospf6d()})
}

// zebra keeps the kernel from nexthop objects: after a link has flapped, zebra's groups of
// them lack a path. Unnumbered BGP finds its neighbours by router advertisements.
func (s *Switch) zebra() string {
	var b strings.Builder
	b.WriteString("frr defaults datacenter\nno zebra nexthop kernel enable\n")
	for _, l := range s.links {
		fmt.Fprintf(&b, "interface %s\n no ipv6 nd suppress-ra\n ipv6 nd ra-interval msec 200\nexit\n", l.peer.Name)
	}
	return b.String()
}

// as returns the AS number of s, one of those for private use.
func (s *Switch) as() int { return 4_200_000_000 + s.number }

func (s *Switch) bgpd() string {
	var b strings.Builder
	fmt.Fprintf(&b, `frr defaults datacenter
router bgp %d
 bgp router-id %s
 no bgp ebgp-requires-policy
 bgp bestpath as-path multipath-relax
 timers bgp 1 3
 neighbor fabric peer-group
 neighbor fabric remote-as external
 neighbor fabric timers connect 1
 neighbor fabric advertisement-interval 0
 neighbor fabric bfd profile fast
`, s.as(), s.IPv4)
	for _, l := range s.links {
		fmt.Fprintf(&b, " neighbor %s interface peer-group fabric\n", l.peer.Name)
	}
	b.WriteString(` address-family ipv4 unicast
  redistribute connected
  maximum-paths 64
 exit-address-family
 address-family ipv6 unicast
  redistribute connected
  neighbor fabric activate
  maximum-paths 64
 exit-address-family
`)
	return b.String()
}

// ospfd and ospf6d: links are in area 0 as point-to-point networks, and the switch's own
// networks are passive interfaces. "ospf bfd" stands before its profile, which alone has
// no effect.
func (s *Switch) ospfd() string {
	var b strings.Builder
	for _, l := range s.links {
		fmt.Fprintf(&b, `interface %s
 ip ospf area 0
 ip ospf network point-to-point
 ip ospf bfd
 ip ospf bfd profile fast
 ip ospf retransmit-interval 3
 ip ospf dead-interval minimal hello-multiplier 4
exit
`, l.peer.Name)
	}
	for _, name := range s.ownInterfaces() {
		fmt.Fprintf(&b, "interface %s\n ip ospf area 0\n ip ospf passive\nexit\n", name)
	}
	fmt.Fprintf(&b, `router ospf
 ospf router-id %s
 timers throttle spf 0 50 500
 timers throttle lsa all 0
 timers lsa min-arrival 0
 maximum-paths 64
`, s.IPv4)
	return b.String()
}

func (s *Switch) ospf6d() string {
	var b strings.Builder
	for _, l := range s.links {
		fmt.Fprintf(&b, `interface %s
 ipv6 ospf6 area 0
 ipv6 ospf6 network point-to-point
 ipv6 ospf6 bfd
 ipv6 ospf6 bfd profile fast
 ipv6 ospf6 hello-interval 1
 ipv6 ospf6 dead-interval 3
 ipv6 ospf6 retransmit-interval 3
exit
`, l.peer.Name)
	}
	for _, name := range s.ownInterfaces() {
		fmt.Fprintf(&b, "interface %s\n ipv6 ospf6 area 0\n ipv6 ospf6 passive\nexit\n", name)
	}
	fmt.Fprintf(&b, `router ospf6
 ospf6 router-id %s
 timers throttle spf 0 50 500
 timers lsa min-arrival 0
 maximum-paths 64
`, s.IPv4)
	return b.String()
}

// ownInterfaces returns the interfaces of s with its own networks.
func (s *Switch) ownInterfaces() []string {
	if len(s.Hosts) == 0 {
		return []string{"lo"}
	}
	return []string{"lo", bridge}
}
