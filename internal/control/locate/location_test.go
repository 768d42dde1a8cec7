// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package locate

import (
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/gleam-rdma/gleam/lab"
)

var (
	someHost = netip.MustParseAddr("10.77.0.3")
	someMAC  = net.HardwareAddr{2, 0, 0, 0, 0, 3}
)

func bridgedLocation() Location {
	return Location{Ifindex: 3, MAC: someMAC, VLAN: 7, Hop: someHost, Links: []int{99, 3}, Learnt: Learnt{Bridge: 99, Port: 3, VID: 7}}
}

// A location is whole, or none. What is in between is refused, by Pins too, which stay as they are.
func TestLocationsAreWholeOrNone(t *testing.T) {
	p := &Pins{hosts: map[netip.Addr]Location{}, hops: map[hop]int{}, macs: map[station]int{}}
	for what, change := range map[string]func(*Location){
		"":                            func(*Location) {},
		"none":                        func(l *Location) { *l = Location{} },
		"not behind a bridge":         func(l *Location) { l.Links, l.Learnt = []int{3}, Learnt{} },
		"no port":                     func(l *Location) { l.Ifindex = 0 },
		"only the way":                func(l *Location) { *l = Location{Hop: l.Hop, Links: l.Links} },
		"only the port and the MAC":   func(l *Location) { *l = Location{Ifindex: l.Ifindex, MAC: l.MAC} },
		"no MAC address":              func(l *Location) { l.MAC = nil },
		"a short MAC address":         func(l *Location) { l.MAC = l.MAC[:5] },
		"a MAC address of zeros":      func(l *Location) { l.MAC = make(net.HardwareAddr, 6) },
		"a MAC address of many":       func(l *Location) { l.MAC = net.HardwareAddr{3, 0, 0, 0, 0, 3} },
		"a VID that is none":          func(l *Location) { l.VLAN = 4095 },
		"no next hop":                 func(l *Location) { l.Hop = netip.Addr{} },
		"no interfaces":               func(l *Location) { l.Links = nil },
		"a way that ends elsewhere":   func(l *Location) { l.Links = []int{99, 4} },
		"an entry of another bridge":  func(l *Location) { l.Learnt.Bridge = 98 },
		"an entry of another port":    func(l *Location) { l.Learnt.Port = 4 },
		"an entry of no port":         func(l *Location) { l.Learnt.Port = 0 },
		"a port, and no bridge to it": func(l *Location) { l.Learnt.Bridge = 0 },
	} {
		l := bridgedLocation()
		change(&l)
		whole := what == "" || what == "none" || what == "not behind a bridge"
		if err := l.Check(); (err == nil) != whole {
			t.Errorf("%q: %+v: %v", what, l, err)
		}
		if !whole {
			if err := p.Set(someHost, l); err == nil || len(p.hosts)+len(p.hops)+len(p.macs) > 0 {
				t.Errorf("%q: Set returns %v, and %d hosts are pinned", what, err, len(p.hosts))
			}
		}
	}
}

// What is made of a whole location is whole, or none; of none it is none. What it was made of stays.
func TestLocationsMadeOfOthers(t *testing.T) {
	routed := Location{Ifindex: 3, MAC: someMAC, Hop: someHost, Links: []int{3}}
	below := bridgedLocation() // the bridge's port is on top of this switch's
	below.Ifindex, below.Links = 5, []int{99, 3, 5}
	other := MAC{2, 0, 0, 0, 0, 9}
	for i, c := range []struct {
		of, got Location
		want    string
	}{
		{bridgedLocation(), bridgedLocation().At(4, other, 0), "4 02:00:00:00:00:09 0 [99 4] {99 4 7}"},
		{bridgedLocation(), bridgedLocation().At(3, other, 1), "3 02:00:00:00:00:09 1 [99 3] {99 3 7}"},
		{routed, routed.At(3, other, 0), "3 02:00:00:00:00:09 0 [3] {0 0 0}"},
		{routed, routed.At(4, other, 0), "none"},
		{below, below.At(4, other, 0), "none"},
		{Location{}, Location{}.At(4, other, 0), "none"},
		{Location{}, Location{Hop: someHost}.At(4, other, 0), "none"},
		{bridgedLocation(), bridgedLocation().Rebound(3, 8), "8 02:00:00:00:00:03 7 [99 8] {99 8 7}"},
		{bridgedLocation(), bridgedLocation().Rebound(99, 8), "3 02:00:00:00:00:03 7 [8 3] {8 3 7}"},
		{bridgedLocation(), bridgedLocation().Rebound(0, 8), "3 02:00:00:00:00:03 7 [99 3] {99 3 7}"},
		{routed, routed.Rebound(0, 8), "3 02:00:00:00:00:03 0 [3] {0 0 0}"},
		{below, below.Rebound(5, 8), "8 02:00:00:00:00:03 7 [99 3 8] {99 3 7}"},
		{Location{}, Location{}.Rebound(0, 8), "none"},
	} {
		l := c.got
		got := fmt.Sprint(l.Ifindex, " ", l.MAC, " ", l.VLAN, " ", l.Links, " ", l.Learnt)
		if reflect.DeepEqual(l, Location{}) {
			got = "none"
		}
		if err := l.Check(); err != nil || got != c.want {
			t.Errorf("case %d: %s, want %s; %v", i, got, c.want, err)
		}
		if err := c.of.Check(); err != nil {
			t.Errorf("case %d has changed what it was made of: %v", i, err)
		}
	}
}

// recall asks for the location that at is, without the way to it.
func (b *bench) recall(ip netip.Addr, at Location) (Location, error) {
	return b.l.Recall(ip, Held{at.Ifindex, MAC(at.MAC), at.VLAN, at.Hop})
}

// A location is recalled as it was, whatever strangers have made of the kernel's tables, and though
// the host is silent; not by another route, at another port than the bridge's, nor from what is no
// location.
func TestRecall(t *testing.T) {
	for _, routed := range []bool{false, true} {
		t.Run(fmt.Sprintf("routed %v", routed), func(t *testing.T) { testRecall(t, routed) })
	}
}

func testRecall(t *testing.T, routed bool) {
	b := newBench(t, lab.StarConfig{Hosts: 3, NoBridge: routed})
	h := b.Hosts[0]
	at := b.locate(h.IPv4)
	same := func(what string, ip netip.Addr, want Location) {
		t.Helper()
		if got, err := b.recall(ip, want); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v: %v", what, got, want, err)
		}
	}
	same("as it is", h.IPv4, at)
	same("IPv6", h.IPv6, b.locate(h.IPv6))
	if !routed { // the route would go, too
		b.do(func(nh *netlink.Handle) error { return nh.LinkSetDown(b.link(h.Port)) })
		same("with its link down", h.IPv4, at)
		b.do(func(nh *netlink.Handle) error { return nh.LinkSetUp(b.link(h.Port)) })
	}
	b.do(func(nh *netlink.Handle) error { // a stranger's frame
		return nh.NeighSet(&netlink.Neigh{LinkIndex: at.Links[0], IP: h.IPv4.AsSlice(), Family: netlink.FAMILY_V4, HardwareAddr: b.Hosts[1].MAC, State: netlink.NUD_REACHABLE})
	})
	same("with a poisoned neighbour table", h.IPv4, at)
	refused := func(what string, change func(*Held)) {
		t.Helper()
		x := Held{at.Ifindex, MAC(at.MAC), at.VLAN, at.Hop}
		change(&x)
		if got, err := b.l.Recall(h.IPv4, x); err == nil || got.Known() {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	refused("by another next hop", func(x *Held) { x.Hop = b.Hosts[1].IPv4 })
	refused("without a next hop", func(x *Held) { x.Hop = netip.Addr{} })
	refused("with another VID", func(x *Held) { x.VLAN = 7 })
	refused("at an interface that is no port", func(x *Held) { x.Ifindex = 1 })
	refused("at an interface that is not there", func(x *Held) { x.Ifindex = 1 << 20 })
	refused("at no interface", func(x *Held) { x.Ifindex = 0 })
	refused("with no host's MAC address", func(x *Held) { x.MAC = MAC{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF} })
	if routed {
		refused("at another port than the route's", func(x *Held) { x.Ifindex = b.link("p2").Attrs().Index })
		return
	}
	b.do(func(nh *netlink.Handle) error { return nh.LinkSetNoMaster(b.link(h.Port)) })
	refused("at a port that has left the bridge", func(*Held) {})
}
