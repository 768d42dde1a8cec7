// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"net/netip"

	"github.com/gleam-rdma/gleam/rocev2"
)

// addrIndex finds values, up to 2^32-1 of them, by their addresses, which the caller
// stores. It is a hash table with open addressing and linear probing, at most half full.
// Only the control plane inserts, so that a stranger's packets cannot lengthen the probe
// sequences. The zero value is empty.
type addrIndex[T uint16 | uint64] struct {
	slots []T // the value plus 1, or 0 if the slot is free; the length is a power of two, or 0
	used  uint32
}

// put inserts v, whose address has hash h and is not in the index yet. hash returns the
// hash of a value's address.
func (t *addrIndex[T]) put(h uint64, v T, hash func(T) uint64) {
	if 2*(int(t.used)+1) > len(t.slots) {
		old := t.slots
		t.slots = make([]T, max(8, 2*len(old)))
		for _, v := range old {
			if v != 0 {
				t.insert(hash(v-1), v)
			}
		}
	}
	t.insert(h, v+1)
	t.used++
}

func (t *addrIndex[T]) insert(h uint64, slot T) {
	mask := uint64(len(t.slots) - 1)
	i := h & mask
	for t.slots[i] != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = slot
}

// remove deletes v, whose address has hash h, if it is in the index. Later values of its
// probe sequence move up, so that no probe sequence has a gap.
func (t *addrIndex[T]) remove(h uint64, v T, hash func(T) uint64) {
	if t.used == 0 {
		return
	}
	mask := uint64(len(t.slots) - 1)
	i := h & mask
	for ; t.slots[i] != v+1; i = (i + 1) & mask {
		if t.slots[i] == 0 {
			return
		}
	}
	for j := (i + 1) & mask; t.slots[j] != 0; j = (j + 1) & mask {
		if home := hash(t.slots[j]-1) & mask; (j-home)&mask >= (j-i)&mask {
			t.slots[i], i = t.slots[j], j
		}
	}
	t.slots[i] = 0
	t.used--
}

// memberIndex finds a group's members by address.
type memberIndex struct{ addrIndex[uint16] }

func (t *memberIndex) get(k rocev2.AddrKey, members []member) (MemberID, bool) {
	if t.used == 0 {
		return 0, false
	}
	mask := uint64(len(t.slots) - 1)
	for i := k.Hash() & mask; ; i = (i + 1) & mask {
		v := t.slots[i]
		if v == 0 {
			return 0, false
		}
		if members[v-1].ip == k {
			return MemberID(v - 1), true
		}
	}
}

func (g *group) memberAt(ip netip.Addr) (MemberID, bool) {
	return g.byIP.get(rocev2.KeyOf(ip), g.members)
}

func (g *group) hashOf(m uint16) uint64 { return g.members[m].ip.Hash() }

func (g *group) index(m MemberID) {
	g.byIP.put(g.members[m].ip.Hash(), uint16(m), g.hashOf)
}

func (g *group) unindex(m MemberID) {
	g.byIP.remove(g.members[m].ip.Hash(), uint16(m), g.hashOf)
}

// groupIndex finds a switch's groups by GroupIP. The upper half of a slot is a part of the
// hash, so that a packet for no group reads no group's memory.
type groupIndex struct{ addrIndex[uint64] }

const tagMask = ^uint64(1<<32 - 1)

func (s *Switch) lookup(k rocev2.AddrKey) (GroupID, bool) {
	t := &s.byIP
	if t.used == 0 {
		return 0, false
	}
	h, mask := k.Hash(), uint64(len(t.slots)-1)
	for i := h & mask; ; i = (i + 1) & mask {
		v := t.slots[i]
		if v == 0 {
			return 0, false
		}
		if (v-1)&tagMask == h&tagMask {
			if id := GroupID(v - 1); s.groups[id].ip == k {
				return id, true
			}
		}
	}
}

func (s *Switch) hashOf(v uint64) uint64 { return s.groups[GroupID(v)].ip.Hash() }

func (s *Switch) index(g *group) {
	h := g.ip.Hash()
	s.byIP.put(h, h&tagMask|uint64(g.id), s.hashOf)
}

func (s *Switch) unindex(g *group) {
	h := g.ip.Hash()
	s.byIP.remove(h, h&tagMask|uint64(g.id), s.hashOf)
}
