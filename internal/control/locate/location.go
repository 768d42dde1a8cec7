// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package locate

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
)

// Location is where a member is. It is whole, or the zero value, which is none: Check says whether
// a value is one of these. Whole ones come from Locator, and from others by At and Rebound; no
// other package puts one together from its parts.
type Location struct {
	Ifindex int              // the port's interface
	MAC     net.HardwareAddr // 6 bytes: the member's, or its gateway's
	VLAN    uint16           // 802.1Q VID that its frames carry on that port; 0: untagged
	// Hop, Links and Learnt are the dependencies of the location: the neighbour on the
	// way, the interfaces from that of the route down to the port, and the bridge's
	// entry. If Locate returns ErrPending, they are known as far as Locate came, and
	// Ifindex is 0.
	Hop    netip.Addr
	Links  []int
	Learnt Learnt // the entry of the bridge on the way
}

// maxVID is the highest VID of a VLAN.
const maxVID = 4094

// Known reports whether l is a location, and not none.
func (l *Location) Known() bool { return l.Ifindex != 0 }

// Check returns why l is neither whole nor none.
func (l *Location) Check() error {
	if l.Ifindex == 0 && len(l.MAC)+len(l.Links) == 0 && l.VLAN == 0 && !l.Hop.IsValid() && l.Learnt == (Learnt{}) {
		return nil
	}
	return errors.Join(checkAddress(l.Ifindex, l.MAC, l.VLAN, l.Hop), l.checkLinks())
}

// checkAddress checks the parts of a location that do not depend on the way to it.
func checkAddress(ifindex int, mac net.HardwareAddr, vlan uint16, hop netip.Addr) error {
	switch {
	case ifindex <= 0:
		return fmt.Errorf("a location has the interface index %d", ifindex)
	case len(mac) != len(MAC{}) || mac[0]&1 != 0 || MAC(mac) == MAC{}:
		return fmt.Errorf("a location has the MAC address %q, which no host can have", mac)
	case vlan > maxVID:
		return fmt.Errorf("a location has the VID %d", vlan)
	case !hop.IsValid():
		return errors.New("a location has no next hop")
	}
	return nil
}

// checkLinks checks the way to a location.
func (l *Location) checkLinks() error {
	switch x := l.Learnt; {
	case len(l.Links) == 0 || l.Links[len(l.Links)-1] != l.Ifindex:
		return fmt.Errorf("a location at interface %d has a way over interfaces %v, which does not end there", l.Ifindex, l.Links)
	case x != (Learnt{}) && (!slices.Contains(l.Links, x.Bridge) || !slices.Contains(l.Links, x.Port)):
		return fmt.Errorf("a location is behind port %d of bridge %d, which are not on its way over interfaces %v", x.Port, x.Bridge, l.Links)
	}
	return nil
}

// At returns the location of the same host at another port of the bridge that it is behind, or
// with another MAC address or VID. It is none if l is, or if the host cannot get to that port
// without a change of routes.
func (l Location) At(ifindex int, mac MAC, vlan uint16) Location {
	if !l.Known() {
		return Location{}
	}
	if ifindex != l.Ifindex {
		if l.Learnt.Bridge == 0 || l.Learnt.Port != l.Ifindex {
			return Location{}
		}
		l.Links = append(slices.Clone(l.Links[:len(l.Links)-1]), ifindex)
		l.Ifindex, l.Learnt.Port = ifindex, ifindex
	}
	l.MAC, l.VLAN = mac[:], vlan
	return l
}

// Rebound returns l with the interface index now in place of was, for an interface that was made
// anew.
func (l Location) Rebound(was, now int) Location {
	if !l.Known() || was == 0 { // 0: there was no interface
		return l
	}
	if l.Ifindex == was {
		l.Ifindex = now
	}
	if l.Learnt.Port == was {
		l.Learnt.Port = now
	}
	if l.Learnt.Bridge == was {
		l.Learnt.Bridge = now
	}
	if i := slices.Index(l.Links, was); i >= 0 {
		l.Links = slices.Clone(l.Links)
		l.Links[i] = now
	}
	return l
}

// Held is a location without the way to it: what stays true while this switch is stopped.
type Held struct {
	Ifindex int
	MAC     MAC
	VLAN    uint16
	Hop     netip.Addr // the neighbour whose MAC address that is
}

// Recall returns the location of ip that h is. The way to it is that of the routes and the bridges,
// which are the operator's; the neighbour table and the forwarding databases, which any frame can
// change, are not read. It is an error if the way does not lead there.
func (l *Locator) Recall(ip netip.Addr, h Held) (Location, error) {
	if err := checkAddress(h.Ifindex, h.MAC[:], h.VLAN, h.Hop); err != nil {
		return Location{}, err
	}
	ifindex, hop, err := l.route(ip)
	if err != nil {
		return Location{}, err
	}
	if hop != h.Hop {
		return Location{}, fmt.Errorf("the next hop to %s is %s, and was %s", ip, hop, h.Hop)
	}
	link, err := l.handle.LinkByIndex(ifindex)
	if err != nil {
		return Location{}, fmt.Errorf("interface %d on the way to %s: %w", ifindex, hop, err)
	}
	way := Location{Links: []int{ifindex}, Hop: hop, MAC: h.MAC[:]}
	at, err := l.port(link, way, func(br *netlink.Bridge, at *Location) (Learnt, uint16, error) {
		port, err := l.handle.LinkByIndex(h.Ifindex)
		switch {
		case err != nil:
			return Learnt{}, 0, fmt.Errorf("the port of %s: %w", ip, err)
		case port.Attrs().MasterIndex != br.Index:
			return Learnt{}, 0, fmt.Errorf("%s is no port of bridge %s, by which %s is reached", port.Attrs().Name, br.Name, ip)
		}
		in, err := l.vidIn(br, at.VLAN)
		if err != nil {
			return Learnt{}, 0, err
		}
		return l.behind(br, h.Ifindex, in, at)
	})
	switch {
	case err != nil:
		return Location{}, err
	case at.Ifindex != h.Ifindex || at.VLAN != h.VLAN:
		return Location{}, fmt.Errorf("the way to %s leads to interface %d with VID %d, and was to %d with VID %d", ip, at.Ifindex, at.VLAN, h.Ifindex, h.VLAN)
	}
	return at, at.Check()
}
