// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab"
)

// A port whose MTU takes several buffers, be it from the start or for a while, is opened again when that changes, and
// groups take the fast path before and after.
func TestFastPathAfterALongMTU(t *testing.T) {
	for name, mtus := range map[string][]int{"for a while": {1500, 4200, 1500, 4200, 1500}, "from the start": {4200, 1500}} {
		t.Run(name, func(t *testing.T) {
			r := newFastRig(t, rigConfig{star: lab.StarConfig{Hosts: 3, MTU: mtus[0]}})
			r.join()
			ports := r.star.Ports[:3]
			if mtus[0] == 1500 {
				ports = ports[2:]
			}
			set := func(ns *lab.Namespace, name string, mtu int) {
				t.Helper()
				link, err := ns.Handle().LinkByName(name)
				if err == nil {
					err = ns.Handle().LinkSetMTU(link, mtu)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			for _, h := range r.star.Hosts { // a veth takes no program for one buffer while its peer's MTU is long
				set(h.NS, h.Interface, 1500)
			}
			for i, mtu := range mtus {
				if i > 0 {
					for _, name := range ports {
						set(r.star.Switch, name, mtu)
					}
					until(t, "the ports are open with their MTU", func() bool {
						return !slices.ContainsFunc(r.ports(), func(p api.Port) bool {
							return slices.Contains(ports, p.Name) && (p.State != api.PortOpen || !p.Up || p.MTU != mtu || p.Reopened != uint64(i))
						})
					})
				}
				for _, from := range []int{0, 2} {
					r.onFastPath(from, 100_000)
				}
				if p := r.ports()[2]; !p.FastPath.Used || p.XDPMode != "native" || p.FastPath.Reason != "" {
					t.Errorf("MTU %d: XDP mode %s, %+v", mtu, p.XDPMode, p.FastPath)
				}
			}
		})
	}
}
