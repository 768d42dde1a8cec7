// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// HostOptions say what a host is to do.
type HostOptions struct {
	Verbs     bool       // true: it has an RDMA device; false: software queue pairs
	Interface string     // [that of the route to Group]
	Device    string     // RDMA device [the first that fits]
	Group     netip.Addr // a GroupIP; not valid: what needs one is not checked
	PathMTU   int
	Timeout   uint8 // the timeout of queue pairs, as in verbs
	Retries   uint8
	RNRRetry  uint8
	DeadAfter time.Duration // the group's dead_after; 0: it never removes anybody
	Auth      envelope.Auth // the group's key; without one nothing proves who answers
}

// Host looks at a host of groups, in the network namespace of the calling thread.
func Host(_ context.Context, o HostOptions) (*Report, error) { return thisMachine().examineHost(o) }

func (m *machine) examineHost(o HostOptions) (*Report, error) {
	if !rocev2.ValidPathMTU(o.PathMTU) {
		return nil, fmt.Errorf("path MTU %d: want %s", o.PathMTU, rocev2.PathMTUText)
	}
	r := &Report{}
	link, route, err := m.checkWay(r, &o)
	if err != nil {
		return nil, err
	}
	if link != nil {
		name := link.Attrs().Name
		checkInterface(r, link, &o)
		checkHostOffloads(r, name, features)
		if o.Verbs {
			m.checkDevice(r, name, sourceOf(route, link, o.Group), &o)
		}
		if o.Group.IsValid() && route != nil {
			checkGroupAddress(r, link, route, &o)
		}
	}
	if !o.Verbs {
		r.skip("device", "software queue pairs need none (--backend soft)")
	}
	if !o.Group.IsValid() {
		r.skip("group-address", "no group is named (--group)")
		r.skip("switch-key", "no group is named (--group)")
		r.skip("path-mtu", "no group is named (--group)")
	}
	checkLoopback(r)
	checkSettings(r, &o)
	m.checkClock(r)
	return r.finish(), nil
}

// checkWay finds the interface by which the host reaches a group. link is nil if there is none.
func (m *machine) checkWay(r *Report, o *HostOptions) (link netlink.Link, route *netlink.Route, err error) {
	if o.Interface != "" {
		link, err = netlink.LinkByName(o.Interface)
		var missing netlink.LinkNotFoundError
		if errors.As(err, &missing) {
			r.add("interface", Finding{Severity: Error, Text: "there is no interface " + o.Interface, Cost: "no group can be joined", Remedy: "ip link has the names"})
			return nil, nil, nil
		}
		if err != nil {
			return nil, nil, fmt.Errorf("interface %s: %w", o.Interface, err)
		}
	}
	if !o.Group.IsValid() {
		if link == nil {
			return nil, nil, errors.New("name a group by --group, or an interface by --interface")
		}
		return link, nil, nil
	}
	routes, err := netlink.RouteGet(net.IP(o.Group.AsSlice()))
	noRoute := Finding{
		Severity: Error, Group: o.Group, Cost: "the host sends nothing to the group", Command: fmt.Sprintf("ip route add %s dev %s", prefixAround(o.Group), "INTERFACE"),
		Remedy: "the prefix is one of group_prefixes at the switch",
	}
	if link != nil {
		noRoute.Command = fmt.Sprintf("ip route replace %s dev %s", prefixAround(o.Group), o.Interface)
	}
	switch {
	case err != nil || len(routes) == 0:
		noRoute.Text = "there is no route to its address"
		if err != nil {
			noRoute.Text += ": " + err.Error()
		}
		r.add("route", noRoute)
		return link, nil, nil
	case routes[0].Type == unix.RTN_LOCAL:
		dev := "INTERFACE"
		if l := withAddress(o.Group); l != "" {
			dev = l
		}
		r.add("route", Finding{
			Severity: Error, Group: o.Group, Text: "its address is one of this host's own", Cost: "what the host sends to the group does not leave it",
			Command: fmt.Sprintf("ip address del %s dev %s", ownPrefix(o.Group), dev), Remedy: "or name a group out of group_prefixes",
		})
		return link, nil, nil
	}
	by, err := netlink.LinkByIndex(routes[0].LinkIndex)
	if err != nil {
		return nil, nil, fmt.Errorf("interface of the route to %s: %w", o.Group, err)
	}
	if link != nil && link.Attrs().Index != by.Attrs().Index {
		noRoute.Text = fmt.Sprintf("the route to its address leads by %s, not by %s", by.Attrs().Name, o.Interface)
		r.add("route", noRoute)
		return link, nil, nil
	}
	r.add("route")
	return by, &routes[0], nil
}

// prefixAround is a prefix as groups usually have them.
func prefixAround(ip netip.Addr) netip.Prefix {
	bits := 24
	if ip.Is6() {
		bits = 112
	}
	p, _ := ip.Prefix(bits)
	return p
}

// withAddress returns the interface that has an address.
func withAddress(ip netip.Addr) string {
	if a := ownAddr(ip); a != nil {
		if l, err := netlink.LinkByIndex(a.LinkIndex); err == nil {
			return l.Attrs().Name
		}
	}
	return ""
}

// ownPrefix is an address of this host with its length.
func ownPrefix(ip netip.Addr) string {
	if a := ownAddr(ip); a != nil {
		return a.IPNet.String()
	}
	return ip.String()
}

func ownAddr(ip netip.Addr) *netlink.Addr {
	list, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil
	}
	for i := range list {
		if a, ok := netip.AddrFromSlice(list[i].IP); ok && a.Unmap() == ip {
			return &list[i]
		}
	}
	return nil
}

// sourceOf is the host's address for a group.
func sourceOf(route *netlink.Route, link netlink.Link, group netip.Addr) netip.Addr {
	if route != nil {
		if ip, ok := netip.AddrFromSlice(route.Src); ok {
			return ip.Unmap()
		}
	}
	family := netlink.FAMILY_V4
	if group.Is6() {
		family = netlink.FAMILY_V6
	}
	list, _ := netlink.AddrList(link, family)
	for i := range list {
		if ip, ok := netip.AddrFromSlice(list[i].IP); ok && !ip.IsLinkLocalUnicast() {
			return ip.Unmap()
		}
	}
	return netip.Addr{}
}

// checkInterface checks an interface's state and MTU.
func checkInterface(r *Report, link netlink.Link, o *HostOptions) {
	a := link.Attrs()
	const up = unix.IFF_UP | unix.IFF_RUNNING
	var found []Finding
	switch {
	case a.RawFlags&unix.IFF_UP == 0:
		found = append(found, Finding{Severity: Error, Text: a.Name + " is down", Cost: "the host is in no group", Command: "ip link set " + a.Name + " up"})
	case a.RawFlags&up != up:
		found = append(found, Finding{Severity: Error, Text: a.Name + " has no carrier", Cost: "the host is in no group", Remedy: "plug it in, or look at the switch's port: ip link set PORT up"})
	}
	r.add("interface", found...)
	need := o.PathMTU + rocev2.MaxHeaders(!o.Group.Is6())
	found = nil
	if a.MTU < need {
		found = append(found, Finding{
			Severity: Error, Text: fmt.Sprintf("the MTU of %s is %d; path MTU %d needs %d", a.Name, a.MTU, o.PathMTU, need),
			Cost: "an RNIC takes a smaller path MTU, so that its queue pairs do not fit the group; software drops the long packets", Command: fmt.Sprintf("ip link set %s mtu %d", a.Name, max(1500, need)),
			Remedy: "or groups with a smaller path MTU",
		})
	}
	r.add("mtu", found...)
}

// checkLoopback checks that the host reaches its own addresses.
func checkLoopback(r *Report) {
	links, err := netlink.LinkList()
	if err != nil {
		r.skip("loopback", err.Error())
		return
	}
	var found []Finding
	for _, l := range links {
		if a := l.Attrs(); a.RawFlags&unix.IFF_LOOPBACK != 0 && a.RawFlags&unix.IFF_UP == 0 {
			found = append(found, Finding{
				Severity: Error, Text: a.Name + " is down", Cost: "no group can be made here: the master of a group confirms its own membership by " + a.Name, Command: "ip link set " + a.Name + " up",
			})
		}
	}
	r.add("loopback", found...)
}

// checkHostOffloads checks that packets come to the host as they were sent.
func checkHostOffloads(r *Report, name string, ask func(string) (map[string]bool, error)) {
	on, err := ask(name)
	if err != nil {
		r.skip("offloads", "the features of "+name+" cannot be read: "+err.Error())
		return
	}
	var found []Finding
	for _, x := range []struct{ feature, text, off string }{
		{featureLRO, "large receive offload", "lro"},
		{featureGROList, "GRO of UDP packets into lists", "rx-gro-list"},
		{featureUDPGRO, "GRO of UDP packets", "rx-udp-gro-forwarding"},
	} {
		if on[x.feature] {
			found = append(found, Finding{
				Severity: Error, Text: fmt.Sprintf("%s is on at %s", x.text, name), Cost: "RoCEv2 packets are merged before a queue pair in software sees them: they count as lost. An RNIC takes its packets before that",
				Command: fmt.Sprintf("ethtool -K %s %s off", name, x.off),
			})
		}
	}
	r.add("offloads", found...)
}

// shortestPatience is the shortest time that a requester has to wait before it fails: the probes of a
// receiver that answers nothing take as long (mcast.DefaultRepairTries).
const shortestPatience = 68 * time.Millisecond

// patience says how long a queue pair tries without an answer, by the two kinds of requesters (RC.md §3.7).
func patience(o *HostOptions) string {
	floored, tries := rocev2.FlooredAckTimeout(o.Timeout), o.Retries
	if tries == 0 {
		tries = 7 // a requester with a floor repeats all the same
	}
	return fmt.Sprintf("the queue pair fails after %v without an answer; a ConnectX as delivered repeats each %v, and fails after about %v",
		rocev2.AckTimeout(o.Timeout)*time.Duration(o.Retries+1), floored.Round(time.Millisecond), (floored * time.Duration(tries)).Round(100*time.Millisecond))
}

// checkSettings checks timeout and retries of queue pairs.
func checkSettings(r *Report, o *HostOptions) {
	var found []Finding
	params := mcast.GroupParams{QPN: mcast.DefaultQPN, PathMTU: o.PathMTU, Policy: mcast.Evict, DeadAfter: o.DeadAfter, SenderTimeout: o.Timeout, SenderRetries: o.Retries}
	switch e := params.Check(1); {
	case o.Timeout == 0:
		found = append(found, Finding{Severity: Error, Text: "timeout 0: the queue pair waits for ever", Cost: "a last packet that is lost before the switch is never sent again", Remedy: "timeout 14 (67 ms) in ibv_modify_qp, or --qp-timeout of gleam's own programs"})
	case e != nil:
		found = append(found, Finding{Severity: Error, Text: e.Error(), Cost: "the switch rejects the registration, or the source's queue pair fails before a dead receiver is removed", Remedy: "timeout 14 and retry_cnt 7 go with a dead_after of 100 ms"})
	case rocev2.AckTimeout(o.Timeout)*time.Duration(o.Retries) < shortestPatience:
		found = append(found, Finding{
			Severity: Warning, Text: fmt.Sprintf("timeout %d and retry_cnt %d: %s", o.Timeout, o.Retries, patience(o)),
			Cost: "where it has no floor, a short pause of the switch or of a receiver ends the group", Remedy: "timeout 14 and retry_cnt 7 in ibv_modify_qp",
		})
	case o.Retries < 7:
		found = append(found, Finding{Severity: Warning, Text: fmt.Sprintf("retry_cnt %d: %s", o.Retries, patience(o)), Cost: "a restart of gleamd, or a link that is down for longer, ends the group", Remedy: "retry_cnt 7 in ibv_modify_qp, or --retries of gleam's own programs"})
	case o.Timeout > 20:
		found = append(found, Finding{Severity: Warning, Text: fmt.Sprintf("timeout %d: the queue pair waits %v before it sends again", o.Timeout, rocev2.AckTimeout(o.Timeout)), Cost: "a last packet that is lost before the switch stops the group for so long", Remedy: "timeout 14 (67 ms) in ibv_modify_qp"})
	}
	if o.RNRRetry < 7 {
		found = append(found, Finding{Severity: Warning, Text: fmt.Sprintf("rnr_retry %d: the queue pair fails after as many RNR NAKs", o.RNRRetry), Cost: "a source that waits for its turn gets RNR NAKs, and one of a receiver without posted receives ends the group", Remedy: "rnr_retry 7 in ibv_modify_qp: without end"})
	}
	r.add("qp-settings", found...)
}
