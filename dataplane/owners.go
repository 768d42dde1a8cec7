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
// without a lock: a published table never changes, and a new one replaces it. Only the
// control loop writes.
type groupOwners struct {
	table      atomic.Pointer[ownerTable]
	workerOf   map[netip.Addr]int // used by the control loop
	load       []int              // number of groups, by worker
	nextWorker int                // the worker to try first for a new group
	recent     [maxRecentGroups]recentGroup
	nextRecent int // index in recent
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
	removedAt time.Time // when it was removed
}

// ownerTable is a hash table with open addressing and linear probing, at most half full.
// It holds only registered addresses, so strangers' packets cannot lengthen the probe
// sequences.
type ownerTable struct {
	slots []ownerSlot // the length is a power of two
}

type ownerSlot struct {
	key    addrKey
	worker int32 // index + 1; 0: free
}

// addrKey is an IP address in two words; IPv4 in its IPv6-mapped form.
type addrKey struct{ hi, lo uint64 }

// ipv4Mapped is the upper half of the lower word of an IPv4-mapped address.
const ipv4Mapped = 0xFFFF << 32

func keyOf(a netip.Addr) addrKey {
	b := a.As16()
	return addrKey{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

func (t *ownerTable) home(k addrKey) uint64 {
	h := k.lo ^ k.hi*0x9E3779B97F4A7C15
	h = (h ^ h>>30) * 0xBF58476D1CE4E5B9
	h = (h ^ h>>27) * 0x94D049BB133111EB
	return (h ^ h>>31) & uint64(len(t.slots)-1)
}

func newGroupOwners(workers int) *groupOwners {
	o := &groupOwners{workerOf: make(map[netip.Addr]int), load: make([]int, workers)}
	o.publish()
	return o
}

// of returns the owner of the group with address k; ok is false if there is no such
// group. Any goroutine may call it; it allocates nothing.
func (o *groupOwners) of(k addrKey) (worker int, ok bool) {
	t := o.table.Load()
	for i := t.home(k); ; i = (i + 1) & uint64(len(t.slots)-1) {
		switch s := &t.slots[i]; {
		case s.worker == 0:
			return 0, false
		case s.key == k:
			return int(s.worker - 1), true
		}
	}
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

// put makes worker the owner of group ip, which has none yet, and publishes that.
func (o *groupOwners) put(ip netip.Addr, worker int) {
	o.workerOf[ip] = worker
	o.load[worker]++
	o.publish()
}

// remove removes the owner of ip.
func (o *groupOwners) remove(ip netip.Addr) {
	if w, ok := o.workerOf[ip]; ok {
		delete(o.workerOf, ip)
		o.load[w]--
		o.recent[o.nextRecent] = recentGroup{ip, w, time.Now()}
		o.nextRecent = (o.nextRecent + 1) % maxRecentGroups
		o.publish()
	}
}

func (o *groupOwners) publish() {
	t := &ownerTable{slots: make([]ownerSlot, max(8, 1<<bits.Len(uint(2*len(o.workerOf)))))}
	for ip, w := range o.workerOf {
		k := keyOf(ip)
		i := t.home(k)
		for t.slots[i].worker != 0 {
			i = (i + 1) & uint64(len(t.slots)-1)
		}
		t.slots[i] = ownerSlot{k, int32(w + 1)}
	}
	o.table.Store(t)
}

// peekIP reads the destination address of an Ethernet frame that may hold an IP packet,
// with or without VLAN tags, and returns the bytes behind its IP header. It checks only
// what it needs: the worker that serves the frame decodes it.
func peekIP(b []byte) (k addrKey, l4 []byte, ok bool) {
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
		k = addrKey{0, ipv4Mapped | uint64(binary.BigEndian.Uint32(b[16:]))}
		return k, b[min(len(b), int(b[0]&0xF)*4):], true
	case kind == rocev2.EtherTypeIPv6 && len(b) >= rocev2.IPv6Len:
		k = addrKey{binary.BigEndian.Uint64(b[24:]), binary.BigEndian.Uint64(b[32:])}
		return k, b[rocev2.IPv6Len:], true
	}
	return k, nil, false
}
