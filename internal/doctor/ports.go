// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/config"
	"github.com/gleam-rdma/gleam/internal/kernel"
	"github.com/gleam-rdma/gleam/internal/watch"
)

// Features of interfaces, as ETHTOOL_GFEATURES names them.
const (
	featureLRO       = "rx-lro"
	featureHWGRO     = "rx-gro-hw"
	featureVLAN      = "rx-vlan-hw-parse"
	featureGROList   = "rx-gro-list"
	featureUDPGRO    = "rx-udp-gro-forwarding"
	featureTXIPv4    = "tx-checksum-ipv4"
	featureTXGeneric = "tx-checksum-ip-generic"
)

// features returns which features of an interface are on.
func features(name string) (map[string]bool, error) {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return nil, err
	}
	defer e.Close()
	return e.Features(name)
}

// checkOffloads checks that what a port's NIC does to packets before XDP leaves them as they are.
func checkOffloads(r *Report, cfg *config.Config, n *network, ask func(string) (map[string]bool, error)) {
	var found []Finding
	looked := false
	for i := range cfg.Ports {
		port := cfg.Ports[i].Name
		on, err := ask(port)
		if err != nil {
			continue // there is no such interface, which another check says
		}
		looked = true
		if on[featureLRO] {
			found = append(found, Finding{
				Severity: Error, Port: port, Text: "large receive offload is on",
				Cost:    "drivers refuse native XDP with it, and packets that it merges have no valid ICRC: groups lose them",
				Command: "ethtool -K " + port + " lro off",
			})
		}
		if on[featureHWGRO] {
			found = append(found, Finding{
				Severity: Warning, Port: port, Text: "the NIC merges packets of TCP (hardware GRO)",
				Cost: "some drivers refuse native XDP with it", Command: "ethtool -K " + port + " rx-gro-hw off",
			})
		}
		if why := n.tagged(port, &cfg.Ports[i]); on[featureVLAN] && why != "" {
			found = append(found, Finding{
				Severity: Warning, Port: port, Text: "the interface takes VLAN tags off before XDP sees the packets, and " + why,
				Cost:    "XDP takes tagged packets for untagged ones: the port guard and the sightings of members judge them by the wrong VLAN",
				Command: "ethtool -K " + port + " rxvlan off",
			})
		}
	}
	if !looked {
		r.skip("offloads", "none of the ports has an interface here")
		return
	}
	r.add("offloads", found...)
}

// network is the kernel's interfaces and neighbours in the namespace of the calling thread.
type network struct {
	links      map[int]netlink.Link // by index
	neighbours []netlink.Neigh
	learnt     []netlink.Neigh // of bridges
}

func readNetwork() (*network, error) {
	n := &network{links: make(map[int]netlink.Link)}
	links, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	for _, l := range links {
		n.links[l.Attrs().Index] = l
	}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		list, err := netlink.NeighList(0, family)
		if err != nil {
			return nil, fmt.Errorf("list neighbours: %w", err)
		}
		n.neighbours = append(n.neighbours, list...)
	}
	if n.learnt, err = netlink.NeighList(0, familyBridge); err != nil {
		return nil, fmt.Errorf("list forwarding databases: %w", err)
	}
	return n, nil
}

// link returns the interface of a name, or nil.
func (n *network) link(name string) netlink.Link {
	for _, l := range n.links {
		if l.Attrs().Name == name {
			return l
		}
	}
	return nil
}

func (n *network) name(index int) string {
	if l := n.links[index]; l != nil {
		return l.Attrs().Name
	}
	return fmt.Sprint("interface ", index)
}

// tagged returns why packets with VLAN tags come to a port; empty if none are expected.
func (n *network) tagged(name string, p *config.Port) string {
	l := n.link(name)
	if l == nil {
		return ""
	}
	below := []int{l.Attrs().Index}
	if b, ok := n.links[l.Attrs().MasterIndex].(*netlink.Bridge); ok {
		if b.VlanFiltering != nil && *b.VlanFiltering {
			return "bridge " + b.Name + " filters VLANs"
		}
		below = append(below, b.Index)
	}
	for _, v := range n.links {
		if v.Type() == "vlan" && slices.Contains(below, v.Attrs().ParentIndex) {
			return "VLAN interface " + v.Attrs().Name + " is on top of it"
		}
	}
	if p.VLAN != 0 {
		return fmt.Sprintf("its group frames have VLAN %d", p.VLAN)
	}
	return ""
}

// downFinding reports a port that is down, or was so lately.
func downFinding(p *api.Port, groups []api.Group, now time.Time) (f Finding, ok bool) {
	if p.Up && !watch.WasDown(p, now) {
		return f, false
	}
	f = Finding{Severity: Error, Port: p.Name, Text: "it is down", Cost: "members behind it get nothing", Remedy: "see the link and its other end: ip -s link show dev " + p.Name}
	switch {
	case p.Up:
		f.Severity, f.Text = Warning, fmt.Sprintf("it went down at %s, and is up again; %s since gleamd started", p.LastDown.Local().Format(time.TimeOnly), times(p.Downs))
		f.Cost = "groups with members behind it stand still meanwhile, and such members are removed when dead_after ends"
		f.Remedy = "see the cable, the transceiver and the other end: ip -s link show dev " + p.Name + "; gleam events has each time"
	case p.LastDown != nil:
		f.Text = fmt.Sprintf("it is down for %v", now.Sub(*p.LastDown).Round(time.Second))
	}
	if names := membersAt(p.Name, groups); names != "" {
		f.Text += "; members behind it: " + names
	}
	return f, true
}

// times says how often.
func times(n uint64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// membersAt names some members of groups that are behind a port.
func membersAt(port string, groups []api.Group) string {
	const most = 3
	var names []string
	for i := range groups {
		for k := range groups[i].Members {
			m := &groups[i].Members[k]
			if name := m.IP.String(); m.Port == port && !slices.Contains(names, name) {
				if len(names) == most {
					return strings.Join(names, ", ") + " and more"
				}
				names = append(names, name)
			}
		}
	}
	return strings.Join(names, ", ")
}

// checkPorts checks the ports as gleamd has them.
func checkPorts(r *Report, ports []api.Port, groups []api.Group, now time.Time, cfg *config.Config, file string) {
	var xdp, open, fast []Finding
	for i := range ports {
		p := &ports[i]
		if p.State != api.PortOpen && p.State != "" {
			open = append(open, Finding{
				Severity: Error, Port: p.Name, Text: "the port is " + p.State + reason(p.Reason),
				Cost: "members behind it get nothing", Remedy: "see ip link show dev " + p.Name + "; gleamd takes it up again by itself when there is an interface that it can use",
			})
			continue
		}
		if f, ok := downFinding(p, groups, now); ok {
			open = append(open, f)
		}
		if p.XDPMode == api.XDPGeneric {
			f := degraded(kernel.Generic(p.Name, p.Driver), Warning)
			if cfg != nil && cfg.XDP.Mode == config.XDPGeneric {
				f.Remedy = "xdp.mode: auto in " + file + ", and a restart of gleamd"
			} else {
				f.Remedy = "a driver with native XDP. Some refuse it with LRO, with an MTU above one page, or with too few queues: gleamd's log has the driver's reason at the start"
			}
			xdp = append(xdp, f)
		}
		if p.FastPath != nil && !p.FastPath.Used && p.FastPath.Reason != "" {
			fast = append(fast, degraded(kernel.OffFastPath(p.Name, p.FastPath.Reason), Warning))
		}
	}
	r.add("ports", open...)
	r.add("xdp-mode", xdp...)
	if cfg != nil && cfg.FastPath == config.FastPathOff {
		r.skip("fast-path", "fast_path is off")
	} else {
		r.add("fast-path", fast...)
	}
}

func reason(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// degraded is something that gleamd does without, as a finding.
func degraded(d api.Degradation, s Severity) Finding {
	return Finding{Severity: s, Port: d.Port, Text: d.Text, Cost: d.Cost}
}
