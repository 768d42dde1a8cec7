// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package soft

import (
	"net/netip"
	"testing"

	"golang.org/x/net/bpf"

	"github.com/gleam-rdma/gleam/rocev2"
)

func frame(t *testing.T, p rocev2.Path) []byte {
	t.Helper()
	b := make([]byte, 256)
	n := rocev2.BuildPacket(b, &p, &rocev2.Packet{Op: rocev2.SendOnly, DestQP: 0x99}, []byte("payload"))
	if n == 0 {
		t.Fatalf("no frame for %+v", p)
	}
	return b[:n]
}

func TestRoCEFilter(t *testing.T) {
	a := netip.MustParseAddr
	full := []netip.Addr{a("10.0.0.2"), a("10.0.0.3"), a("fd00::2"), a("fd00::3")}
	for len(full) < maxFilterAddrs { // the jumps must reach across the greatest number of addresses
		full = append(full, netip.AddrFrom16([16]byte{0: 0xfd, 15: byte(16 + len(full))}))
	}
	path := func(src, dst string, tagged bool) rocev2.Path {
		return rocev2.Path{Src: a(src), Dst: a(dst), Tagged: tagged, TCI: 5, SrcPort: 50000}
	}
	udp := func(port uint16) []byte {
		b, p := make([]byte, 256), path("10.0.0.1", "10.0.0.2", false)
		return b[:rocev2.BuildUDP(b, &p, port, []byte("payload"))]
	}
	edit := func(b []byte, f func([]byte)) []byte { f(b); return b }
	options := func(b []byte) []byte { // four bytes of IPv4 options
		b = append(b[:34:34], append([]byte{1, 1, 1, 1}, b[34:]...)...)
		b[14] = 0x46
		return b
	}
	for name, c := range map[string]struct {
		frame []byte
		pass  bool
	}{
		"v4":              {frame(t, path("10.0.0.1", "10.0.0.2", false)), true},
		"v4 second":       {frame(t, path("10.0.0.1", "10.0.0.3", false)), true},
		"v4 tagged":       {frame(t, path("10.0.0.1", "10.0.0.2", true)), true},
		"v4 options":      {options(frame(t, path("10.0.0.1", "10.0.0.2", false))), true},
		"v6":              {frame(t, path("fd00::1", "fd00::2", false)), true},
		"v6 last":         {frame(t, path("fd00::1", full[maxFilterAddrs-1].String(), false)), true},
		"v6 tagged":       {frame(t, path("fd00::1", "fd00::3", true)), true},
		"v4 other":        {frame(t, path("10.0.0.1", "10.0.0.4", false)), false},
		"v4 own is src":   {frame(t, path("10.0.0.2", "10.0.0.1", false)), false},
		"v6 other":        {frame(t, path("fd00::1", "fd00::9", false)), false},
		"v6 other tagged": {frame(t, path("fd00::1", "fd00::9", true)), false},
		"other port":      {udp(4792), false},
		"own port":        {udp(4791), true},
		"fragment":        {edit(frame(t, path("10.0.0.1", "10.0.0.2", false)), func(b []byte) { b[21] = 1 }), false},
		"more fragments":  {edit(frame(t, path("10.0.0.1", "10.0.0.2", false)), func(b []byte) { b[20] |= 0x20 }), false},
		"tcp":             {edit(frame(t, path("10.0.0.1", "10.0.0.2", false)), func(b []byte) { b[23] = 6 }), false},
		"v6 tcp":          {edit(frame(t, path("fd00::1", "fd00::2", false)), func(b []byte) { b[20] = 6 }), false},
		"arp":             {edit(frame(t, path("10.0.0.1", "10.0.0.2", false)), func(b []byte) { b[13] = 6 }), false},
		"two tags":        {edit(frame(t, path("10.0.0.1", "10.0.0.2", true)), func(b []byte) { b[16], b[17] = 0x81, 0 }), false},
		"short":           {frame(t, path("10.0.0.1", "10.0.0.2", false))[:30], false},
		"empty":           {nil, false},
	} {
		raw, err := roceFilter(full)
		if err != nil {
			t.Fatal(err)
		}
		prog, ok := bpf.Disassemble(raw)
		if !ok {
			t.Fatal("the filter has an unknown instruction")
		}
		vm, err := bpf.NewVM(prog)
		if err != nil {
			t.Fatal(err)
		}
		n, err := vm.Run(c.frame)
		if err != nil {
			t.Fatal(err)
		}
		if (n >= len(c.frame) && n > 0) != c.pass {
			t.Errorf("%s: the filter keeps %d bytes of %d, want pass %v", name, n, len(c.frame), c.pass)
		}
	}
	if _, err := roceFilter(append(full, a("10.0.0.9"))); err == nil {
		t.Error("more addresses than the jumps reach were taken")
	}
	if _, err := roceFilter(nil); err == nil {
		t.Error("a filter for no address was made")
	}
}
