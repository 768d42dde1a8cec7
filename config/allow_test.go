// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net/netip"
	"testing"
)

// Both lists have to permit a host; a missing list permits all.
func TestPermits(t *testing.T) {
	in, out := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.1.1")
	own, other := MAC{1}, MAC{2}
	addresses, macs := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}, []MAC{own}
	for _, c := range []struct {
		allow *Allow
		ip    netip.Addr
		mac   MAC
		want  bool
	}{
		{nil, out, other, true},
		{&Allow{}, out, other, true},
		{&Allow{Addresses: addresses}, in, other, true},
		{&Allow{Addresses: addresses}, out, own, false},
		{&Allow{MACs: macs}, out, own, true},
		{&Allow{MACs: macs}, in, other, false},
		{&Allow{Addresses: addresses, MACs: macs}, in, own, true},
		{&Allow{Addresses: addresses, MACs: macs}, in, other, false},
		{&Allow{Addresses: addresses, MACs: macs}, out, own, false},
	} {
		if got := c.allow.Permits(c.ip, c.mac); got != c.want {
			t.Errorf("%+v permits %s with %s: %v", c.allow, c.ip, c.mac, got)
		}
	}
}
