// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/rocev2"
)

// checkGroupAddress checks that a switch answers for a group's address and nobody else does,
// that it has the group's key, and that packets of full length get there.
func checkGroupAddress(r *Report, link netlink.Link, route *netlink.Route, o *HostOptions) {
	const unreached = "the switch is not reached"
	name := link.Attrs().Name
	hop := o.Group
	if gw, ok := netip.AddrFromSlice(route.Gw); ok {
		hop = gw.Unmap()
	}
	size := o.PathMTU + rocev2.MaxHeaders(o.Group.Is4())
	answers, failed, err := pinged([]probe{{to: o.Group}, {to: o.Group, size: size}})
	if err != nil {
		for _, check := range []string{"group-address", "switch-key", "path-mtu"} {
			r.skip(check, err.Error())
		}
		return
	}
	_, small := answers[0]
	_, large := answers[1]
	w := &way{name: name, group: o.Group, hop: hop, entry: neighbour(hop), echo: small, near: addressNear(link, o.Group)}
	if err := w.look(link, sourceOf(route, link, o.Group), o); err != nil {
		r.skip("group-address", err.Error())
		r.skip("switch-key", err.Error())
	} else {
		r.add("group-address", w.findings()...)
		w.checkKey(r, o)
	}
	switch {
	case !small:
		r.skip("path-mtu", unreached)
	case large:
		r.add("path-mtu")
	case errors.Is(failed[1], unix.EMSGSIZE):
		r.skip("path-mtu", "the MTU of "+name+" is too small")
	default:
		r.add("path-mtu", Finding{
			Severity: Error, Group: o.Group, Text: fmt.Sprintf("packets of %d bytes do not get to the switch and back, as path MTU %d needs; short ones do", size, o.PathMTU),
			Cost: "what the host sends in full length, or is to get, is lost each time that it is sent", At: "at the switch",
			Command: fmt.Sprintf("ip link set PORT mtu %d", max(1500, size)), Remedy: "the same at each interface on the way; gleam port list at the switch has the MTUs of its ports",
		})
	}
}

// pinged asks by the kernel's sockets, that is by its neighbour table.
func pinged(probes []probe) (answers map[int]answer, failed map[int]error, err error) {
	p, err := openPinger()
	if err != nil {
		return nil, nil, err
	}
	defer p.close()
	answers, failed = p.ask(probes)
	return answers, failed, nil
}

// way is the way from a host to a group, and who answers on it.
type way struct {
	name       string     // the name of the interface
	group, hop netip.Addr // hop is the group, or a gateway
	entry      *netlink.Neigh
	echo       bool       // somebody has answered an echo request by the kernel's entry
	near       netip.Addr // this host's, in whose subnet the group is; not valid: none
	found      []*answerer
}

// look asks all who answer for the hop.
func (w *way) look(link netlink.Link, src netip.Addr, o *HostOptions) error {
	s, done, err := newSurvey(link.Attrs().Index, link.Attrs().HardwareAddr, src, w.hop, w.group, o.Auth)
	if err != nil {
		return err
	}
	defer done()
	if err := s.resolve(); err != nil {
		return err
	}
	if w.entry != nil && len(w.entry.HardwareAddr) == len(rocev2.MAC{}) {
		s.at(rocev2.MAC(w.entry.HardwareAddr))
	}
	err = s.ask()
	w.found = s.found
	return err
}

// resolved are those who have answered ARP or neighbour discovery for the hop.
func (w *way) resolved() (list []*answerer) {
	for _, a := range w.found {
		if a.resolved {
			list = append(list, a)
		}
	}
	return list
}

// right reports whether a may answer for the hop: as the switch, or as the gateway to it.
func (w *way) right(a *answerer) bool {
	if w.hop == w.group {
		return a.isSwitch()
	}
	return a.leads()
}

// findings says what is wrong with who answers for the group.
func (w *way) findings() (found []Finding) {
	all := w.resolved()
	var right, wrong []*answerer
	for _, a := range all {
		if w.right(a) {
			right = append(right, a)
		} else {
			wrong = append(wrong, a)
		}
	}
	byHand := w.entry != nil && w.entry.State&netlink.NUD_PERMANENT != 0
	switch {
	case len(all) == 0:
		return []Finding{w.noAnswer()}
	case len(right) > 1:
		return append(w.strangers(right[0], wrong), w.severalSwitches(right))
	case len(right) == 0 && w.hop == w.group:
		return w.strangers(nil, wrong)
	case len(right) == 0:
		return []Finding{w.noAnswer()}
	}
	found = w.strangers(right[0], wrong)
	switch has := w.entry; {
	case byHand && w.echo:
		found = append(found, Finding{
			Severity: Warning, Group: w.group, Text: fmt.Sprintf("the neighbour table has an entry by hand for %s, at %s", w.hop, has.HardwareAddr),
			Cost: "when the switch gets another port or MAC address, the host goes on sending to this one", Command: fmt.Sprintf("ip neighbour del %s dev %s", w.hop, w.name),
		})
	case !w.echo, !byHand && has != nil && len(has.HardwareAddr) > 0 && rocev2.MAC(has.HardwareAddr) != right[0].mac:
		found = append(found, w.noAnswer())
	}
	return found
}

// questionsFor names what an address is asked for by.
func questionsFor(ip netip.Addr) string {
	if ip.Is6() {
		return "neighbour solicitations"
	}
	return "ARP requests"
}

// strangers returns a finding for each that answers for the hop and has not shown that it may. good is the
// switch, or the gateway to it; nil: neither has answered, and the others may be a switch that does not serve the group.
func (w *way) strangers(good *answerer, wrong []*answerer) (found []Finding) {
	for _, a := range wrong {
		f := Finding{Severity: Error, Group: w.group, At: "at the host with MAC address " + a.mac.String()}
		who := a.mac.String() + w.known(a)
		how := "as its own address"
		switch {
		case a.own:
			f.Command = fmt.Sprintf("ip address del %s/LENGTH dev INTERFACE", w.hop)
		case w.hop.Is6():
			how = "for another host (proxy neighbour discovery)"
			f.Command = fmt.Sprintf("ip neighbour del proxy %s dev INTERFACE", w.hop)
		default:
			how = "for another host (proxy ARP)"
			f.Command = "sysctl -w net.ipv4.conf.INTERFACE.proxy_arp=0"
		}
		f.Remedy = fmt.Sprintf("then here: ip neighbour flush to %s dev %s. Nobody but the switch may answer for an address in group_prefixes", w.hop, w.name)
		if good == nil {
			found = append(found, w.unproved(a, who, how, f.Command))
			continue
		}
		is := "is not the switch"
		if w.hop != w.group {
			is = "leads to no switch"
			f.Remedy = fmt.Sprintf("then here: ip neighbour flush to %s dev %s. Nobody but the gateway may answer for its address", w.hop, w.name)
		}
		f.Text = fmt.Sprintf("%d answer %s for %s at %s: %s%s, and %s, which %s and answers %s", len(wrong)+1, questionsFor(w.hop), w.hop, w.name, good.mac, w.role(good), who, is, how)
		f.Cost = "the host sends to whichever has answered last: registrations, data and acknowledgements that go to the other are lost"
		found = append(found, f)
	}
	return found
}

// unproved returns a finding of somebody who answers for a group where no switch has proved itself. A
// switch does not answer for groups that it does not serve, nor a host whose own address is in a group prefix. end ends it at a host.
func (w *way) unproved(a *answerer, who, how, end string) Finding {
	host := "it is another host with this address"
	if !a.own {
		host = "it is another host, which answers for others"
	}
	why := "outside group_prefixes, or without the key"
	if w.near.IsValid() {
		why = fmt.Sprintf("outside group_prefixes, without the key, or this host's own address %s is in group_prefixes", w.near)
	}
	return Finding{
		Severity: Error, Group: w.group, Cost: "the host cannot join the group, and its packets do not get there",
		Text: fmt.Sprintf("%s answers %s for %s at %s %s, and does not prove that it is the switch: either %s, or gleamd does not serve this group (%s)", who, questionsFor(w.hop), w.hop, w.name, how, host, why),
		Remedy: fmt.Sprintf("gleam port list at the switch has the MAC addresses of its ports. If it is none of them: %s at that host, then here: ip neighbour flush to %s dev %s, or name a group out of group_prefixes. "+
			"If it is one: group_prefixes there has to hold the group and no host's address, and envelope.keys its key; gleam doctor there says more. A gleamd of an earlier version is known by its key alone (--key-file)", end, w.hop, w.name),
	}
}

// addressNear returns the interface's address in whose subnet a group is.
func addressNear(link netlink.Link, group netip.Addr) netip.Addr {
	list, _ := netlink.AddrList(link, familyOf(group))
	for i := range list {
		if ip, ok := netip.AddrFromSlice(list[i].IP); ok && list[i].Contains(group.AsSlice()) {
			return ip.Unmap()
		}
	}
	return netip.Addr{}
}

// severalSwitches says that more than one port of switches answers.
func (w *way) severalSwitches(right []*answerer) Finding {
	var list []string
	for _, a := range right {
		list = append(list, a.mac.String()+w.role(a))
	}
	return Finding{
		Severity: Error, Group: w.group, Text: fmt.Sprintf("%d ports of switches answer %s for %s at %s: %s", len(right), questionsFor(w.hop), w.hop, w.name, strings.Join(list, ", ")),
		Cost:   "the host sends to whichever has answered last, and a group is registered at one of them",
		Remedy: "leave one port of one gleamd on this link: gleam port list at each has the MAC addresses of its ports, and gleam doctor host --key-file says which has the key",
	}
}

// role says what is known about an answerer that may answer.
func (w *way) role(a *answerer) string {
	switch {
	case w.hop != w.group:
		return " (by which a switch is reached)"
	case a.proved:
		return " (the switch, by the group's key)"
	}
	return " (the switch, as it says)"
}

// known names the host that has a MAC address in the neighbour table.
func (w *way) known(a *answerer) string {
	list, err := netlink.NeighList(0, netlink.FAMILY_ALL)
	if err != nil {
		return ""
	}
	mac := net.HardwareAddr(a.mac[:])
	for i := range list {
		if ip, ok := netip.AddrFromSlice(list[i].IP); ok && ip.Unmap() != w.hop && slices.Equal(list[i].HardwareAddr, mac) {
			return " (" + ip.Unmap().String() + ")"
		}
	}
	return ""
}

// checkKey says whether the switch that answers has proved that it has the group's key.
func (w *way) checkKey(r *Report, o *HostOptions) {
	const check = "switch-key"
	var claims, proved, refused *answerer
	for _, a := range w.found {
		if a.claims && claims == nil {
			claims = a
		}
		if a.proved {
			proved = a
		}
		if a.refused {
			refused = a
		}
	}
	switch {
	case proved != nil:
		r.add(check)
	case claims == nil && refused == nil:
		r.skip(check, "no switch answers")
	case len(o.Auth.Keys) == 0:
		r.skip(check, fmt.Sprintf("who answers at %s says that it is a switch, and nothing proves it: the group's key does (--key-file)", claims.at))
	case refused != nil:
		r.add(check, Finding{
			Severity: Error, Group: w.group, Text: fmt.Sprintf("the switch does not take key %d of this host: it has another one under this number, or none", o.Auth.Send),
			Cost: "no group can be registered from here, and no member confirmed", At: "at the switch", Command: "gleam reload",
			Remedy: "after the file of envelope.keys has the same key as this host's: sha256sum compares them; --key-id is its id there",
		})
	default:
		r.add(check, Finding{
			Severity: Error, Group: w.group, Text: fmt.Sprintf("who answers at %s says that it is a switch, and does not prove that it has key %d", claims.at, o.Auth.Send),
			Cost:   "somebody else may speak for the switch, or its registrations stand still",
			Remedy: "at the switch: gleam port list has the MAC addresses of its ports, gleam events and gleam stats what it refuses (envelope_wrong_location, rate_limit); its envelope.port is 4797 by default",
		})
	}
}

// noAnswer says why the host does not reach the switch, by the kernel's neighbour entry of the
// next hop.
func (w *way) noAnswer() Finding {
	hop, name := w.hop, w.name
	f := Finding{
		Severity: Error, Group: w.group, Cost: "the host cannot join the group, and its packets do not get there",
		Remedy: "at the switch: gleam port list, and gleam doctor; the address has to be in group_prefixes, and the host in the port's allow lists",
	}
	var right *answerer
	for _, x := range w.resolved() {
		if w.right(x) {
			right = x
		}
	}
	has := func(states int) bool {
		return w.entry != nil && w.entry.State&states != 0 && len(w.entry.HardwareAddr) == len(rocev2.MAC{})
	}
	switch {
	case has(netlink.NUD_PERMANENT):
		f.Text = fmt.Sprintf("nobody answers for its address at %s, which is an entry by hand in the neighbour table", w.entry.HardwareAddr)
		f.Command = fmt.Sprintf("ip neighbour del %s dev %s", hop, name)
	case right != nil && has(^unsettled) && rocev2.MAC(w.entry.HardwareAddr) != right.mac:
		f.Text = fmt.Sprintf("the neighbour table has %s at %s, and its MAC address is %s%s", hop, w.entry.HardwareAddr, right.mac, w.role(right))
		f.Command = fmt.Sprintf("ip neighbour flush to %s dev %s", hop, name)
	case right != nil:
		f.Text = fmt.Sprintf("the switch answers at %s, and an echo request by this host's kernel is not answered", right.mac)
		f.Remedy = "see the host's packet filter: nft list ruleset"
	case len(w.resolved()) > 0:
		f.Text = fmt.Sprintf("%s answers %s for %s at %s, and no switch answers behind it", w.resolved()[0].mac, questionsFor(hop), hop, name)
	default:
		f.Text = fmt.Sprintf("nobody answers %s for %s at %s", questionsFor(hop), hop, name)
	}
	return f
}

// neighbour returns the kernel's neighbour entry of an address; nil: there is none.
func neighbour(ip netip.Addr) *netlink.Neigh {
	list, err := netlink.NeighList(0, familyOf(ip))
	if err != nil {
		return nil
	}
	for i := range list {
		if x, ok := netip.AddrFromSlice(list[i].IP); ok && x.Unmap() == ip {
			return &list[i]
		}
	}
	return nil
}

func familyOf(ip netip.Addr) int {
	if ip.Is6() {
		return netlink.FAMILY_V6
	}
	return netlink.FAMILY_V4
}
