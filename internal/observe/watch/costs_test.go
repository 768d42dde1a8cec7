// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/gleam-rdma/gleam/api"
)

// Those that slow a group down come first, then those that it has waited for; a cost that several share is there once.
func TestCostliest(t *testing.T) {
	ip := func(n byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, n}) }
	shared := &api.Cost{Waited: 5}
	g := api.Group{Members: []api.Member{
		{IP: ip(1), Role: "source"},
		{IP: ip(2), Cost: &api.Cost{Waited: 1}},
		{IP: ip(3), Cost: &api.Cost{Waited: 9}},
		{IP: ip(4), Cost: &api.Cost{}, Slow: "loss"},
		{IP: ip(5), Cost: shared, Switch: "0000000000000002"},
		{IP: ip(6), Cost: shared, Switch: "0000000000000002"},
	}}
	for n, want := range map[int]string{0: "[] 4", 1: "[4] 3", 3: "[4 3 5] 1", 4: "[4 3 5 2] 0", 9: "[4 3 5 2] 0"} {
		list, leftOut := Costliest(&g, n)
		var got []byte
		for _, m := range list {
			got = append(got, m.IP.As4()[3])
		}
		if s := fmt.Sprintf("%v %d", got, leftOut); s != want {
			t.Errorf("of %d: %s, want %s", n, s, want)
		}
	}
}
