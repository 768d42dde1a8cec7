// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// groupOwners gives the owner of each group. Every worker reads it for every packet,
// without a lock; only the control loop writes. A slot of the table gets a key once, before
// its worker, so that a reader sees either no worker or a whole slot; a group that is
// removed leaves its key, without a worker. A table that is half full is replaced by a new
// one, which is large enough that the copy is paid for by the groups that were put since
// the last one.
type groupOwners struct {
	table      atomic.Pointer[ownerTable]
	groups     int           // groups that have an owner
	load       []int         // number of groups, by worker
	nextWorker int           // the worker to try first for a new group
	recent     []recentGroup // the groups that were removed last, at most maxRecentGroups
	nextRecent int           // index in recent
}

// The core of each worker remembers recent members (docs/AGGREGATION.md, R73): a group
// that is registered again within recentFor gets the same worker. Packets are delayed by
// less than that, and fewer groups than maxRecentGroups are removed in that time.
const (
	maxRecentGroups = 1024
	recentFor       = time.Second
)

type recentGroup struct {
	ip        netip.Addr
	worker    int
	removedAt time.Time // the time when the group was removed
}

// ownerTable is a hash table with open addressing and linear probing, at most half full.
// Only addresses that are, or were, registered are in it, so strangers' packets cannot
// lengthen the probe sequences.
type ownerTable struct {
	slots []ownerSlot // the length is a power of two
	used  int         // slots with a key; of the control loop
}

type ownerSlot struct {
	key    rocev2.AddrKey
	worker atomic.Int32 // index + 1; 0: the slot has no key, removedOwner: the group was removed
}

const removedOwner = -1

// minOwnerSlots is the least length of the table.
const minOwnerSlots = 8

func (t *ownerTable) home(k rocev2.AddrKey) uint64 { return k.Hash() & uint64(len(t.slots)-1) }

func newGroupOwners(workers int) *groupOwners {
	o := &groupOwners{load: make([]int, workers)}
	o.table.Store(&ownerTable{slots: make([]ownerSlot, minOwnerSlots)})
	return o
}

// find returns the slot with key k, or the free slot where it belongs, and what worker is
// there. It reads worker once: a slot that was free may have got another key since.
func (t *ownerTable) find(k rocev2.AddrKey) (s *ownerSlot, worker int) {
	for i := t.home(k); ; i = (i + 1) & uint64(len(t.slots)-1) {
		s = &t.slots[i]
		if w := s.worker.Load(); w == 0 || s.key == k {
			return s, int(w)
		}
	}
}

// set makes worker the owner of k. The table must have room.
func (t *ownerTable) set(k rocev2.AddrKey, worker int) {
	s, was := t.find(k)
	if was == 0 {
		s.key = k
		t.used++
	}
	s.worker.Store(int32(worker + 1)) // now readers see the key
}

// of returns the owner of the group with address k; ok is false if there is no such
// group. Any goroutine may call it; it allocates nothing.
func (o *groupOwners) of(k rocev2.AddrKey) (worker int, ok bool) {
	_, w := o.table.Load().find(k)
	return w - 1, w > 0
}

// choose returns the worker for a new group: its recent owner if it had one, or else the
// worker with the fewest groups; workers with equally many alternate.
func (o *groupOwners) choose(ip netip.Addr) int {
	for i := range o.recent {
		if f := &o.recent[i]; f.ip == ip && time.Since(f.removedAt) < recentFor {
			return f.worker
		}
	}
	best := o.nextWorker
	for i := range o.load {
		if k := (o.nextWorker + i) % len(o.load); o.load[k] < o.load[best] {
			best = k
		}
	}
	o.nextWorker = (best + 1) % len(o.load)
	return best
}

// put makes worker the owner of group ip, which has none yet.
func (o *groupOwners) put(ip netip.Addr, worker int) {
	t := o.table.Load()
	if 2*(t.used+1) > len(t.slots) {
		t = o.grow(t)
	}
	t.set(rocev2.KeyOf(ip), worker)
	o.groups++
	o.load[worker]++
}

// remove removes the owner of ip.
func (o *groupOwners) remove(ip netip.Addr) {
	s, w := o.table.Load().find(rocev2.KeyOf(ip))
	if w--; w < 0 {
		return
	}
	s.worker.Store(removedOwner)
	o.groups--
	o.load[w]--
	r := recentGroup{ip, w, time.Now()}
	if len(o.recent) < maxRecentGroups {
		o.recent = append(o.recent, r)
		return
	}
	o.recent[o.nextRecent] = r
	o.nextRecent = (o.nextRecent + 1) % maxRecentGroups
}

// grow replaces t by a table without the groups that were removed, at most a third full
// after the next one is put, and returns it.
func (o *groupOwners) grow(t *ownerTable) *ownerTable {
	x := &ownerTable{slots: make([]ownerSlot, max(minOwnerSlots, 1<<bits.Len(uint(3*(o.groups+1)-1))))}
	for i := range t.slots {
		if w := t.slots[i].worker.Load(); w > 0 {
			x.set(t.slots[i].key, int(w-1))
		}
	}
	o.table.Store(x)
	return x
}

// peekIP reads the destination address of an Ethernet frame that may hold an IP packet,
// with or without VLAN tags, and returns the bytes behind its IP header. It checks only
// what it needs: the worker that serves the frame decodes it.
func peekIP(b []byte) (k rocev2.AddrKey, l4 []byte, ok bool) {
	at := rocev2.EthernetLen
	if len(b) < at {
		return k, nil, false
	}
	kind := binary.BigEndian.Uint16(b[at-2:])
	for kind == rocev2.EtherTypeVLAN || kind == rocev2.EtherTypeQinQ {
		if at += rocev2.VLANLen; len(b) < at {
			return k, nil, false
		}
		kind = binary.BigEndian.Uint16(b[at-2:])
	}
	switch b = b[at:]; {
	case kind == rocev2.EtherTypeIPv4 && len(b) >= rocev2.IPv4Len:
		return rocev2.IPv4(b).DstKey(), b[min(len(b), int(b[0]&0xF)*4):], true
	case kind == rocev2.EtherTypeIPv6 && len(b) >= rocev2.IPv6Len:
		return rocev2.IPv6(b).DstKey(), b[rocev2.IPv6Len:], true
	}
	return k, nil, false
}
