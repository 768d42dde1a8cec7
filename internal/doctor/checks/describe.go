// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/iface"
)

// Description is a machine with a NIC as port p1, and what the checks say of it. Its text is an entry of
// testdata/machines.txt.
type Description struct {
	Name  string
	Facts map[string]string // the facts by the names of factNames
	Want  []string          // findings, as wanted writes them
}

// factNames are the names of facts, in their order in the text.
var factNames = []string{"driver", "device", "queues", "transmit", "cpus", "mtu", "bridge", "promiscuous", "xdp", "hash", "rdma", "raw", "soft", "on", "program", "vlan", "fast"}

// describedFeatures are those of an interface that the checks look at.
var describedFeatures = []string{iface.FeatureLRO, iface.FeatureHWGRO, iface.FeatureVLAN}

// describedPort is the port's name in descriptions.
const describedPort = "p1"

// String is the description as an entry of testdata/machines.txt.
func (x *Description) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "== %s\n", x.Name)
	for _, name := range factNames {
		if v := x.Facts[name]; v != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, v)
		}
	}
	for _, w := range x.Want {
		fmt.Fprintf(&b, "want %s\n", w)
	}
	return b.String()
}

// ParseDescriptions reads entries of testdata/machines.txt.
func ParseDescriptions(text string) (list []Description, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if name, begins := strings.CutPrefix(line, "== "); begins {
			list = append(list, Description{Name: name, Facts: map[string]string{}})
			continue
		}
		if len(list) == 0 {
			return nil, fmt.Errorf("%q: want a line \"== NAME\" first", line)
		}
		d := &list[len(list)-1]
		if want, is := strings.CutPrefix(line, "want "); is {
			d.Want = append(d.Want, want)
			continue
		}
		key, value, is := strings.Cut(line, ": ")
		if !is {
			return nil, fmt.Errorf("%s: %q: want NAME: VALUE", d.Name, line)
		}
		d.Facts[key] = value
	}
	return list, nil
}

// wanted is a finding in a description: how bad it is, the check, the text, and after | the repair.
func wanted(f *Finding) string {
	text := fmt.Sprintf("%s: %s | %s", f.Check, f.Text, f.Repair())
	switch {
	case f.Severe:
		return "severe " + text
	case f.Note:
		return "note " + text
	}
	return text
}

// Describe describes the interface of a port of cfg, in the network namespace of the calling thread.
func (m *Machine) Describe(links iface.Links, cfg *config.Config, port *config.Port) (*Description, error) {
	link := links.Named(port.Name)
	if link == nil {
		return nil, fmt.Errorf("there is no interface %s", port.Name)
	}
	n := m.readInterface(port.Name, link)
	d := &Description{Facts: map[string]string{
		"driver": n.driver, "queues": strconv.Itoa(n.queues), "cpus": strconv.Itoa(n.cpus), "mtu": strconv.Itoa(n.mtu), "bridge": "no", "rdma": strings.Join(n.rdma, " "), "raw": strings.Join(n.raw, " "), "soft": strings.Join(n.soft, " "),
	}}
	if n.device != "" {
		d.Facts["device"] = strings.Replace(n.device, "/", " ", 1)
	} else {
		d.Facts["driver"] = link.Type()
	}
	d.Name = fmt.Sprintf("%s, Linux %s", d.Facts["driver"], m.Release)
	a := link.Attrs()
	alone := iface.Links{a.Index: link} // without what a description does not have, such as VLAN interfaces
	if _, bridged := links[a.MasterIndex].(*netlink.Bridge); bridged {
		d.Facts["bridge"] = "yes"
		alone[a.MasterIndex] = &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Index: a.MasterIndex, Name: "br0"}}
	} else if n.promiscuous {
		d.Facts["promiscuous"] = "yes"
	}
	if n.channels != n.queues {
		d.Facts["transmit"] = strconv.Itoa(n.channels)
	}
	if n.hasXDP {
		d.Facts["xdp"] = xdpText(n.xdp)
	}
	if n.hasHash && n.hashesPorts {
		d.Facts["hash"] = "ports"
	} else if n.hasHash {
		d.Facts["hash"] = "addresses"
	}
	if n.running {
		d.Facts["program"] = "native"
	}
	if on, err := m.Features(port.Name); err == nil {
		var names []string
		for _, f := range describedFeatures {
			if on[f] {
				names = append(names, f)
			}
		}
		d.Facts["on"] = strings.Join(names, " ")
	}
	if port.VLAN != 0 {
		d.Facts["vlan"] = strconv.Itoa(port.VLAN)
	}
	c := config.Default()
	if cfg.FastPath != c.FastPath {
		c.FastPath, d.Facts["fast"] = cfg.FastPath, string(cfg.FastPath)
	}
	c.Ports = []config.Port{{Name: port.Name, VLAN: port.VLAN}}
	o := &Outcome{}
	m.checkNICs(o, c, &hostNetwork{links: alone})
	m.checkOffloads(o, c, &hostNetwork{links: alone})
	for i := range o.Findings {
		d.Want = append(d.Want, renamed(wanted(&o.Findings[i]), port.Name))
	}
	return d, nil
}

func xdpText(x iface.XDPFeatures) string {
	var names []string
	for _, f := range []struct {
		has  bool
		name string
	}{{x.Native(), "native"}, {x.MultiBuffer(), "buffers"}, {x.ZeroCopy(), "zerocopy"}} {
		if f.has {
			names = append(names, f.name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, " ")
}

// renamed is a finding of a port as that of describedPort.
func renamed(text, port string) string {
	words := strings.Split(text, " ")
	for i, w := range words {
		if rest, is := strings.CutPrefix(w, port); is && strings.Trim(rest, ",:") == "" {
			words[i] = describedPort + rest
		}
	}
	return strings.Join(words, " ")
}
