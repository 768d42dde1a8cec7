// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab"
)

// A port's MTU is lowered in the middle of a transfer: the group's status names the MTU
// as too small, and longer copies are counted. When the MTU is as before, the transfer
// goes on and completes.
func TestMTUChangesAtRunTime(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 3}, memory: 2 << 20})
	setMTU := func(mtu int) {
		t.Helper()
		if err := r.star.Switch.Do(func() error {
			link, err := netlink.LinkByName("p3")
			if err != nil {
				return err
			}
			return netlink.LinkSetMTU(link, mtu)
		}); err != nil {
			t.Fatal(err)
		}
	}
	r.join()
	r.fill(0)
	group := func() *api.Group {
		g, err := r.engine.Group(r.group)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	if why := group().MTUText; why != "" {
		t.Errorf("at first: %s", why)
	}
	r.setRate("p3", 20_000_000) // so that the transfer outlasts the change
	n := r.post(0, 100_000)
	until(t, "the transfer begins", func() bool { return r.stats().Rx > 20 })
	setMTU(900)
	until(t, "the group says that its packets do not fit", func() bool { return group().MTUText != "" })
	until(t, "longer copies are counted", func() bool { return r.drops()["frame_too_long"] > 0 })
	if p := r.ports()[2]; p.MTU != 900 {
		t.Errorf("the port is shown with MTU %d", p.MTU)
	}
	setMTU(1500)
	until(t, "the group fits again", func() bool { return group().MTUText == "" })
	r.complete(r.hosts[0], n)
	r.same(0)
}
