// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/gleam-rdma/gleam/test/labtest"
)

func addVeth(t *testing.T, name, peer string) netlink.Link {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: peer}); err != nil {
		t.Fatal(err)
	}
	l, err := netlink.LinkByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// setMTU sets the MTU of the named interfaces.
func setMTU(t *testing.T, mtu int, names ...string) {
	t.Helper()
	for _, name := range names {
		l, err := netlink.LinkByName(name)
		if err == nil {
			err = netlink.LinkSetMTU(l, mtu)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

var testPrefixes = []netip.Prefix{
	netip.MustParsePrefix("10.77.0.0/16"),
	netip.MustParsePrefix("192.0.2.128/25"),
	netip.MustParsePrefix("fd00:77::/64"),
}

const testEnvelopePort = 4792

func newTestSteering(t testing.TB) *Steering {
	t.Helper()
	labtest.Require(t)
	s, err := NewSteering(testPrefixes, testEnvelopePort, 8)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
