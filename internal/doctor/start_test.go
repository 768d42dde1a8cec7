// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"net"
	"testing"

	"github.com/gleam-rdma/gleam/api"
)

// Programs at a port are gleamd's own if it has that interface open, not another one of the name.
func TestPortsOfTheRunningGleamd(t *testing.T) {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		port api.Port
		want bool
	}{
		{api.Port{Name: "lo", Ifindex: lo.Index, State: api.PortOpen}, true},
		{api.Port{Name: "lo", Ifindex: lo.Index + 1, State: api.PortOpen}, false}, // of another network namespace, or made anew
		{api.Port{Name: "lo", Ifindex: lo.Index, State: "refused"}, false},
		{api.Port{Name: "other", Ifindex: lo.Index, State: api.PortOpen}, false},
	} {
		r := &Running{Ports: []api.Port{c.port}}
		if got := r.Has("lo"); got != c.want {
			t.Errorf("%+v: %v", c.port, got)
		}
	}
	if (*Running)(nil).Has("lo") {
		t.Error("no gleamd has a port")
	}
}
