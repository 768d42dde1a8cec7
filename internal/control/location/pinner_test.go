// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/gleam-rdma/gleam/internal/control/locate"
)

// fakeWatchlist is a watchlist.
type fakeWatchlist struct {
	macs  map[[6]byte]int
	addrs map[netip.Addr]int
}

func (k *fakeWatchlist) SetMAC(mac [6]byte, ifindex int) error { k.macs[mac] = ifindex; return nil }
func (k *fakeWatchlist) ClearMAC(mac [6]byte) error            { delete(k.macs, mac); return nil }
func (k *fakeWatchlist) ClearAddr(ip netip.Addr) error         { delete(k.addrs, ip); return nil }
func (k *fakeWatchlist) SetAddr(ip netip.Addr, ifindex int, _ [6]byte) error {
	k.addrs[ip] = ifindex
	return nil
}

// One MAC address of two hosts at two ports is not watched; a shared hop goes with its
// last host.
func TestWatchedAddresses(t *testing.T) {
	k := &fakeWatchlist{macs: map[[6]byte]int{}, addrs: map[netip.Addr]int{}}
	w := NewPinner(nil, k, nil).watchedHosts
	gateway := netip.MustParseAddr("192.0.2.1")
	at := func(ifindex int, mac byte) locate.Location {
		return locate.Location{Ifindex: ifindex, MAC: net.HardwareAddr{2, 0, 0, 0, 0, mac}, Hop: gateway, Links: []int{ifindex}}
	}
	for _, c := range []struct {
		Host int
		at   locate.Location
		want string
	}{
		{0, at(1, 1), "map[02:00:00:00:00:01:1] 1"},
		{1, at(1, 1), "map[02:00:00:00:00:01:1] 1"},
		{1, at(2, 1), "map[02:00:00:00:00:01:0] 1"},
		{0, at(2, 2), "map[02:00:00:00:00:01:2 02:00:00:00:00:02:2] 1"},
		{0, locate.Location{}, "map[02:00:00:00:00:01:2] 1"},
		{1, locate.Location{}, "map[] 0"},
		{1, locate.Location{}, "map[] 0"},
	} {
		if err := w.set(testHost(c.Host), c.at); err != nil {
			t.Fatal(err)
		}
		macs := map[string]int{}
		for m, ifindex := range k.macs {
			macs[net.HardwareAddr(m[:]).String()] = ifindex
		}
		if got := fmt.Sprintf("%v %d", macs, len(k.addrs)); got != c.want {
			t.Errorf("host %d at %d: %s, want %s", c.Host, c.at.Ifindex, got, c.want)
		}
	}
}
