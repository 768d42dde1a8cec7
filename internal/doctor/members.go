// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/rocev2"
)

const familyBridge = unix.AF_BRIDGE

// member is a host of one group or several.
type member struct {
	api.Member
	group    netip.Addr // one of its groups: that with the longest packets
	pathMTU  int
	pinnable bool // true: it is behind a port of this switch
}

// membersOf returns the hosts of groups, in order.
func membersOf(groups []api.Group) (all []member) {
	at := make(map[netip.Addr]int)
	for i := range groups {
		g := &groups[i]
		for _, m := range g.Members {
			k, known := at[m.IP]
			if !known {
				k = len(all)
				at[m.IP] = k
				all = append(all, member{Member: m, group: g.IP, pathMTU: g.PMTU, pinnable: m.Switch == ""})
			} else if g.PMTU > all[k].pathMTU {
				all[k].group, all[k].pathMTU = g.IP, g.PMTU
			}
		}
	}
	slices.SortFunc(all, func(a, b member) int { return a.IP.Compare(b.IP) })
	return all
}

// unsettled are the states of neighbours whose MAC address the kernel does not know.
const unsettled = netlink.NUD_INCOMPLETE | netlink.NUD_FAILED

// settle is the time in which gleamd puts back what somebody has removed.
const settle = 1500 * time.Millisecond

// checkNeighbours compares the kernel's neighbour table and forwarding databases with where
// gleamd has the members. It looks again before it says that something is wrong.
func checkNeighbours(r *Report, n *network, all []member, pinned bool) {
	once := &Report{}
	compareNeighbours(once, n, all, pinned)
	if len(once.Findings) > 0 {
		time.Sleep(settle)
		again, err := readNetwork()
		if err != nil {
			r.skip("neighbours", err.Error())
			return
		}
		n = again
	}
	compareNeighbours(r, n, all, pinned)
}

func compareNeighbours(r *Report, n *network, all []member, pinned bool) {
	var found []Finding
	local := 0
	for i := range all {
		m := &all[i]
		if !m.pinnable || m.MAC == "" {
			continue
		}
		local++
		found = append(found, n.checkNeighbour(m, pinned)...)
		found = append(found, n.checkLearnt(m, pinned)...)
	}
	if local == 0 {
		r.skip("neighbours", "no member is behind a port of this switch")
		return
	}
	r.add("neighbours", found...)
}

// checkNeighbour checks the neighbour entry of a member that is on a link of this machine.
func (n *network) checkNeighbour(m *member, pinned bool) []Finding {
	base := Finding{Member: m.IP, Severity: Error}
	for i := range n.neighbours {
		e := &n.neighbours[i]
		ip, ok := netip.AddrFromSlice(e.IP)
		if !ok || ip.Unmap() != m.IP {
			continue
		}
		dev := n.name(e.LinkIndex)
		f := base
		f.Command = fmt.Sprintf("ip neighbour del %s dev %s", m.IP, dev)
		switch {
		case e.State&unsettled != 0:
			f.Text = fmt.Sprintf("the kernel asks for its MAC address at %s, and nobody answers", dev)
			f.Cost = "the switch's own packets do not reach it, and after a restart of gleamd, or a new registration, it is not found"
			f.Remedy = "see whether the host is up, and has the address"
		case e.HardwareAddr.String() != m.MAC:
			f.Text = fmt.Sprintf("the kernel has it at %s, and gleamd sends its copies to %s", e.HardwareAddr, m.MAC)
			f.Cost = "one of the two is wrong: the member gets copies or unicast traffic, but not both, and a new registration takes the kernel's"
			f.Remedy = "a host with its address besides it, or an entry by hand; if the member has moved: gleam group move-member"
		default:
			return nil
		}
		return []Finding{f}
	}
	if !pinned {
		return nil // entries of hosts that are silent go
	}
	dev := m.Port
	if l := n.link(m.Port); l != nil && l.Attrs().MasterIndex != 0 {
		dev = n.name(l.Attrs().MasterIndex)
	}
	return []Finding{{
		Severity: Warning, Member: m.IP, Text: "the kernel has no neighbour entry for it, though gleamd pins members",
		Cost:    "another host can draw its unicast traffic by answering ARP or neighbour discovery in its name",
		Command: fmt.Sprintf("ip neighbour replace %s lladdr %s dev %s nud permanent", m.IP, m.MAC, dev),
		Remedy:  "gleamd's log has why it does not pin the member",
	}}
}

// checkLearnt checks the entry of a member's MAC address in the bridge of its port.
func (n *network) checkLearnt(m *member, pinned bool) []Finding {
	port := n.link(m.Port)
	if port == nil || port.Attrs().MasterIndex == 0 {
		return nil
	}
	bridge := n.links[port.Attrs().MasterIndex]
	if bridge == nil || bridge.Type() != "bridge" {
		return nil
	}
	known := false
	for i := range n.learnt {
		e := &n.learnt[i]
		if e.HardwareAddr.String() != m.MAC || e.MasterIndex != bridge.Attrs().Index || m.VLAN != 0 && e.Vlan != 0 && e.Vlan != int(m.VLAN) {
			continue
		}
		if e.LinkIndex == port.Attrs().Index {
			known = true
			continue
		}
		f := Finding{
			Severity: Error, Member: m.IP, Text: fmt.Sprintf("bridge %s has its MAC address %s at %s, and gleamd has the member at %s", bridge.Attrs().Name, m.MAC, n.name(e.LinkIndex), m.Port),
			Cost:    "unicast traffic to it, RDMA-CM and the exchange before a registration among it, leaves by the wrong port",
			Command: fmt.Sprintf("bridge fdb del %s dev %s master", m.MAC, n.name(e.LinkIndex)),
			Remedy:  "if the member has moved: gleam group move-member",
		}
		if e.Vlan != 0 {
			f.Command += fmt.Sprint(" vlan ", e.Vlan)
		}
		return []Finding{f}
	}
	if !known && pinned {
		return []Finding{{
			Severity: Warning, Member: m.IP, Text: fmt.Sprintf("bridge %s has no entry for its MAC address %s", bridge.Attrs().Name, m.MAC),
			Cost:    "unicast traffic to it is flooded to all ports, and another host can draw it by one frame with that address",
			Command: fmt.Sprintf("bridge fdb replace %s dev %s master static", m.MAC, m.Port),
		}}
	}
	return nil
}

// checkPaths sends the longest packets of groups to their members, as echo requests that no
// router may divide.
func checkPaths(r *Report, p *pinger, all []member) {
	if len(all) == 0 {
		r.skip("path-mtu", "there are no members")
		return
	}
	left := max(0, len(all)-maxPinged)
	all = all[:len(all)-left]
	probes := make([]probe, 0, 2*len(all))
	for i := range all {
		v4 := all[i].IP.Is4()
		probes = append(probes, probe{to: all[i].IP}, probe{to: all[i].IP, size: all[i].pathMTU + rocev2.MaxHeaders(v4)})
	}
	answers, failed := p.ask(probes)
	var found []Finding
	var silent, here []string
	for i := range all {
		m := &all[i]
		_, small := answers[2*i]
		_, large := answers[2*i+1]
		size := probes[2*i+1].size
		switch {
		case large:
		case errors.Is(failed[2*i+1], unix.EMSGSIZE):
			here = append(here, m.IP.String())
		case !small:
			silent = append(silent, m.IP.String())
		default:
			found = append(found, Finding{
				Severity: Error, Group: m.group, Member: m.IP, Text: fmt.Sprintf("packets of %d bytes do not get to it and back, as path MTU %d needs; short ones do", size, m.pathMTU),
				Cost:    "copies of full length are lost on the way, each time that they are sent: the group waits for this member until it is removed",
				Command: fmt.Sprintf("ip link set mtu %d dev \"$(ip -o address show to %s | awk '{print $2}')\"", max(1500, size), m.IP),
				At:      "at host " + m.IP.String(), Remedy: "the same at each interface on the way, or a smaller path MTU of the group",
			})
		}
	}
	switch {
	case len(found) > 0 || len(silent)+len(here)+left == 0:
		r.add("path-mtu", found...)
	case len(silent) > 0:
		r.skip("path-mtu", fmt.Sprintf("%s did not answer echo requests", list(silent)))
	case len(here) > 0:
		r.skip("path-mtu", fmt.Sprintf("an interface of this switch on the kernel's way to %s has a smaller MTU than its port", list(here)))
	default:
		r.skip("path-mtu", fmt.Sprintf("%d members are more than are asked; the first %d answer", left, maxPinged))
	}
}

// mostSkew is the difference between clocks above which events of two machines cannot be put in
// order.
const mostSkew = time.Second

// checkSkew compares the clocks of masters with the one here, by ICMP timestamps.
func checkSkew(r *Report, p *pinger, groups []api.Group) {
	var masters []netip.Addr
	for i := range groups {
		ip, err := netip.ParseAddr(groups[i].Master)
		if at, other := netip.ParseAddrPort(groups[i].Master); other == nil {
			ip, err = at.Addr(), nil
		}
		if ip = ip.Unmap(); err == nil && ip.Is4() && !slices.Contains(masters, ip) && len(masters) < maxPinged {
			masters = append(masters, ip)
		}
	}
	if len(masters) == 0 {
		r.skip("clock-skew", "no group has a master with an IPv4 address")
		return
	}
	probes := make([]probe, len(masters))
	for i, ip := range masters {
		probes[i] = probe{to: ip, time: true}
	}
	answers, _ := p.ask(probes)
	var found []Finding
	var silent []string
	for i, ip := range masters {
		a, ok := answers[i]
		if !ok {
			silent = append(silent, ip.String())
			continue
		}
		if d := a.skew; d > mostSkew || d < -mostSkew {
			way := "ahead"
			if d < 0 {
				d, way = -d, "behind"
			}
			found = append(found, Finding{
				Severity: Warning, Text: fmt.Sprintf("the clock of master %s is %s %s of the one here", ip, d.Round(100*time.Millisecond), way),
				Cost:    "events and logs of the two cannot be put in order. Groups are not affected: leases are measured by clocks that nobody sets",
				Command: "timedatectl set-ntp true", At: "at host " + ip.String(), Remedy: "and here, if this clock is the wrong one",
			})
		}
	}
	if len(found) == 0 && len(silent) > 0 {
		r.skip("clock-skew", list(silent)+" did not answer timestamp requests")
		return
	}
	r.add("clock-skew", found...)
}

// list names some of many.
func list(names []string) string {
	const most = 4
	more := ""
	if len(names) > most {
		more = fmt.Sprintf(" and %d more", len(names)-most)
		names = names[:most]
	}
	s := names[0]
	for _, n := range names[1:] {
		s += ", " + n
	}
	return s + more
}
