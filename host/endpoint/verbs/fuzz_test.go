// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"net/netip"
	"testing"
)

// FuzzGIDs chooses among any table: what is chosen is usable, of one port, and
// each address is there once.
func FuzzGIDs(f *testing.F) {
	v4 := netip.MustParseAddr("10.77.0.1").As16()
	f.Add(append(append([]byte{1, 0, 1}, v4[:]...), append([]byte{1, 1, 1}, v4[:]...)...), uint8(0), []byte{})
	f.Add(append([]byte{2, 3, 1}, v4[:]...), uint8(2), v4[:])
	f.Fuzz(func(t *testing.T, b []byte, port uint8, local []byte) {
		var table []gid
		for ; len(b) >= 19; b = b[19:] {
			table = append(table, gid{addr: gidAddr([16]byte(b[3:19])), port: b[0], index: b[1], rocev2: b[2]&1 != 0, ifindex: int(b[2] >> 1)})
		}
		cfg := Config{Port: port}
		if len(local) == 16 {
			cfg.LocalIP = gidAddr([16]byte(local))
		}
		seen := make(map[netip.Addr]bool)
		chosen := chooseGIDs(table, cfg, 0)
		for _, g := range chosen {
			if !g.usable() || g.port != chosen[0].port || port != 0 && g.port != port || seen[g.addr] {
				t.Fatalf("%+v is chosen of %+v", chosen, table)
			}
			seen[g.addr] = true
		}
		if cfg.LocalIP.IsValid() && len(chosen) > 0 && chosen[0].addr != cfg.LocalIP {
			t.Fatalf("%v is not the first of %+v", cfg.LocalIP, chosen)
		}
	})
}
