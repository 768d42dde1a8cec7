// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"errors"
	"fmt"
)

// Access has the rights of peers to a memory region.
type Access uint8

// Access rights (ibv_access_flags).
const (
	RemoteWrite Access = 1 << iota
	RemoteRead         // accepted for completeness: no responder here serves READ
)

// MR is a registered memory region.
type MR struct {
	RKey   uint32
	IOVA   uint64 // first virtual address, as peers use it
	length int
	buf    []byte // nil: no bytes are carried
	access Access
	valid  bool
}

// Len returns the length of the region in bytes.
func (m *MR) Len() int { return m.length }

// Memory is the set of regions that R_Keys name, as in a protection domain. It
// belongs to the goroutine of the QPs that use it. R_Keys follow from the seed
// alone, so that two runs are equal.
type Memory struct {
	byKey    map[uint32]*MR
	keyState uint64 // splitmix64 state
}

// NewMemory returns an empty set whose R_Keys are drawn from seed.
func NewMemory(seed uint64) *Memory {
	return &Memory{byKey: make(map[uint32]*MR), keyState: seed}
}

// ErrNoRegion is the error of Deregister for an R_Key that names no region.
var ErrNoRegion = errors.New("no memory region has this R_Key")

// RegisterMR lets peers reach buf at virtual addresses iova and up with the
// rights of access, under the R_Key of the returned region (ibv_reg_mr_iova).
func (m *Memory) RegisterMR(buf []byte, iova uint64, access Access) (*MR, error) {
	mr, err := m.RegisterLength(len(buf), iova, access)
	if err == nil {
		mr.buf = buf
	}
	return mr, err
}

// RegisterLength is RegisterMR of a region of which no bytes are carried: a WRITE into it places nothing.
func (m *Memory) RegisterLength(length int, iova uint64, access Access) (*MR, error) {
	if length <= 0 {
		return nil, errors.New("rc: register memory: the buffer is empty: give at least one byte")
	}
	if iova+uint64(length)-1 < iova {
		return nil, fmt.Errorf("rc: register memory: %d bytes at IOVA %#x pass the end of the address space: choose a lower IOVA", length, iova)
	}
	if access&^(RemoteWrite|RemoteRead) != 0 {
		return nil, fmt.Errorf("rc: register memory: unknown access bits %#x: use RemoteWrite, RemoteRead", uint8(access))
	}
	key := m.newKey()
	mr := &MR{RKey: key, IOVA: iova, length: length, access: access, valid: true}
	m.byKey[key] = mr
	return mr, nil
}

// newKey returns an R_Key that is not in use, never 0 (splitmix64).
func (m *Memory) newKey() uint32 {
	for {
		m.keyState += 0x9E3779B97F4A7C15
		z := m.keyState
		z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
		z = (z ^ z>>27) * 0x94D049BB133111EB
		key := uint32((z ^ z>>31) >> 32)
		if _, taken := m.byKey[key]; key != 0 && !taken {
			return key
		}
	}
}

// Deregister removes a region. A message that is being written into the region fails with
// a remote access error at its next packet.
func (m *Memory) Deregister(rkey uint32) error {
	if !m.invalidate(rkey) {
		return fmt.Errorf("rc: deregister memory: %w", ErrNoRegion)
	}
	return nil
}

// invalidate removes a region for Deregister and for SEND with invalidate.
func (m *Memory) invalidate(rkey uint32) bool {
	if m == nil {
		return false
	}
	mr := m.byKey[rkey]
	if mr == nil {
		return false
	}
	mr.valid = false
	delete(m.byKey, rkey)
	return true
}

// writable returns the region that holds all of [va, va+length) and that peers may write
// to; nil if there is none.
func (m *Memory) writable(rkey uint32, va uint64, length uint32) *MR {
	if m == nil {
		return nil
	}
	mr := m.byKey[rkey]
	if mr == nil || mr.access&RemoteWrite == 0 {
		return nil
	}
	size := uint64(mr.length)
	if va < mr.IOVA || va-mr.IOVA > size || uint64(length) > size-(va-mr.IOVA) {
		return nil
	}
	return mr
}
