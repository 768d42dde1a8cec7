// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/iface"
)

// checkOffloads checks that what a port's NIC does to packets before XDP leaves them as they are.
func (m *Machine) checkOffloads(o *Outcome, cfg *config.Config, s *hostNetwork) {
	var found []Finding
	looked := false
	for i := range cfg.Ports {
		port := cfg.Ports[i].Name
		on, err := m.Features(port)
		if err != nil {
			continue // there is no such interface, which another check says
		}
		looked = true
		if on[iface.FeatureLRO] {
			found = append(found, Finding{
				Severe: true, Port: port, Text: "large receive offload is on",
				Cost:    "drivers refuse native XDP with it, and packets that it merges have no valid ICRC: groups lose them",
				Command: "ethtool -K " + port + " lro off",
			})
		}
		if link := s.links.Named(port); on[iface.FeatureHWGRO] && (link == nil || !native(link)) {
			found = append(found, Finding{
				Port: port, Text: "the NIC merges packets of TCP (hardware GRO)",
				Cost: "some drivers refuse native XDP with it", Command: "ethtool -K " + port + " rx-gro-hw off",
			})
		}
		if why, certain := s.tagged(port, &cfg.Ports[i]); on[iface.FeatureVLAN] && why != "" {
			found = append(found, Finding{
				Severe: certain, Port: port, Text: "the interface takes VLAN tags off before XDP sees the packets, and " + why,
				Cost:    "XDP takes tagged packets for untagged ones: hosts in that VLAN get no answer to ARP for a group's address, and the port guard and the sightings of members judge them by the wrong VLAN",
				Command: "ethtool -K " + port + " rxvlan off",
			})
		}
	}
	if !looked {
		o.skip(CheckOffloads, "none of the ports has an interface here")
		return
	}
	o.add(CheckOffloads, found...)
}

// native reports whether a program is attached in the driver of an interface, which then has not refused it.
func native(x netlink.Link) bool {
	xdp := x.Attrs().Xdp
	return xdp != nil && xdp.Attached && xdp.AttachMode == nl.XDP_ATTACHED_DRV
}

// tagged returns why packets with VLAN tags come to a port; empty if none are expected. They are not certain where a
// bridge filters VLANs, whose port may have an untagged one alone.
func (s *hostNetwork) tagged(name string, p *config.Port) (why string, certain bool) {
	l := s.links.Named(name)
	if l == nil {
		return "", false
	}
	if p.VLAN != 0 {
		return fmt.Sprintf("its group frames have VLAN %d", p.VLAN), true
	}
	below := []int{l.Attrs().Index}
	if b, bridged := s.links[l.Attrs().MasterIndex].(*netlink.Bridge); bridged {
		if b.VlanFiltering != nil && *b.VlanFiltering {
			return "bridge " + b.Name + " filters VLANs", false
		}
		below = append(below, b.Index)
	}
	for _, v := range s.links {
		if v.Type() == "vlan" && slices.Contains(below, v.Attrs().ParentIndex) {
			return "VLAN interface " + v.Attrs().Name + " is on top of it", true
		}
	}
	return "", false
}
