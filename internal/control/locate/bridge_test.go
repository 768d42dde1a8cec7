// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package locate

import (
	"errors"
	"net"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// must fails the test on an error.
func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// bridged makes a port p1 of a bridge, up.
func bridged(t *testing.T) (b *Bridges, port *netlink.Veth, br *netlink.Bridge) {
	t.Helper()
	labtest.Enter(t)
	port = &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "p1"}, PeerName: "h1"}
	br = &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}}
	must(t, netlink.LinkAdd(port), netlink.LinkAdd(br))
	peer, err := netlink.LinkByName("h1")
	must(t, err, netlink.LinkSetUp(port), netlink.LinkSetUp(peer), netlink.LinkSetUp(br))
	b, err = OpenBridges()
	must(t, err)
	t.Cleanup(b.Close)
	return b, port, br
}

// What the kernel says of a bridge's port is read as it is: without a bridge, with one,
// locked, isolated, not forwarding, gone.
func TestBridgePort(t *testing.T) {
	b, port, br := bridged(t)
	index := port.Attrs().Index
	want := func(what string, want BridgePort) {
		t.Helper()
		p, err := b.Port(index)
		must(t, err)
		if p.Bridge != want.Bridge || p.Blocked != want.Blocked || p.Locked != want.Locked || p.Isolated != want.Isolated || p.Filters {
			t.Errorf("%s: bridge %d, blocked %v, locked %v, isolated %v", what, p.Bridge, p.Blocked, p.Locked, p.Isolated)
		}
	}
	want("without a bridge", BridgePort{})
	must(t, netlink.LinkSetMaster(port, br))
	want("a port as it is made", BridgePort{Bridge: br.Index})
	must(t, lab.SetBridgePort(index, lab.PortState, lab.StateDisabled))
	want("disabled", BridgePort{Bridge: br.Index, Blocked: true})
	must(t, lab.SetBridgePort(index, lab.PortState, lab.StateForwarding), lab.SetBridgePort(index, lab.PortIsolated, 1))
	want("isolated", BridgePort{Bridge: br.Index, Isolated: true})
	must(t, lab.SetBridgePort(index, lab.PortIsolated, 0), lab.SetBridgePort(index, lab.PortLocked, 1))
	want("locked", BridgePort{Bridge: br.Index, Locked: true})
	must(t, netlink.LinkSetDown(port))
	want("down", BridgePort{Bridge: br.Index, Locked: true, Blocked: true})
	must(t, netlink.LinkDel(port))
	if _, err := b.Port(index); err == nil {
		t.Error("the interface is gone, and no error")
	}
}

// The hosts that a bridge has at a port: not those of another port, nor addresses of
// the bridge's own.
func TestStations(t *testing.T) {
	b, port, br := bridged(t)
	other := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "p2"}, PeerName: "h2"}
	must(t, netlink.LinkAdd(other), netlink.LinkSetMaster(port, br), netlink.LinkSetMaster(other, br))
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 9}
	host := func(at *netlink.Veth, last byte) error {
		return netlink.NeighAdd(&netlink.Neigh{
			LinkIndex: at.Attrs().Index, Family: unix.AF_BRIDGE, State: netlink.NUD_NOARP, Flags: netlink.NTF_MASTER,
			HardwareAddr: append(mac[:5:5], last),
		})
	}
	must(t, host(port, 9), host(other, 8))
	p, err := b.Port(port.Attrs().Index)
	must(t, err)
	list, err := b.Stations(port.Attrs().Index, &p)
	must(t, err)
	peer, err := netlink.LinkByName(port.PeerName) // the bridge has learned it, if it has sent something already
	must(t, err)
	list = slices.DeleteFunc(list, func(s Station) bool { return s.MAC == MAC(peer.Attrs().HardwareAddr) })
	if !slices.Equal(list, []Station{{MAC: MAC(mac)}}) {
		t.Errorf("hosts at the port: %v", list)
	}
}

// A bridge that filters VLANs: those of the port, and those of the bridge itself.
func TestBridgePortVLANs(t *testing.T) {
	b, port, br := bridged(t)
	must(t, netlink.LinkSetMaster(port, br))
	if err := netlink.BridgeSetVlanFiltering(br, true); errors.Is(err, unix.EOPNOTSUPP) {
		t.Skip("this kernel's bridges do not filter VLANs")
	} else if err != nil {
		t.Fatal(err)
	}
	index := port.Attrs().Index
	p, err := b.Port(index)
	must(t, err)
	if !p.Filters || p.PVID != 1 || p.TagType != 0x8100 || !p.Own.has(1) || p.Own.has(2) || !p.Local.has(1) {
		t.Errorf("a port as it is made: %+v", p)
	}
	must(t, netlink.BridgeVlanAddRange(port, 10, 20, false, false, false, true),
		netlink.BridgeVlanAdd(port, 7, true, true, false, true), netlink.BridgeVlanDel(port, 1, true, true, false, true),
		netlink.BridgeVlanAdd(br, 20, false, false, true, false))
	p, err = b.Port(index)
	must(t, err)
	if p.PVID != 7 || p.Own.has(1) || !p.Own.has(7) || p.Own.has(9) || !p.Own.has(10) || !p.Own.has(20) || p.Own.has(21) || !p.Local.has(20) || p.Local.has(7) {
		t.Errorf("VLANs 7 and 10 to 20: %+v", p)
	}
}

// has reports whether v contains vid.
func (v *VLANs) has(vid uint16) bool { return v[vid>>3&511]&(1<<(vid&7)) != 0 }
