// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"sync"
)

// A port's part of the maps goes by its slot, a number from 1. The program finds it by the
// interface that a frame has come by (steer.c, slot_of).

// Sizes of the map of interfaces.
const (
	portBuckets   = 1024
	portsInBucket = 4
)

// portBucket is struct port_bucket: the interfaces whose index is the same modulo
// portBuckets.
type portBucket struct {
	Ifindex, Slot [portsInBucket]uint32
}

// slots are the slots that no port has, and the interfaces of those that ports have.
type slots struct {
	mu      sync.Mutex
	free    []uint32
	used    map[uint32]bool // slots that a port has had: their part of the maps is not empty
	buckets map[uint32]portBucket
}

// make makes n slots.
func (x *slots) make(n int) {
	x.used, x.buckets = make(map[uint32]bool), make(map[uint32]portBucket)
	for i := n; i > 0; i-- {
		x.free = append(x.free, uint32(i))
	}
}

// newPort takes a slot for a port.
func (s *Steering) newPort(ifname string) (*PortProgram, error) {
	x := &s.slots
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.free) == 0 {
		return nil, fmt.Errorf("no slot of the XDP program's maps is free for %s", ifname)
	}
	p := &PortProgram{ifname: ifname, steering: s, maps: &s.maps, slot: x.free[len(x.free)-1]}
	if x.used[p.slot] {
		if err := p.empty(); err != nil {
			return nil, err
		}
	}
	x.free, x.used[p.slot] = x.free[:len(x.free)-1], true
	return p, nil
}

// release gives the slot of p to others.
func (p *PortProgram) release() {
	x := &p.steering.slots
	x.mu.Lock()
	defer x.mu.Unlock()
	x.free = append(x.free, p.slot)
}

// steer has frames of an interface go by the slot of p, and those of its former one no more;
// 0: of none. The program counts nothing for an interface before.
func (p *PortProgram) steer(ifindex uint32) error {
	x := &p.steering.slots
	x.mu.Lock()
	defer x.mu.Unlock()
	err := x.change(p.maps, p.ifindex, p.slot, 0)
	if ifindex != 0 {
		err = errors.Join(err, x.change(p.maps, ifindex, 0, p.slot))
	}
	p.ifindex = ifindex
	return err
}

// change replaces the slot from of an interface by to; 0 is none.
func (x *slots) change(maps *steerMaps, ifindex, from, to uint32) error {
	key := ifindex % portBuckets
	b := x.buckets[key]
	for i := range b.Ifindex {
		if from != 0 && (b.Ifindex[i] != ifindex || b.Slot[i] != from) || from == 0 && b.Ifindex[i] != 0 {
			continue
		}
		b.Slot[i], b.Ifindex[i] = to, ifindex
		if to == 0 {
			b.Ifindex[i] = 0
		}
		x.buckets[key] = b
		return maps.Ports.Put(key, b)
	}
	if from != 0 {
		return nil
	}
	return fmt.Errorf("%d ports have interfaces whose index modulo %d is that of interface %d: make the interface anew", portsInBucket, portBuckets, ifindex)
}
