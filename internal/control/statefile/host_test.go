// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package statefile

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/rocev2"
)

// testHost is a host of which the holders of two keys have said different things.
func testHost() *Host {
	at := Location{Port: "eth0.7", MAC: rocev2.MAC{2, 0, 0, 0, 0, 9}, VLAN: 4094, Hop: addr(100004)}
	other := Location{Port: "eth1", MAC: rocev2.MAC{2, 0, 0, 0, 0, 8}, VLAN: 1, Hop: netip.MustParseAddr("fe80::1")}
	return &Host{Pinned: at, Locations: map[envelope.KeyID]Location{0: at, 65535: other}}
}

// Locations that cannot be decoded, and parts that are no key's, are errors.
func TestUnreadableHosts(t *testing.T) {
	var c Change
	c.PutHost(addr(1), testHost())
	name := nodeName(kindHost, addr(1))
	good := make(table)
	good.apply(&c.edits)
	older := len(appendLocation(nil, &Location{Port: "eth0.7", VLAN: 4094})) // without a next hop
	try := func(part string, v []byte) {
		t.Helper()
		bad := clone(good)
		bad.set(name, part, v)
		if s, err := bad.state(); err == nil {
			t.Errorf("%q = %x: no error, but %+v", part, v, s.Hosts[addr(1)])
		}
	}
	for _, part := range []string{partSelf, keyPart(0)} {
		v := good.node(name)[part]
		for i := range v {
			if i != older {
				try(part, v[:i])
			}
		}
		try(part, append(slices.Clone(v), 0))
	}
	v := good.node(name)[keyPart(0)]
	for _, part := range []string{partTurn, partKey, partKey + "\x80", partKey + "\x80\x00", keyPart(1) + "x", partKey + "\x80\x80\x04"} { // the last is key 65536
		try(part, v)
	}
	try(partSelf, []byte{1, 'p', 0, 0, 0, 0, 0, 1, 0x80, 0x20}) // VLAN 4096
}
