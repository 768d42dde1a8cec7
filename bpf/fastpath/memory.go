// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fastpath

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// groupState is struct fast_group.
type groupState struct {
	word       atomic.Uint64
	bytes      atomic.Uint64
	_          [6]uint64
	limit      atomic.Uint64
	_          [7]uint64
	source     [16]byte
	sourceMAC  [6]byte
	flags      uint16
	ifindex    uint32
	qpn        uint32
	pmtu       uint32
	windowRKey uint32
	targetKey  uint32
	_          uint32
	windowBase uint64
	windowLen  uint64
	ringFirst  uint32
	ringMask   uint32
	firstLeg   uint32
	numLegs    uint32
	_          [6]uint64
}

// portState is struct fast_port.
type portState struct{ ifindex, port uint32 }

// sentState is struct fast_sent.
type sentState struct {
	sent, unsent, withheld, error atomic.Uint64
	_                             [4]uint64
}

// pathState is struct fast_path.
type pathState struct{ first, count uint32 }

// legState is struct fast_leg.
type legState struct {
	gate        atomic.Uint64
	missed      atomic.Uint64
	eth         [12]byte
	vid         uint16
	_           uint16
	flags       uint16
	incarnation uint16
	qpn         uint32
	addresses   [32]byte
	checksum    uint32
	icrc        uint32
	psnDelta    uint32
	rkey        uint32
	vaDelta     uint64
	acked       atomic.Uint64
	ackedAt     atomic.Uint64
	taken       atomic.Uint64
	ifindex     uint32
	_           uint32
}

// ackState is struct fast_acks.
type ackState struct {
	sent       atomic.Uint64
	_          [7]uint64
	eth        [12]byte
	sourcePort uint16
	_          uint16
	addresses  [32]byte
	qpn        uint32
	port       uint32
	first      uint32
	count      uint32
	from       uint32
	messages   uint32
	room       uint32
	reach      uint32
	step       uint32
	ceiling    atomic.Uint32
	_          [2]uint32
}

// operatorState is struct operator.
type operatorState [4][256]uint32

// Sizes of slots, struct fast_slot and struct fast_large_slot.
const (
	slotBytes      = 2048
	largeSlotBytes = 4352
	slotHeader     = 24
)

// memory is a map's values, mapped.
type memory []byte

// mapped maps the values of m.
func mapped(m *ebpf.Map) (memory, error) {
	size := int((m.ValueSize()+7)&^7) * int(m.MaxEntries())
	b, err := unix.Mmap(m.FD(), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes of a BPF map into memory: %w", size, err)
	}
	return b, nil
}

func (m memory) close() error {
	if m == nil {
		return nil
	}
	return unix.Munmap(m)
}

// valuesOf returns the values in m, whose type is T.
func valuesOf[T any](m memory) []T {
	var v T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData([]byte(m)))), len(m)/int(unsafe.Sizeof(v)))
}

// slotState is the beginning of struct fast_slot and struct fast_large_slot.
type slotState struct{ header, time, ends atomic.Uint64 }

// slot returns the beginning of the slot at byte off.
func (m memory) slot(off int) *slotState { return (*slotState)(unsafe.Pointer(&m[off])) }

// native returns four bytes as they are in memory.
func native(b []byte) uint32 { return binary.NativeEndian.Uint32(b) }
