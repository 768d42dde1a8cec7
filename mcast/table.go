// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"encoding/binary"
	"net/netip"
)

// addrKey is an IP address as two words; IPv4 in its IPv6-mapped form, so that
// 10.0.0.1 and ::ffff:10.0.0.1 are the same host.
type addrKey struct{ hi, lo uint64 }

func keyOf(a netip.Addr) addrKey {
	if a.Is4() {
		// Four times as fast: 16 bytes that were just written in halves cannot be
		// read as a whole before they are out of the store buffer.
		b := a.As4()
		return addrKey{0, 0xFFFF<<32 | uint64(binary.BigEndian.Uint32(b[:]))}
	}
	b := a.As16()
	return addrKey{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

// addrTable maps addresses to indices: open addressing with linear probing, at
// most half full. Only the control plane inserts, so that a stranger's packets
// cannot lengthen the probe sequences. The zero value is empty.
type addrTable struct {
	slots []addrSlot // length a power of two, or 0
	used  int
}

type addrSlot struct {
	key addrKey
	val uint32 // index+1; 0 if the slot is free
}

func (k addrKey) hash() uint64 {
	// The finalizer of splitmix64 over both words.
	h := k.lo ^ k.hi*0x9E3779B97F4A7C15
	h = (h ^ h>>30) * 0xBF58476D1CE4E5B9
	h = (h ^ h>>27) * 0x94D049BB133111EB
	return h ^ h>>31
}

func (t *addrTable) get(k addrKey) (uint32, bool) {
	if t.used == 0 {
		return 0, false
	}
	mask := uint64(len(t.slots) - 1)
	for i := k.hash() & mask; ; i = (i + 1) & mask {
		s := &t.slots[i]
		if s.val == 0 {
			return 0, false
		}
		if s.key == k {
			return s.val - 1, true
		}
	}
}

// put inserts k, which must not be there yet.
func (t *addrTable) put(k addrKey, v uint32) {
	if 2*(t.used+1) > len(t.slots) {
		t.resize(max(8, 2*len(t.slots)))
	}
	t.insert(k, v+1)
	t.used++
}

func (t *addrTable) insert(k addrKey, val uint32) {
	mask := uint64(len(t.slots) - 1)
	i := k.hash() & mask
	for t.slots[i].val != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = addrSlot{k, val}
}

func (t *addrTable) resize(n int) {
	old := t.slots
	t.slots = make([]addrSlot, n)
	for _, s := range old {
		if s.val != 0 {
			t.insert(s.key, s.val)
		}
	}
}

// remove deletes k if it is there. It rebuilds the table: simpler than
// tombstones, and only the control plane pays.
func (t *addrTable) remove(k addrKey) {
	for i := range t.slots {
		if t.slots[i].val != 0 && t.slots[i].key == k {
			t.slots[i] = addrSlot{}
			t.used--
			t.resize(len(t.slots))
			return
		}
	}
}
