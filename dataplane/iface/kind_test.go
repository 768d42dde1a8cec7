// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package iface

import (
	"net"
	"os"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/gleam-rdma/gleam/config"
)

// neighbourhood has an interface of each kind.
func neighbourhood() Links {
	l := Links{}
	at := func(index int, name string, master, parent int) netlink.LinkAttrs {
		a := netlink.NewLinkAttrs()
		a.Index, a.Name, a.MasterIndex, a.ParentIndex = index, name, master, parent
		a.EncapType, a.HardwareAddr = "ether", net.HardwareAddr{2, 0, 0, 0, 0, byte(index)}
		return a
	}
	add := func(x netlink.Link) { l[x.Attrs().Index] = x }
	add(&netlink.Device{LinkAttrs: at(1, "eth0", 0, 0)})
	add(netlink.NewLinkBond(at(10, "bond0", 30, 0)))
	add(&netlink.Device{LinkAttrs: at(11, "slave0", 10, 0)})
	add(&netlink.GenericLink{LinkAttrs: at(12, "team0", 0, 0), LinkType: "team"})
	add(&netlink.Veth{LinkAttrs: at(13, "slave1", 12, 0)})
	add(&netlink.GenericLink{LinkAttrs: at(14, "ovs-system", 0, 0), LinkType: "openvswitch"})
	add(&netlink.Device{LinkAttrs: at(15, "eth5", 14, 0)})
	add(&netlink.Vrf{LinkAttrs: at(16, "red", 0, 0)})
	add(&netlink.Device{LinkAttrs: at(17, "eth7", 16, 0)})
	add(&netlink.GenericLink{LinkAttrs: at(18, "hsr0", 0, 0), LinkType: "hsr"})
	add(&netlink.Device{LinkAttrs: at(19, "eth9", 18, 0)})
	add(&netlink.Device{LinkAttrs: at(20, "eth10", 0, 0)})
	add(&netlink.GenericLink{LinkAttrs: at(21, "macsec0", 0, 20), LinkType: "macsec"})
	add(&netlink.Dummy{LinkAttrs: at(22, "dummy0", 0, 0)})
	add(&netlink.IPVlan{LinkAttrs: at(23, "ipvl0", 0, 1)})
	add(&netlink.Macvtap{Macvlan: netlink.Macvlan{LinkAttrs: at(24, "macvtap0", 0, 1)}})
	add(&netlink.Macvlan{LinkAttrs: at(25, "macvlan0", 0, 1)})
	add(&netlink.Vlan{LinkAttrs: at(26, "eth0.7", 0, 1), VlanId: 7})
	add(&netlink.Vxlan{LinkAttrs: at(27, "vxlan0", 0, 1)})
	lo := at(28, "lo", 0, 0)
	lo.EncapType = "loopback"
	add(&netlink.Device{LinkAttrs: lo})
	wg := at(29, "wg0", 0, 0)
	wg.EncapType, wg.HardwareAddr = "none", nil
	add(&netlink.Wireguard{LinkAttrs: wg})
	add(&netlink.Bridge{LinkAttrs: at(30, "br0", 0, 0)})
	add(&netlink.Veth{LinkAttrs: at(31, "veth0", 30, 32)})
	add(&netlink.Veth{LinkAttrs: at(32, "veth1", 0, 31)})
	add(&netlink.Tuntap{LinkAttrs: at(33, "tap0", 0, 0)})
	return l
}

// Each kind is served in the mode that works for it, or refused with what to name in its place.
func TestKinds(t *testing.T) {
	l := neighbourhood()
	fitted := make(map[string]bool)
	for _, c := range []struct {
		name string
		mode config.XDPMode // the mode with xdp.mode auto; empty: the interface is refused
		want string         // a part of the refusal
	}{
		{"eth0", config.XDPAuto, ""}, {"tap0", config.XDPAuto, ""}, {"veth0", config.XDPAuto, ""}, {"veth1", config.XDPAuto, ""}, {"eth7", config.XDPAuto, ""},
		{"bond0", config.XDPGeneric, ""}, {"team0", config.XDPGeneric, ""}, {"br0", config.XDPGeneric, ""},
		{"eth0.7", config.XDPGeneric, ""}, {"macvlan0", config.XDPGeneric, ""}, {"vxlan0", config.XDPGeneric, ""},
		{"slave0", "", "its frames are those of the bond bond0: name in its place: bond0"},
		{"slave1", "", "its frames are those of the team team0: name in its place: team0"},
		{"eth5", "", "Open vSwitch does not tell"}, {"ovs-system", "", "Open vSwitch does not tell"},
		{"red", "", "it is a routing table, and no link: name in its place: eth7"},
		{"eth9", "", "its frames are those of the hsr hsr0: name in its place: hsr0"},
		{"eth10", "", "group packets do not pass it unharmed"}, {"macsec0", "", "name in its place: an interface without MACsec"},
		{"dummy0", "", "nothing is behind it"}, {"ipvl0", "", "none to groups: name in its place: eth0"}, {"macvtap0", "", "name in its place: eth0"},
		{"lo", "", "not an Ethernet interface (loopback): group packets need one"}, {"wg0", "", "not an Ethernet interface (none)"},
	} {
		x := l.Named(c.name)
		fitted[l.Kind(x).Name] = true
		err := l.CheckKind(x, config.XDPAuto)
		switch {
		case c.mode == "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		case c.mode != "" && (err != nil || l.ModeAt(x, config.XDPAuto) != c.mode):
			t.Errorf("%s: %v, mode %s, want %s", c.name, err, l.ModeAt(x, config.XDPAuto), c.mode)
		}
		native := l.CheckKind(x, config.XDPNative)
		if served := c.mode == config.XDPAuto; (native == nil) != served {
			t.Errorf("%s natively: %v", c.name, native)
		}
	}
	for i := range Kinds {
		if k := &Kinds[i]; !fitted[k.Name] && k.Name != "Wi-Fi" { // which the kernel alone tells
			t.Errorf("no interface of the test is of the kind %s", k.Name)
		}
	}
}

// Two ports are two interfaces, of which none has the frames of the other.
func TestPortsTogether(t *testing.T) {
	l := neighbourhood()
	l.Named("eth0").Attrs().AltNames = []string{"enp1s0"}
	for _, c := range []struct {
		ports, want string
	}{
		{"eth0 eth7 veth0 tap0", ""},
		{"eth0 missing", ""},
		{"veth0 veth1", ""}, // a veth's peer is not below it
		{"eth0 enp1s0", "port enp1s0: it is the interface eth0, which is port eth0 already"},
		{"br0 veth0", "port br0: it is the bridge of port veth0"},
		{"veth0 br0", "port br0: it is the bridge of port veth0"},
		{"br0 bond0", "port br0: it is the bridge of port bond0"},
		{"eth0 eth0.7", "leave eth0.7 out: eth0 has its frames too, and sends them with the tag by vlan: 7"},
		{"macvlan0 eth0", "port macvlan0: it is a macvlan interface on top of port eth0"},
		{"bond0 slave0", "port bond0: it is a bond interface on top of port slave0"},
	} {
		var ports []config.Port
		for name := range strings.FieldsSeq(c.ports) {
			ports = append(ports, config.Port{Name: name})
		}
		err := l.CheckTogether(ports)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.ports, err, c.want)
		}
	}
}

// docs/PORTS.md has the table of the kinds as the code has it.
func TestPageOfKinds(t *testing.T) {
	const page = "../../docs/PORTS.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range Kinds {
		how := "native, or generic where the driver has no native XDP"
		switch {
		case k.Refused != "":
			how = "refused: " + strings.ReplaceAll(k.Refused, "%s", "bond, team …")
		case k.Mode == config.XDPGeneric:
			how = "generic"
		}
		if line := "| " + k.Name + " | " + how + " | " + k.How + " |"; !strings.Contains(string(text), line+"\n") {
			t.Errorf("%s does not have the line\n%s", page, line)
		}
	}
}
