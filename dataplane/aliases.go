// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"encoding/binary"
	"maps"
	"net/netip"
	"sync/atomic"

	"github.com/gleam-rdma/gleam/rocev2"
)

// groupAliases are the groups that hosts know by another address than the one that the group
// is registered under: several groups can have one address on the wire, and a virtual queue
// pair each. Every worker reads them for every packet, without a lock; only the control loop
// writes. nil: there are none.
type groupAliases struct {
	table atomic.Pointer[map[alias]netip.Addr]
}

// alias is what a packet shows of its group.
type alias struct {
	ip  rocev2.AddrKey
	qpn rocev2.QPN
}

// of returns the address that the group of a packet to ip and qpn is registered under.
func (a *groupAliases) of(ip netip.Addr, qpn rocev2.QPN) netip.Addr {
	if t := a.table.Load(); t != nil {
		if to, ok := (*t)[alias{rocev2.KeyOf(ip), qpn}]; ok {
			return to
		}
	}
	return ip
}

// peek is of for a packet that is not decoded: l4 is what follows its IP header.
func (a *groupAliases) peek(k rocev2.AddrKey, l4 []byte) rocev2.AddrKey {
	const qpnAt = rocev2.UDPLen + 4
	if t := a.table.Load(); t != nil && len(l4) >= qpnAt+4 {
		if to, ok := (*t)[alias{k, rocev2.QPN(binary.BigEndian.Uint32(l4[qpnAt:]) & 0xFFFFFF)}]; ok {
			return rocev2.KeyOf(to)
		}
	}
	return k
}

// change makes a table with, or without, one more alias: they are few, and rare.
func (a *groupAliases) change(x alias, to netip.Addr) {
	t := make(map[alias]netip.Addr)
	if old := a.table.Load(); old != nil {
		maps.Copy(t, *old)
	}
	if delete(t, x); to.IsValid() {
		t[x] = to
	}
	if len(t) == 0 {
		a.table.Store(nil)
		return
	}
	a.table.Store(&t)
}
