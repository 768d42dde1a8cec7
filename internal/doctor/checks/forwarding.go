// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/config"
)

// Frames of groups bypass the kernel's firewall. What hosts make groups by, TCP between each
// other, does not.

// pathOfHosts is a family of frames that the kernel forwards between hosts, with the chains that
// they pass.
type pathOfHosts struct {
	family uint8 // the family of the chains
	what   string
	call   string // the setting that has bridges pass frames to the chains: the end of sysctl and attribute; empty: they do in any case
}

var pathsOfHosts = []pathOfHosts{
	{unix.NFPROTO_IPV4, "IPv4", "iptables"}, {unix.NFPROTO_IPV6, "IPv6", "ip6tables"}, {unix.NFPROTO_ARP, "ARP", "arptables"}, {unix.NFPROTO_BRIDGE, "anything", ""},
}

// isIP reports whether the chains are of packets that are routed, too, and may be of the family
// inet.
func (p *pathOfHosts) isIP() bool {
	return p.family == unix.NFPROTO_IPV4 || p.family == unix.NFPROTO_IPV6
}

// checkForwarding checks that the kernel forwards what hosts send each other: no chain on the way
// drops what no rule accepts, and it routes between ports that are in no bridge.
func (m *Machine) checkForwarding(o *Outcome, cfg *config.Config, s *hostNetwork) {
	bridges, routed := s.forwarders(cfg)
	if len(bridges) == 0 && len(routed) < 2 {
		o.skip(CheckForwarding, "the kernel forwards nothing between the ports")
		return
	}
	chains, err := forwardChains()
	if err != nil {
		o.skip(CheckForwarding, "the kernel's firewall cannot be read: "+err.Error())
	}
	for i := range pathsOfHosts {
		p := &pathsOfHosts[i]
		for _, c := range chains {
			if c.drops == "" || c.family != p.family && (c.family != unix.NFPROTO_INET || !p.isIP()) {
				continue
			}
			if why := m.passed(p, bridges, len(routed) > 1); why != "" {
				o.add(CheckForwarding, c.finding(p, why))
			}
		}
		if why := m.passed(p, bridges, len(routed) > 1); p.isIP() && why != "" && slices.Contains(strings.Fields(m.Read("/proc/thread-self/net/"+legacyTables[p.family])), "filter") {
			o.add(CheckForwarding, Finding{
				Note: true, Text: fmt.Sprintf("%s has legacy rules, which are not read here, and frames between hosts pass them: %s", p.call, why),
				Cost: "if they drop, hosts do not make groups", Command: p.call + "-legacy -S FORWARD",
			})
		}
	}
	if len(routed) > 1 {
		m.checkRouting(o, cfg, routed)
	}
}

// forwarders returns the bridges of the ports, and the ports that are in none, by whose addresses
// the kernel routes.
func (s *hostNetwork) forwarders(cfg *config.Config) (bridges []netlink.Link, routed []string) {
	for i := range cfg.Ports {
		x := s.links.Named(cfg.Ports[i].Name)
		if x == nil {
			continue
		}
		b := s.links[x.Attrs().MasterIndex]
		switch {
		case b == nil || b.Type() != "bridge":
			routed = append(routed, cfg.Ports[i].Name)
		case !slices.Contains(bridges, b):
			bridges = append(bridges, b)
		}
	}
	return bridges, routed
}

// legacyTables are the files of the tables that the kernel has for rules that are not those of
// nftables.
var legacyTables = map[uint8]string{unix.NFPROTO_IPV4: "ip_tables_names", unix.NFPROTO_IPV6: "ip6_tables_names"}

// passed returns why frames between hosts pass the chains of p; empty: they do not.
func (m *Machine) passed(p *pathOfHosts, bridges []netlink.Link, routed bool) string {
	if routed && p.isIP() {
		return "the kernel routes between the ports"
	}
	if len(bridges) == 0 {
		return ""
	}
	if p.call == "" {
		return "bridges pass them"
	}
	if key := "bridge-nf-call-" + p.call; m.Read("/proc/sys/net/bridge/"+key) == "1" {
		return "net.bridge." + key + " is 1"
	}
	for _, b := range bridges {
		if name := b.Attrs().Name; m.Read("/sys/class/net/"+name+"/bridge/nf_call_"+p.call) == "1" {
			return "nf_call_" + p.call + " of " + name + " is 1"
		}
	}
	return ""
}

// checkRouting checks that the kernel routes between ports.
func (m *Machine) checkRouting(o *Outcome, cfg *config.Config, routed []string) {
	four, six := false, false
	for _, p := range cfg.GroupPrefixes {
		four, six = four || p.Addr().Is4(), six || !p.Addr().Is4()
	}
	for _, x := range []struct {
		used               bool
		what, file, sysctl string
	}{
		{four, "IPv4", "/proc/sys/net/ipv4/ip_forward", "net.ipv4.ip_forward"},
		{six, "IPv6", "/proc/sys/net/ipv6/conf/all/forwarding", "net.ipv6.conf.all.forwarding"},
	} {
		if x.used && m.Read(x.file) == "0" {
			o.add(CheckForwarding, Finding{
				Text: fmt.Sprintf("the kernel does not route %s, and the ports %s are in no bridge", x.what, strings.Join(routed, ", ")),
				Cost: "hosts behind different ports do not reach each other by TCP, which groups are made by", Command: "sysctl -w " + x.sysctl + "=1",
				Remedy: "or a bridge of the ports; a routing daemon in another place is as good",
			})
		}
	}
}

// finding says that frames of p pass a chain that drops them.
func (c *chain) finding(p *pathOfHosts, why string) Finding {
	f := Finding{
		Severe: true,
		Text:   fmt.Sprintf("chain %s of table %s (%s) %s, and frames between hosts pass it: %s", c.name, c.table, familyName(c.family), c.drops, why),
		Cost:   fmt.Sprintf("groups' own packets bypass it; hosts do not reach each other by %s unless a rule there accepts it, and make groups by TCP", p.what),
		Remedy: "or a rule that accepts what goes between the ports, if there is none yet",
	}
	if key, ok := strings.CutSuffix(why, " is 1"); ok && strings.HasPrefix(key, "net.bridge.") {
		f.Command = "sysctl -w " + key + "=0"
	} else {
		f.Remedy = strings.TrimPrefix(f.Remedy, "or ")
	}
	return f
}

func familyName(family uint8) string {
	switch family {
	case unix.NFPROTO_IPV4:
		return "ip"
	case unix.NFPROTO_IPV6:
		return "ip6"
	case unix.NFPROTO_ARP:
		return "arp"
	case unix.NFPROTO_BRIDGE:
		return "bridge"
	}
	return "inet"
}
