// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package locate

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/lab"
)

// pins returns Pins of the bench's switch.
func (b *bench) pins(ports ...string) (p *Pins, stale int) {
	b.t.Helper()
	var index []int
	for _, name := range ports {
		index = append(index, b.link(name).Attrs().Index)
	}
	if err := b.Switch.Do(func() (err error) { p, stale, err = NewPins(index); return err }); err != nil {
		b.t.Fatal(err)
	}
	return p, stale
}

// entries are the kernel's entries of mac: in forwarding databases and as neighbours.
func (b *bench) entries(mac net.HardwareAddr) string {
	b.t.Helper()
	var list []string
	for _, f := range []int{unix.AF_BRIDGE, unix.AF_INET, unix.AF_INET6} {
		ns, err := b.Switch.Handle().NeighList(0, f)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, n := range ns {
			if n.HardwareAddr.String() != mac.String() {
				continue
			}
			link, err := b.Switch.Handle().LinkByIndex(n.LinkIndex)
			if err != nil {
				b.t.Fatal(err)
			}
			s := link.Attrs().Name
			switch {
			case f == unix.AF_BRIDGE && isPin(&n):
				s += " pinned"
			case f != unix.AF_BRIDGE && n.State&netlink.NUD_PERMANENT != 0:
				s += " " + n.IP.String() + " permanent"
			case f != unix.AF_BRIDGE:
				continue // as the kernel has learnt it: of no interest here
			}
			list = append(list, s)
		}
	}
	return strings.Join(list, ", ")
}

// Neither a frame with a pinned host's MAC address nor a gratuitous ARP or neighbour
// advertisement moves its entries; they go when the last one that needs them is gone.
func TestPinsHold(t *testing.T) {
	b := newBench(t, lab.StarConfig{Hosts: 3})
	p, stale := b.pins(b.Ports...)
	if stale != 0 {
		t.Errorf("%d stale pins at first", stale)
	}
	h := b.Hosts[0]
	at4, at6 := b.locate(h.IPv4), b.locate(h.IPv6)
	for range 2 { // twice is like once
		for ip, at := range map[netip.Addr]Location{h.IPv4: at4, h.IPv6: at6} {
			if err := p.Set(ip, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	pinned := fmt.Sprintf("p1 pinned, br0 %s permanent, br0 %s permanent", h.IPv4, h.IPv6)
	if got := b.entries(h.MAC); got != pinned {
		t.Errorf("pinned: %q, want %q", got, pinned)
	}
	// Host 3 takes host 1's MAC address, and speaks.
	if err := b.Hosts[2].NS.Do(func() error {
		nh := b.Hosts[2].NS.Handle()
		link, err := nh.LinkByName(lab.HostInterface)
		if err == nil {
			err = nh.LinkSetHardwareAddr(link, h.MAC)
		}
		if err != nil {
			return err
		}
		c, err := net.Dial("udp4", lab.StarSwitchIPv4.String()+":9")
		if err != nil {
			return err
		}
		defer c.Close()
		for range 5 {
			_, _ = c.Write([]byte{0})
			time.Sleep(10 * time.Millisecond)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := b.entries(h.MAC); got != pinned {
		t.Errorf("after frames from elsewhere: %q, want %q", got, pinned)
	}
	// A confirmed move takes the entries along.
	if err := p.Set(h.IPv4, at4.At(b.link("p2").Attrs().Index, MAC(h.MAC), 0)); err != nil {
		t.Fatal(err)
	}
	if got := b.entries(h.MAC); !strings.HasPrefix(got, "p2 pinned, ") {
		t.Errorf("moved: %q", got)
	}
	if err := p.Set(h.IPv4, Location{}); err != nil {
		t.Fatal(err)
	}
	if got, want := b.entries(h.MAC), fmt.Sprintf("p2 pinned, br0 %s permanent", h.IPv6); got != want {
		t.Errorf("one of two addresses gone: %q, want %q", got, want)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimPrefix(b.entries(h.MAC), "p3"); got != "" { // p3 may have learnt it since
		t.Errorf("closed: %q", got)
	}
}

// What an operator has entered stays as it is, at any time.
func TestOperatorsEntriesStay(t *testing.T) {
	b := newBench(t, lab.StarConfig{Hosts: 2})
	h := b.Hosts[0]
	at := b.locate(h.IPv4)
	other := net.HardwareAddr{2, 9, 9, 9, 9, 9}
	b.do(func(nh *netlink.Handle) error {
		if err := nh.NeighSet(&netlink.Neigh{LinkIndex: b.link("br0").Attrs().Index, Family: unix.AF_INET, IP: h.IPv4.AsSlice(), HardwareAddr: other, State: netlink.NUD_PERMANENT}); err != nil {
			return err
		}
		return nh.NeighSet(&netlink.Neigh{
			LinkIndex: b.link("p2").Attrs().Index, Family: unix.AF_BRIDGE, HardwareAddr: h.MAC,
			State: netlink.NUD_NOARP, Flags: netlink.NTF_MASTER | netlink.NTF_STICKY,
		})
	})
	p, _ := b.pins("p1", "p2")
	if err := p.Set(h.IPv4, at); err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		if got := b.entries(other); got != fmt.Sprintf("br0 %s permanent", h.IPv4) {
			t.Errorf("%s: the operator's neighbour entry is %q", when, got)
		}
		if got := b.entries(h.MAC); got != "p2" {
			t.Errorf("%s: the operator's forwarding database entry is %q", when, got)
		}
	}
	check("pinned")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	check("closed")
	if err := b.Switch.Do(func() error {
		n, err := Release()
		if n != 0 {
			t.Errorf("%d entries released", n)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	check("released")
}

// What a killed gleamd leaves goes with the next one's start at the same ports, or by
// Release; pins at others' ports stay.
func TestStalePinsAreRemoved(t *testing.T) {
	for _, routed := range []bool{false, true} {
		b := newBench(t, lab.StarConfig{Hosts: 3, NoBridge: routed})
		p, _ := b.pins(b.Ports...)
		each := 1 // entry of each host
		if !routed {
			each = 2
		}
		for _, h := range b.Hosts {
			if err := p.Set(h.IPv6, b.locate(h.IPv6)); err != nil {
				t.Fatal(err)
			}
		}
		left := func() (n int) {
			for _, h := range b.Hosts {
				if s := b.entries(h.MAC); s != "" && strings.Contains(s, " ") {
					n += strings.Count(s, ",") + 1
				}
			}
			return n
		}
		if n := left(); n != 3*each {
			t.Errorf("routed %v: %d entries", routed, n)
		}
		next, stale := b.pins("p1") // of another gleamd, with one port
		if stale != each || left() != 2*each {
			t.Errorf("routed %v: %d stale at p1, %d entries left", routed, stale, left())
		}
		if err := next.Close(); err != nil {
			t.Fatal(err)
		}
		for _, names := range [][]string{{"p2"}, nil, nil} {
			want := each
			if len(names) == 0 && left() == 0 {
				want = 0
			}
			if err := b.Switch.Do(func() error {
				n, err := Release(names...)
				if n != want {
					t.Errorf("routed %v: Release(%v) removed %d entries, want %d", routed, names, n, want)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
		if n := left(); n != 0 {
			t.Errorf("routed %v: %d entries left", routed, n)
		}
		if err := p.Close(); err != nil { // of what is gone
			t.Error(err)
		}
	}
}
