// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/test/labtest"
)

// Prefixes are added and removed while programs are loaded: at each step the frames to the
// prefixes of that step are taken, and frames in their name dropped; all others are the
// kernel's. A list that is refused changes nothing.
func TestSetPrefixes(t *testing.T) {
	labtest.Require(t)
	of := func(text ...string) (list []netip.Prefix) {
		for _, p := range text {
			list = append(list, netip.MustParsePrefix(p))
		}
		return list
	}
	full := make([]netip.Prefix, MaxPrefixes)
	for i := range full {
		full[i] = netip.PrefixFrom(netip.AddrFrom4([4]byte{11, byte(i >> 8), byte(i), 0}), 24)
	}
	steps := []struct {
		list    []netip.Prefix
		refusal string
		in      []string
	}{
		{of("10.77.0.0/16"), "", []string{"10.77.3.4"}},
		{of("10.77.0.0/16", "10.77.0.0/16", "10.200.1.0/24", "fd00:77::/64"), "", []string{"10.77.3.4", "10.200.1.9", "fd00:77::9"}},
		{nil, "no group prefix", []string{"10.77.3.4", "10.200.1.9", "fd00:77::9"}},
		{of("192.0.2.128/25", "0.0.0.0/0"), "would take every", []string{"10.77.3.4", "10.200.1.9", "fd00:77::9"}},
		{of("fd00:77::/64", "fd00:99::/96"), "", []string{"fd00:77::9", "fd00:99::7"}},
		{full, "", []string{"11.0.0.1", "11.3.255.1"}},
		{append(of("10.77.0.0/16"), full[1:]...), "", []string{"10.77.3.4", "11.3.255.1"}},
		{of("192.0.2.128/25", "fd00:99::/64"), "", []string{"192.0.2.129", "fd00:99::7", "fd00:99::1:0:9"}},
		{of("10.77.3.0/24", "10.77.3.4/32"), "", []string{"10.77.3.4"}},
		{of("10.77.3.4/32"), "", []string{"10.77.3.4"}},
	}
	variants(t, func(t *testing.T, frags bool) {
		s, err := NewSteering(steps[0].list, testEnvelopePort, 1)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		p := s.loadedPort(t, frags)
		for n, step := range steps {
			if err := s.SetPrefixes(step.list); (err == nil) != (step.refusal == "") || err != nil && !strings.Contains(err.Error(), step.refusal) {
				t.Fatalf("step %d: %v, want %q", n, err, step.refusal)
			}
			for _, addr := range []string{"10.77.3.4", "10.200.1.9", "fd00:77::9", "fd00:99::7", "fd00:99::1:0:9", "192.0.2.129", "11.0.0.1", "11.3.255.1", outside4, outside6} {
				to, forged := udp4(t, outside4, 4791), DropGuardIPv4
				if strings.Contains(addr, ":") {
					to, forged = from(udp6(t, outside6, 4791), offSource6, addr), DropGuardIPv6
				} else {
					to = from(to, offSource4, addr)
				}
				action, want := uint32(xdpPass), PassOther
				if slices.Contains(step.in, addr) {
					action, want = withoutSocket(forged)
				}
				runSteer(t, p, steerCase{name: fmt.Sprintf("step %d, from %s", n, addr), frame: to}, action, want)
				if strings.Contains(addr, ":") {
					to = udp6(t, addr, 4791)
				} else {
					to = udp4(t, addr, 4791)
				}
				if want != PassOther {
					action, want = withoutSocket(XskRoCEv2)
				}
				runSteer(t, p, steerCase{name: fmt.Sprintf("step %d, to %s", n, addr), frame: to}, action, want)
			}
		}
	})
}
