// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package endpointtest_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/test/endpointtest"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// TestSoft runs the checks on two soft devices over a bridge.
func TestSoft(t *testing.T) {
	s := labtest.Star(t, lab.StarConfig{Hosts: 2})
	var devices [2]endpoint.Device
	for i, h := range s.Hosts {
		err := h.NS.Do(func() error {
			d, err := soft.Open(soft.Config{Interface: h.Interface})
			devices[i] = d
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := devices[i].Close(); err != nil {
				t.Error(err)
			}
		})
	}
	for name, ips := range map[string][2]netip.Addr{
		"ipv4": {s.Hosts[0].IPv4, s.Hosts[1].IPv4}, "ipv6": {s.Hosts[0].IPv6, s.Hosts[1].IPv6},
	} {
		for _, c := range endpointtest.Checks() {
			t.Run(name+"/"+c.Name, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := c.Run(ctx, endpointtest.Config{Devices: devices, IPs: ips, PathMTU: 1024}); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
