// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package locate

import (
	"net"
	"net/netip"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Changes are taken once, and a list that grows too long becomes "anything".
func TestChangesAreTakenOnce(t *testing.T) {
	c := NewChanges()
	c.Link(3)
	c.Route(netip.MustParsePrefix("10.1.2.3/8"))
	if len(c.Bell) != 1 || !c.Links() {
		t.Error("the bell does not ring")
	}
	s := c.Take()
	if _, ok := s.Routes[netip.MustParsePrefix("10.0.0.0/8")]; !ok || len(s.Links) != 1 || s.All {
		t.Errorf("taken: %+v", s)
	}
	if s = c.Take(); s.All || len(s.Links)+len(s.Routes) > 0 || c.Links() {
		t.Errorf("taken again: %+v", s)
	}
	for i := range maxChanges + 1 {
		c.Link(i)
	}
	c.Link(1)
	if s = c.Take(); !s.All || len(s.Links) > 0 {
		t.Errorf("after too many: all %v, %d links", s.All, len(s.Links))
	}
}

// A message of the kernel becomes the change that it is.
func TestNeighbourMessages(t *testing.T) {
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 9}
	ip := netip.MustParseAddr("10.1.2.3")
	c := NewChanges()
	say := func(kind uint16, family, state int, mac net.HardwareAddr) Set {
		n := netlink.NeighUpdate{Type: kind, Neigh: netlink.Neigh{Family: family, State: state, HardwareAddr: mac}}
		if family != unix.AF_BRIDGE {
			n.IP = net.IP(ip.AsSlice()).To16() // as the library has it
		}
		c.neighbour(&n)
		return c.Take()
	}
	for _, x := range []struct {
		kind   uint16
		state  int
		mac    net.HardwareAddr
		usable bool
	}{
		{unix.RTM_NEWNEIGH, netlink.NUD_REACHABLE, mac, true},
		{unix.RTM_NEWNEIGH, netlink.NUD_STALE, mac, true},
		{unix.RTM_NEWNEIGH, netlink.NUD_INCOMPLETE, nil, false},
		{unix.RTM_NEWNEIGH, netlink.NUD_FAILED, mac, false},
		{unix.RTM_DELNEIGH, netlink.NUD_REACHABLE, mac, false},
	} {
		s := say(x.kind, unix.AF_INET, x.state, x.mac)
		if n, ok := s.Neighbours[ip]; !ok || n.Usable != x.usable || x.usable && n.MAC != MAC(mac) {
			t.Errorf("message %d, state %#x: %+v", x.kind, x.state, s)
		}
	}
	if s := say(unix.RTM_DELNEIGH, unix.AF_BRIDGE, 0, mac); len(s.Learnt) != 1 || s.Learnt[MAC(mac)] {
		t.Errorf("forgotten: %+v", s)
	}
	// A host that moves is learnt at one port and forgotten at the other one.
	c.Learn(MAC(mac), true)
	if s := say(unix.RTM_DELNEIGH, unix.AF_BRIDGE, 0, mac); !s.Learnt[MAC(mac)] {
		t.Errorf("learnt, then forgotten: %+v", s)
	}
	if s := say(unix.RTM_NEWNEIGH, unix.AF_BRIDGE, 0, mac); !s.Learnt[MAC(mac)] {
		t.Errorf("learnt: %+v", s)
	}
	for _, r := range []struct {
		family byte
		dst    string
		want   string
	}{
		{unix.AF_INET, "", "0.0.0.0/0"}, {unix.AF_INET6, "", "::/0"}, {unix.AF_INET, "10.1.0.0/16", "10.1.0.0/16"},
		{unix.AF_INET6, "fd00::7/128", "fd00::7/128"}, {128, "", "invalid Prefix"}, // RTNL_FAMILY_IPMR
	} {
		m := syscall.NetlinkMessage{Header: syscall.NlMsghdr{Type: unix.RTM_NEWROUTE}, Data: make([]byte, unix.SizeofRtMsg)}
		m.Data[0] = r.family
		if r.dst != "" {
			p := netip.MustParsePrefix(r.dst)
			m.Data[1] = byte(p.Bits())
			m.Data = append(m.Data, nl.NewRtAttr(unix.RTA_TABLE, nl.Uint32Attr(254)).Serialize()...)
			m.Data = append(m.Data, nl.NewRtAttr(unix.RTA_DST, p.Addr().AsSlice()).Serialize()...)
		}
		if p, ok := destination(&m); p.String() != r.want || ok != p.IsValid() {
			t.Errorf("destination %v, want %s", p, r.want)
		}
	}
}
