// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/gopacket/gopacket/layers"
)

// A frame of a pinned MAC address or from a pinned address is told of if it came by
// another port, or from another MAC address; it takes its way as before. Test runs come
// in by interface 1.
func TestSightings(t *testing.T) {
	const here, elsewhere = 1, 9
	own4, own6 := netip.MustParseAddr("10.1.0.1"), netip.MustParseAddr("fd00:1::1")
	mac, other := [6]byte(macA), [6]byte(macB)
	request := func(tags ...*layers.Dot1Q) []byte { return arp(t, 1, "10.9.0.1", tags...) }
	asks := func() []byte { return solicitation(t, "ff02::1", "fd00:9::1", layers.ICMPv6TypeNeighborSolicitation) }
	says := func(target string) []byte {
		return solicitation(t, "ff02::1", target, layers.ICMPv6TypeNeighborAdvertisement)
	}
	variants(t, func(t *testing.T, frags bool) {
		s := newTestSteering(t)
		p := &PortProgram{ifname: "test"}
		if err := s.load(p, frags); err != nil {
			t.Fatal(err)
		}
		defer p.unload()
		w := s.Watchlist()
		told := make(chan Sighting, 16)
		go func() {
			defer close(told)
			for {
				x, err := w.Next()
				if err != nil {
					if !errors.Is(err, os.ErrClosed) {
						t.Error(err)
					}
					return
				}
				told <- x
			}
		}()
		for _, c := range []struct {
			name  string
			pins  func() error
			frame []byte
			want  *Sighting
		}{
			{"nothing is pinned", func() error { return nil }, request(), nil},
			{"its own port", func() error { return w.SetMAC(mac, here) }, request(), nil},
			{"another port", func() error { return w.SetMAC(mac, elsewhere) }, udp4(t, "10.2.0.1", 9), &Sighting{Ifindex: here, MAC: mac}},
			{"tagged", func() error { return nil }, udp4(t, "10.2.0.1", 9, &layers.Dot1Q{VLANIdentifier: 7, Priority: 5}), &Sighting{Ifindex: here, VLAN: 7, MAC: mac}},
			{"to a group", func() error { return nil }, udp4(t, "10.77.0.1", 4791), nil},
			{"at several ports", func() error { return w.SetMAC(mac, 0) }, request(), nil},
			{"no more", func() error { return errors.Join(w.ClearMAC(mac), w.ClearMAC(mac)) }, request(), nil},
			{"its own address", func() error { return errors.Join(w.SetAddr(own4, here, mac), w.SetAddr(own6, here, mac)) }, request(), nil},
			{"its own address, IPv6", func() error { return nil }, asks(), nil},
			{"its address at another port", func() error { return w.SetAddr(own4, elsewhere, mac) }, request(), &Sighting{Ifindex: here, MAC: mac, IP: own4}},
			{"tagged ARP", func() error { return nil }, request(&layers.Dot1Q{VLANIdentifier: 7}), &Sighting{Ifindex: here, VLAN: 7, MAC: mac, IP: own4}},
			{"its address from another MAC", func() error { return w.SetAddr(own4, here, other) }, request(), &Sighting{Ifindex: here, MAC: mac, IP: own4}},
			{"IPv6 at another port", func() error { return w.SetAddr(own6, elsewhere, mac) }, asks(), &Sighting{Ifindex: here, MAC: mac, IP: own6}},
			{"an advertisement", func() error { return nil }, says("fd00:1::1"), &Sighting{Ifindex: here, MAC: mac, IP: own6}},
			{"an advertisement of another address", func() error { return nil }, says("fd00:1::2"), nil},
			{"data from the address", func() error { return w.ClearAddr(own4) }, udp6(t, "fd00:9::1", 9), nil},
			{"cut ARP", func() error { return w.SetAddr(own4, elsewhere, mac) }, request()[:30], nil},
			{"cut advertisement", func() error { return nil }, says("fd00:1::1")[:70], nil},
		} {
			if err := c.pins(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Millisecond) // one in a millisecond is told
			if _, err := p.program.Run(&ebpf.RunOptions{Data: c.frame, Repeat: 1}); err != nil {
				t.Fatal(err)
			}
			wait := 40 * time.Millisecond
			if c.want != nil {
				wait = 10 * time.Second // on a busy machine
			}
			select {
			case x := <-told:
				if c.want == nil || x != *c.want {
					t.Errorf("%s: %+v is told, want %+v", c.name, x, c.want)
				}
			case <-time.After(wait):
				if c.want != nil {
					t.Errorf("%s: nothing is told", c.name)
				}
			}
		}
		// A flood is told of once in a millisecond.
		begin := time.Now()
		if _, err := p.program.Run(&ebpf.RunOptions{Data: request(), Repeat: 100_000}); err != nil {
			t.Fatal(err)
		}
		most := int(time.Since(begin)/time.Millisecond) + 2
		n := 0
		for quiet := false; !quiet; {
			select {
			case <-told:
				n++
			case <-time.After(40 * time.Millisecond):
				quiet = true
			}
		}
		if n == 0 || n > most {
			t.Errorf("a flood of 100,000 frames in %v is told of %d times", time.Since(begin), n)
		}
		if err := w.Stop(); err != nil {
			t.Error(err)
		}
		for range told {
		}
	})
}
