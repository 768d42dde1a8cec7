// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/gopacket/gopacket/layers"
)

// A frame of a pinned MAC address or from a pinned address is reported if it came by
// another port, or from another MAC address; its exit does not change. Test runs come
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
		p := s.loadedPort(t, frags)
		w := s.Watchlist()
		told := make(chan Sighting, 1024)
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
			p.forgetTold(t)
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
		flood(t, p, w, told)
		if err := w.Stop(); err != nil {
			t.Error(err)
		}
		for range told {
		}
	})
}

// forgetTold has the port report hosts again that it has reported.
func (p *PortProgram) forgetTold(t *testing.T) {
	t.Helper()
	for i := range p.maps.Reported.MaxEntries() {
		if err := p.maps.Reported.Put(i, make([]byte, p.maps.Reported.ValueSize())); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.maps.Telling.Put(p.slot, uint64(0)); err != nil {
		t.Fatal(err)
	}
}

// A flood in one host's name is reported four times a second, and does not keep the
// port from reporting another host. A flood in the names of very many is reported 250
// times a second after the first 256.
func flood(t *testing.T, p *PortProgram, w *Watchlist, told <-chan Sighting) {
	const elsewhere, hosts = 9, 2000
	run := func(frame []byte, times uint32) {
		t.Helper()
		if _, err := p.program.Run(&ebpf.RunOptions{Data: frame, Repeat: times}); err != nil {
			t.Fatal(err)
		}
	}
	counts := func() map[[6]byte]int {
		n := make(map[[6]byte]int)
		for {
			select {
			case x := <-told:
				n[x.MAC]++
			case <-time.After(40 * time.Millisecond):
				return n
			}
		}
	}
	frame := udp4(t, "10.2.0.1", 9)
	from := func(i int) [6]byte { return [6]byte{2, 0xEE, 0, 0, byte(i >> 8), byte(i)} }
	one, other := slices.Clone(frame), slices.Clone(frame)
	for i := range hosts {
		if err := w.SetMAC(from(i), elsewhere); err != nil {
			t.Fatal(err)
		}
	}
	set := func(b []byte, mac [6]byte) []byte { copy(b[6:], mac[:]); return b }
	p.forgetTold(t)
	begin := time.Now()
	run(set(one, from(0)), 50_000)
	run(set(other, from(1)), 1)
	run(one, 50_000)
	most := 1 + int(time.Since(begin)/(250*time.Millisecond))
	if n := counts(); n[from(0)] < 1 || n[from(0)] > most || n[from(1)] != 1 {
		t.Errorf("a flood of 100,000 frames is told of %d times, want 1 to %d; one frame of another host %d times", n[from(0)], most, n[from(1)])
	}
	p.forgetTold(t)
	begin = time.Now()
	sum := 0
	for range 3 {
		for i := range hosts {
			run(set(one, from(i)), 1)
		}
	}
	most = 256 + int(time.Since(begin)/(4*time.Millisecond)) + 1
	for _, n := range counts() {
		sum += n
	}
	if sum < 200 || sum > most {
		t.Errorf("a flood in the names of %d hosts is told of %d times, want at most %d", hosts, sum, most)
	}
}
