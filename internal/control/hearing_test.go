// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
)

// A port whose packets the XDP program does not see, or whose handed packets do not arrive, is
// never heard; one that nothing comes to is not judged, nor one that has been heard.
func TestUnheard(t *testing.T) {
	port := func(received, rx uint64, xdp map[string]uint64) api.Port {
		return api.Port{Name: "p1", Ifindex: 7, State: api.PortOpen, RxFrames: rx, XDP: xdp, Device: &api.DeviceCounters{RXPackets: received}, Sockets: []api.Socket{{}}}
	}
	full := port(2000, 0, map[string]uint64{"xsk_arp": 100})
	full.Sockets[0].Kernel.RXRingFull = 100
	remade := port(3000, 0, nil)
	remade.Ifindex = 8
	for _, c := range []struct {
		name string
		port api.Port
		want string
	}{
		{"nothing came", port(1000, 0, nil), ""},
		{"a few packets", port(1063, 0, nil), ""},
		{"the program sees none", port(1064, 0, nil), "has received 64 packets since gleamd attached to it, and the XDP program saw none"},
		{"the kernel's packets alone", port(2000, 0, map[string]uint64{"pass_other": 900}), ""},
		{"the first requests", port(2000, 0, map[string]uint64{"pass_other": 900, "xsk_arp": 7}), ""},
		{"none arrives", port(2000, 0, map[string]uint64{"pass_other": 900, "xsk_arp": 5, "xsk_rocev2": 3}), "has handed 8 packets to AF_XDP sockets, and none has arrived"},
		{"some arrive", port(2000, 3, map[string]uint64{"xsk_arp": 100}), ""},
		{"the worker is late", full, ""},
		{"an interface made anew", remade, ""},
	} {
		var h hearing
		h.note([]api.Port{port(1000, 0, nil)})
		list := []api.Port{c.port}
		h.judge(list)
		if got := list[0].Unheard; (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
