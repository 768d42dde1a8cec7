// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package iface

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/gleam-rdma/gleam/config"
)

// Kind is what an interface is to the kernel, and what it belongs to. The first entry of Kinds
// that fits an interface decides whether it can be a port, and how.
type Kind struct {
	Name    string         // the name in docs/PORTS.md
	Mode    config.XDPMode // the mode that works: XDPAuto (native where the driver can), or XDPGeneric
	Refused string         // why it cannot be a port; empty: it is served
	How     string         // how it is served, or what is to be a port in its place

	fits func(*placed) bool
	// instead names what is to be a port in its place, on this machine; nil: How does.
	instead func(*placed) string
}

// placed is an interface among the others.
type placed struct {
	netlink.Link
	links  Links
	master netlink.Link // nil: none
}

// Kinds are all kinds of interfaces.
var Kinds = []Kind{
	{
		Name: "no Ethernet: `lo`, WireGuard, tun, PPP, IPIP, GRE, IPoIB", Refused: "not an Ethernet interface",
		How:  "the Ethernet interface that hosts are behind, or a VXLAN over a tunnel",
		fits: func(p *placed) bool { return p.Attrs().EncapType != "ether" || len(p.Attrs().HardwareAddr) != 6 },
	},
	{
		Name: "dummy, ifb", Refused: "nothing is behind it: the kernel drops what it sends", How: "the interface that hosts are behind",
		fits: ofKind("dummy", "ifb"),
	},
	{
		Name: "VRF", Refused: "it is a routing table, and no link", How: "its members, which may be ports of bridges",
		fits:    ofKind("vrf"),
		instead: func(p *placed) string { return strings.Join(p.links.members(p.Link), ", ") },
	},
	{
		Name: "ipvlan, ipvtap", Refused: "it gets packets to its own addresses alone, and none to groups", How: "the interface below it, or a macvlan there",
		fits: ofKind("ipvlan", "ipvtap"), instead: below,
	},
	{
		Name: "macvtap", Refused: "its packets go to a program, and not by the kernel's stack", How: "the interface below it, or a macvlan there",
		fits: ofKind("macvtap"), instead: below,
	},
	{
		Name: "bridge or internal port of Open vSwitch", Refused: openVSwitch, How: linuxBridge,
		fits: ofKind("openvswitch"),
	},
	{
		Name: "port of Open vSwitch", Refused: openVSwitch, How: linuxBridge,
		fits: memberOf("openvswitch"),
	},
	{
		Name: "Wi-Fi", Refused: "an access point takes no frames for others than itself, nor in their names, and repeats what is lost for a time that no queue pair waits", How: "a wired interface",
		fits: func(p *placed) bool { return isWireless(p.Attrs().Index) },
	},
	{
		Name: "member of a bond or team", Refused: "its frames are those of the %s", How: "the bond or team",
		fits: memberOf("bond", "team"), instead: func(p *placed) string { return p.master.Attrs().Name },
	},
	{
		Name: "MACsec, and the interface below it", Refused: "group packets do not pass it unharmed: hosts' frames are encrypted below, and AF_XDP does not go with the encryption", How: noMACsec,
		fits: func(p *placed) bool { return p.Type() == "macsec" || p.links.upper(p.Link, "macsec") != nil },
	},
	{
		Name: "member of HSR and of others that are not in this table", Refused: "its frames are those of the %s", How: "what it belongs to",
		fits:    func(p *placed) bool { return p.master != nil && !memberOf("bridge", "vrf")(p) },
		instead: func(p *placed) string { return p.master.Attrs().Name },
	},
	{
		Name: "bond, team", Mode: config.XDPGeneric, How: "the kernel gives none of what native XDP takes at a bond to AF_XDP",
		fits: ofKind("bond", "team"),
	},
	{
		Name: "bridge", Mode: config.XDPGeneric, How: "as one port for all hosts behind it; its ports as ports are faster, and guarded one by one",
		fits: ofKind("bridge"),
	},
	{
		Name: "VLAN interface", Mode: config.XDPGeneric, How: "the interface below it with `vlan` is faster",
		fits: ofKind("vlan"),
	},
	{
		Name: "macvlan", Mode: config.XDPGeneric, How: "the interface below it is faster",
		fits: ofKind("macvlan"),
	},
	{
		Name: "VXLAN, Geneve, GRETAP", Mode: config.XDPGeneric, How: "inside of the tunnel; mind its MTU",
		fits: ofKind("vxlan", "geneve", "gretap", "ip6gretap", "erspan", "ip6erspan"),
	},
	{
		Name: "port of a bridge", Mode: config.XDPAuto, How: "by the bridge's rules: spanning tree, VLANs, locked and isolated ports",
		fits: memberOf("bridge"),
	},
	{
		Name: "member of a VRF", Mode: config.XDPAuto, How: "its hosts are looked up in the VRF's table",
		fits: memberOf("vrf"),
	},
	{
		Name: "veth", Mode: config.XDPAuto, How: "while its peer is up",
		fits: ofKind("veth"),
	},
	{
		Name: "NIC, tap of a virtual machine, all others", Mode: config.XDPAuto, How: "native XDP where the driver has it",
		fits: func(*placed) bool { return true },
	},
}

const (
	openVSwitch = "Open vSwitch does not tell the kernel which of its ports a host is behind"
	noMACsec    = "an interface without MACsec, which a device in front of it may do"
	linuxBridge = "a port of a bridge of the kernel (ip link set PORT master BRIDGE)"
)

func ofKind(kinds ...string) func(*placed) bool {
	return func(p *placed) bool { return slices.Contains(kinds, p.Type()) }
}

func memberOf(kinds ...string) func(*placed) bool {
	return func(p *placed) bool { return p.master != nil && slices.Contains(kinds, p.master.Type()) }
}

// below names the interface below p.
func below(p *placed) string {
	if x := p.links.lower(p.Link); x != nil {
		return x.Attrs().Name
	}
	return ""
}

// Kind returns the kind of an interface.
func (l Links) Kind(x netlink.Link) *Kind {
	p := l.place(x)
	for i := range Kinds {
		if Kinds[i].fits(p) {
			return &Kinds[i]
		}
	}
	return nil // not reached: the last one fits all
}

func (l Links) place(x netlink.Link) *placed {
	return &placed{Link: x, links: l, master: l.master(x)}
}

// CheckKind returns an error if an interface cannot be a port in a mode.
func (l Links) CheckKind(x netlink.Link, mode config.XDPMode) error {
	k, p := l.Kind(x), l.place(x)
	if k.Refused == "" {
		if mode == config.XDPNative && k.Mode == config.XDPGeneric {
			return fmt.Errorf("xdp.mode native does not work at a %s (%s): xdp: {mode: generic} at this port, or auto", x.Type(), k.How)
		}
		return nil
	}
	why := k.Refused
	if strings.Contains(why, "%s") {
		why = fmt.Sprintf(why, fmt.Sprintf("%s %s", p.master.Type(), p.master.Attrs().Name))
	}
	if k == &Kinds[0] {
		why += fmt.Sprintf(" (%s): group packets need one", x.Attrs().EncapType)
	}
	how := k.How
	if k.instead != nil {
		if name := k.instead(p); name != "" {
			how = fmt.Sprintf("%s (%s)", name, how)
		}
	}
	return errors.New(why + ": name in its place: " + how)
}

// ModeAt returns the mode of a port at an interface: that of the configuration, unless it is auto
// and generic alone works.
func (l Links) ModeAt(x netlink.Link, mode config.XDPMode) config.XDPMode {
	if k := l.Kind(x); mode == config.XDPAuto && k.Mode == config.XDPGeneric {
		return config.XDPGeneric
	}
	return mode
}
