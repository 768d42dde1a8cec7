// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package locate

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// bench is a Locator in a star's switch.
type bench struct {
	*lab.Star
	t *testing.T
	l *Locator
}

func newBench(t *testing.T, c lab.StarConfig) *bench {
	t.Helper()
	b := &bench{Star: labtest.Star(t, c), t: t}
	var ports []int
	for _, p := range b.Ports {
		ports = append(ports, b.link(p).Attrs().Index)
	}
	if err := b.Switch.Do(func() (err error) { b.l, err = New(ports); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.l.Close)
	return b
}

func (b *bench) link(name string) netlink.Link {
	b.t.Helper()
	l, err := b.Switch.Handle().LinkByName(name)
	if err != nil {
		b.t.Fatal(err)
	}
	return l
}

// locate asks until the kernel knows.
func (b *bench) locate(ip netip.Addr) Location {
	b.t.Helper()
	for range 150 {
		at, err := b.l.Locate(ip)
		if err == nil {
			return at
		}
		if !errors.Is(err, ErrPending) {
			b.t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	b.t.Fatalf("%s is not found in 3 s", ip)
	return Location{}
}

func (b *bench) do(f func(*netlink.Handle) error) {
	b.t.Helper()
	if err := f(b.Switch.Handle()); err != nil {
		b.t.Fatal(err)
	}
}

// What a stranger fills the tables with costs a question nothing: 300,000 addresses in the
// forwarding database, and 500 neighbours.
//
// Each case has its own namespaces: the kernel's limit of 1024 neighbours is one for all.
func TestAQuestionDoesNotReadTables(t *testing.T) {
	for _, routed := range []bool{false, true} {
		t.Run(fmt.Sprintf("routed %v", routed), func(t *testing.T) { aQuestionDoesNotReadTables(t, routed) })
	}
}

func aQuestionDoesNotReadTables(t *testing.T, routed bool) {
	b := newBench(t, lab.StarConfig{Hosts: 3, NoBridge: routed})
	h := b.Hosts[1]
	port := b.link(h.Port).Attrs().Index
	took := func() time.Duration {
		var ds []time.Duration
		for range 21 {
			for _, ip := range []netip.Addr{h.IPv4, h.IPv6} {
				start := time.Now()
				at := b.locate(ip)
				ds = append(ds, time.Since(start))
				if at.Ifindex != port || at.MAC.String() != h.MAC.String() || at.VLAN != 0 || at.Hop != ip || !slices.Contains(at.Links, port) {
					t.Fatalf("%s is at %+v, want port %d, %v", ip, at, port, h.MAC)
				}
			}
		}
		slices.Sort(ds)
		return ds[len(ds)/2]
	}
	before := took()
	const n = 300_000
	on := b.link(h.Port)
	if !routed {
		labtest.Learn(t, b.Switch, b.Ports[2], n)
		on = b.link(lab.StarBridge)
		if _, err := b.l.kernel.learnt(on.Attrs().Index, labtest.LearntMAC(n-1), 0); err != nil {
			t.Fatalf("address %d: %v", n-1, err)
		}
	}
	b.do(func(k *netlink.Handle) error {
		for i := range 500 {
			set := func() error {
				return k.NeighSet(&netlink.Neigh{LinkIndex: on.Attrs().Index, Family: unix.AF_INET, IP: net.IPv4(10, 77, 8+byte(i>>8), byte(i)),
					State: netlink.NUD_STALE, HardwareAddr: labtest.LearntMAC(i)})
			}
			err := set()
			for end := time.Now().Add(10 * time.Second); errors.Is(err, unix.ENOBUFS) && time.Now().Before(end); err = set() {
				time.Sleep(10 * time.Millisecond) // namespaces of other tests have neighbours too, and end
			}
			if err != nil {
				return fmt.Errorf("neighbour %d: %w", i, err)
			}
		}
		return nil
	})
	after := took()
	t.Logf("a question takes %v, with full tables %v", before, after)
	if after > before+2*time.Millisecond {
		t.Errorf("a question took %v, and takes %v with full tables", before, after)
	}
}

// Where a bridge filters VLANs, an address is looked for in the VLAN of the interface
// that the route names, and the VID is that of frames at the port.
func TestVLANsOfABridge(t *testing.T) {
	const vid = 100
	b := newBench(t, lab.StarConfig{Hosts: 3})
	br := b.link(lab.StarBridge)
	if err := b.Switch.Handle().BridgeSetVlanFiltering(br, true); errors.Is(err, unix.EOPNOTSUPP) {
		t.Skip("this kernel's bridges do not filter VLANs (CONFIG_BRIDGE_VLAN_FILTERING)")
	} else if err != nil {
		t.Fatal(err)
	}
	at := b.locate(b.Hosts[0].IPv4)
	if port := b.link("p1").Attrs().Index; at.Ifindex != port || at.VLAN != 0 {
		t.Errorf("in the PVID, untagged: %+v, want port %d, no VID", at, port)
	}
	// Host 1's MAC in another VLAN at another port, by an address there.
	b.do(func(k *netlink.Handle) error {
		for _, port := range []string{"p2", "p3"} {
			if err := k.BridgeVlanAdd(b.link(port), vid, false, false, false, true); err != nil {
				return err
			}
		}
		if err := k.BridgeVlanAdd(br, vid, false, false, true, false); err != nil {
			return err
		}
		top := &netlink.Vlan{LinkAttrs: netlink.LinkAttrs{Name: "br0.100", ParentIndex: br.Attrs().Index}, VlanId: vid}
		if err := k.LinkAdd(top); err != nil {
			return err
		}
		if err := k.LinkSetUp(top); err != nil {
			return err
		}
		if err := k.AddrAdd(top, &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(10, 78, 0, 1), Mask: net.CIDRMask(24, 32)}}); err != nil {
			return err
		}
		if err := k.NeighSet(&netlink.Neigh{LinkIndex: top.Index, Family: unix.AF_INET, IP: net.IPv4(10, 78, 0, 2), State: netlink.NUD_PERMANENT, HardwareAddr: b.Hosts[0].MAC}); err != nil {
			return err
		}
		return k.NeighAppend(&netlink.Neigh{LinkIndex: b.link("p2").Attrs().Index, Family: unix.AF_BRIDGE, Flags: netlink.NTF_MASTER, State: netlink.NUD_REACHABLE, Vlan: vid, HardwareAddr: b.Hosts[0].MAC})
	})
	at = b.locate(netip.MustParseAddr("10.78.0.2"))
	if port := b.link("p2").Attrs().Index; at.Ifindex != port || at.VLAN != vid {
		t.Errorf("in VLAN %d, tagged: %+v, want port %d and the VID", vid, at, port)
	}
	if again, err := b.recall(netip.MustParseAddr("10.78.0.2"), at); err != nil || !reflect.DeepEqual(again, at) {
		t.Errorf("recalled: %+v, %v, want %+v", again, err, at)
	}
	if again := b.locate(b.Hosts[0].IPv4); again.Ifindex != b.link("p1").Attrs().Index || again.VLAN != 0 {
		t.Errorf("in the PVID again: %+v", again)
	}
	b.do(func(k *netlink.Handle) error { return k.BridgeVlanDel(br, 1, true, true, true, false) })
	if at, err := b.l.Locate(b.Hosts[0].IPv4); err == nil || errors.Is(err, ErrPending) {
		t.Errorf("a bridge without a PVID: %+v, %v; want an error that says so", at, err)
	}
}

// A bridge's VLANs as the kernel writes them: single ones, ranges and flags.
func TestVLANMessages(t *testing.T) {
	entry := func(flags, first, last uint16) []byte {
		e := nl.NewRtAttr(vlanEntry|nestedAttributes, nil)
		e.AddRtAttr(vlanEntryInfo, append(nl.Uint16Attr(flags), nl.Uint16Attr(first)...))
		e.AddRtAttr(5, []byte{1}) // something that is not looked at
		if last != 0 {
			e.AddRtAttr(vlanEntryRange, nl.Uint16Attr(last))
		}
		return e.Serialize()
	}
	var v vlans
	for _, msg := range [][]byte{
		slices.Concat(make([]byte, vlanMessageHeader), entry(vlanFlagPVID|vlanFlagUntagged, 1, 0), entry(0, 100, 0)),
		slices.Concat(make([]byte, vlanMessageHeader), entry(0, 200, 300), entry(vlanFlagUntagged, 400, 401)),
	} {
		if err := v.parse(msg); err != nil {
			t.Fatal(err)
		}
	}
	if v.pvid != 1 {
		t.Errorf("PVID %d, want 1", v.pvid)
	}
	for vid, want := range map[uint16][2]bool{
		1: {true, true}, 2: {}, 100: {true, false}, 101: {}, 199: {}, 200: {true, false}, 300: {true, false}, 301: {}, 401: {true, true},
	} {
		if member, untagged := v.find(vid); member != want[0] || untagged != want[1] {
			t.Errorf("VLAN %d: member %v, untagged %v, want %v", vid, member, untagged, want)
		}
	}
	if err := v.parse([]byte{7}); err == nil {
		t.Error("a truncated message is no error")
	}
}

// A host with another MAC address is found once the kernel has given up the one that it has. An entry
// that somebody has set stays.
func TestInvalidate(t *testing.T) {
	b := newBench(t, lab.StarConfig{Hosts: 3})
	h := b.Hosts[1]
	fresh := net.HardwareAddr{2, 0x67, 0x6c, 0x77, 0, 1}
	for _, ip := range []netip.Addr{h.IPv4, h.IPv6} {
		b.locate(ip)
	}
	if err := func() error {
		link, err := h.NS.Handle().LinkByName(h.Interface)
		if err != nil {
			return err
		}
		return h.NS.Handle().LinkSetHardwareAddr(link, fresh)
	}(); err != nil {
		t.Fatal(err)
	}
	for _, ip := range []netip.Addr{h.IPv4, h.IPv6} {
		if at := b.locate(ip); at.MAC.String() != h.MAC.String() {
			t.Logf("%s: the kernel has its new address by itself", ip)
		}
		if err := b.l.Invalidate(ip); err != nil {
			t.Fatal(err)
		}
		if at := b.locate(ip); at.MAC.String() != fresh.String() {
			t.Errorf("%s: it is at %v, want %v", ip, at.MAC, fresh)
		}
	}
	on, set := b.link(lab.StarBridge).Attrs().Index, b.Hosts[2].IPv4
	b.do(func(k *netlink.Handle) error {
		return k.NeighSet(&netlink.Neigh{LinkIndex: on, Family: unix.AF_INET, IP: net.IP(set.AsSlice()), HardwareAddr: b.Hosts[0].MAC, State: netlink.NUD_PERMANENT})
	})
	if err := b.l.Invalidate(set); err != nil {
		t.Fatal(err)
	}
	if at := b.locate(set); at.MAC.String() != b.Hosts[0].MAC.String() {
		t.Errorf("an entry that was set for good is given up: %v", at.MAC)
	}
}
