// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
)

// An announcement is a broadcast: the group's address is at the port's MAC address.
func TestAnnouncementFrames(t *testing.T) {
	mac := rocev2.MAC{2, 0, 0, 0, 1, 7}
	for _, group := range []netip.Addr{netip.MustParseAddr("10.77.254.1"), netip.MustParseAddr("fd00:77::1")} {
		for _, vlan := range []uint16{0, 42} {
			var f rocev2.Frame
			b := make([]byte, 128)
			n := buildAnnouncement(b, &Announcement{VLAN: vlan, Group: group}, mac)
			if r := rocev2.Decode(b[:n], &f); r != rocev2.OK {
				t.Fatalf("%v: %v", group, r)
			}
			if tags, tci := f.VLAN(); f.Eth().Src() != mac || (vlan != 0) != (tags == 1) || tci != vlan {
				t.Errorf("%v in VLAN %d: from %v, %d tags, VID %d", group, vlan, f.Eth().Src(), tags, tci)
			}
			if group.Is6() {
				if f.Kind != rocev2.KindICMPv6 || f.Src() != group || f.Dst() != netip.IPv6LinkLocalAllNodes() {
					t.Errorf("kind %v from %v to %v", f.Kind, f.Src(), f.Dst())
				}
				continue
			}
			var arp rocev2.ARP
			if r := rocev2.DecodeARP(&f, &arp); r != rocev2.OK || arp.SenderIP != group || arp.TargetIP != group || arp.SenderMAC != mac || f.Eth().Dst() != rocev2.BroadcastMAC {
				t.Errorf("%v: %+v", r, arp)
			}
		}
	}
}

// Datagrams and announcements of one call cost one closure for each worker that they leave
// by; they leave in order.
func TestOneClosureForManyPackets(t *testing.T) {
	for _, workers := range []int{1, 2} {
		cfg := fakeConfig(t, 3, fmt.Sprintf("worker: {cpu: %v}\n", []string{"[-1]", "[-1, -1]"}[workers-1]), "")
		s := newFakeStar(t, lab.StarConfig{Hosts: 3}, cfg)
		p := &Plane{workers: s.workers, ports: s.ports}
		var datagrams []UDP
		var announcements []Announcement
		for i := range 30 {
			h := s.hosts[i%3]
			datagrams = append(datagrams, UDP{
				To: Origin{Port: i % 3, MAC: rocev2.MAC(h.MAC)}, Payload: []byte{byte(i)},
				Src: netip.AddrPortFrom(netip.MustParseAddr("10.77.254.1"), 4797), Dst: netip.AddrPortFrom(h.IPv4, 4797),
			})
			announcements = append(announcements, Announcement{Port: i % 3, Group: netip.MustParseAddr("10.77.254.1")})
		}
		play := func(send func()) int { return countClosures(s.all, send) }
		if n := play(func() { p.SendUDP(datagrams) }); n != workers {
			t.Errorf("%d workers: %d closures for %d datagrams", workers, n, len(datagrams))
		}
		for pi := range 3 {
			w := s.all[s.txWorker(pi)]
			var got []byte
			for _, d := range w.ports[pi].staged {
				b := w.umem.Data(d.Addr, d.Len)
				got = append(got, b[rocev2.EthernetLen+rocev2.IPv4Len+rocev2.UDPLen])
			}
			if want := []byte{0, 3, 6, 9, 12, 15, 18, 21, 24, 27}; len(got) != 10 || !slices.IsSorted(got) || got[9]-got[0] != want[9] || int(got[0]) != pi {
				t.Errorf("%d workers: port %d sends %v", workers, pi, got)
			}
		}
		if n := play(func() { p.Announce(announcements) }); n != workers {
			t.Errorf("%d workers: %d closures for %d announcements", workers, n, len(announcements))
		}
		if n := play(func() { p.SendUDP(nil) }); n != 0 {
			t.Errorf("%d closures for nothing", n)
		}
	}
}

// countClosures calls send, which gives closures to workers, runs them, and returns how many they are.
func countClosures(workers []*worker, send func()) (closures int) {
	done := make(chan struct{})
	go func() {
		send()
		close(done)
	}()
	second := workers[len(workers)-1].closures // of two, or the only one again
	for {
		select {
		case f := <-workers[0].closures:
			f()
		case f := <-second:
			f()
		case <-done:
			return closures
		}
		closures++
	}
}

// BenchmarkSendUDP is the control loop's cost of a datagram, alone and among others.
func BenchmarkSendUDP(b *testing.B) {
	cfg := fakeConfig(b, 2, "umem: {frames: 2048}\n", "")
	p, err := Unattached(cfg, 1500, func(bool, string, ...any) {})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	if err := p.Run(func() {
		for _, n := range []int{1, 32} {
			b.Run(fmt.Sprint(n), func(b *testing.B) {
				list := make([]UDP, n)
				for range b.N {
					p.SendUDP(list)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/datagram")
			})
		}
	}); err != nil {
		b.Fatal(err)
	}
}
