// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

//go:build verbs && cgo

package verbs

// #include "shim.h"
import "C"

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/host/endpoint"
)

// mr is an endpoint.MR. Work requests name its bytes by base and up: that is
// its iova too if peers may write to it, else where Go has it.
type mr struct {
	dev    *device
	buf    []byte
	addr   uint64
	base   uint64
	access endpoint.Access
	lkey   uint32
	rkey   uint32
	pin    runtime.Pinner
	c      *C.struct_ibv_mr // nil once closed; dev.mu guards it
	closed atomic.Bool      // c is nil
}

// RegisterMemory pins buf, if it is on the Go heap, and registers it. If access
// has RemoteWrite, buf must begin at the same offset within a page as iova: see
// Alloc. Otherwise nobody else uses iova, and it is only remembered.
func (d *device) RegisterMemory(buf []byte, iova uint64, access endpoint.Access) (endpoint.MR, error) {
	m, err := d.register(buf, iova, access)
	if err != nil {
		return nil, fmt.Errorf("register memory: %w", err)
	}
	return m, nil
}

func (d *device) register(buf []byte, iova uint64, access endpoint.Access) (*mr, error) {
	if len(buf) == 0 {
		return nil, fmt.Errorf("the buffer is empty")
	}
	if access&^(endpoint.LocalWrite|endpoint.RemoteWrite) != 0 {
		return nil, fmt.Errorf("unknown access bits 0x%x", uint8(access))
	}
	if iova > math.MaxUint64-uint64(len(buf)-1) {
		return nil, fmt.Errorf("%d bytes at 0x%x pass the end of the address space", len(buf), iova)
	}
	va := uint64(uintptr(unsafe.Pointer(&buf[0])))
	m := &mr{dev: d, buf: buf, addr: iova, base: va, access: access}
	rights := C.int(0)
	if access&endpoint.RemoteWrite != 0 {
		page := os.Getpagesize()
		if !pageOffsetsAgree(va, iova, page) {
			return nil, fmt.Errorf("the buffer is %d bytes into a page and address 0x%x is %d: a device maps whole pages, so use a buffer of verbs.Alloc and a multiple of %d, or the buffer's own address",
				va%uint64(page), iova, iova%uint64(page), page)
		}
		m.base, m.access = iova, access|endpoint.LocalWrite
		rights = C.IBV_ACCESS_REMOTE_WRITE
	}
	if m.access&endpoint.LocalWrite != 0 {
		rights |= C.IBV_ACCESS_LOCAL_WRITE
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, d.errClosed()
	}
	m.pin.Pin(&buf[0])
	var err error
	m.c, err = C.gleam_reg_mr(d.pd, unsafe.Pointer(&buf[0]), C.size_t(len(buf)), C.uint64_t(m.base), rights)
	if m.c == nil {
		m.pin.Unpin()
		return nil, memoryError(errnoOf(err), len(buf), memlockLimit())
	}
	m.lkey, m.rkey = uint32(m.c.lkey), uint32(m.c.rkey)
	d.mrs[m] = true
	return m, nil
}

// memlockLimit returns RLIMIT_MEMLOCK in bytes.
func memlockLimit() uint64 {
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &r) != nil {
		return unix.RLIM_INFINITY
	}
	return r.Cur
}

func (m *mr) Bytes() []byte { return m.buf }
func (m *mr) Addr() uint64  { return m.addr }
func (m *mr) Len() int      { return len(m.buf) }
func (m *mr) LKey() uint32  { return m.lkey }
func (m *mr) RKey() uint32  { return m.rkey }

// Close takes the buffer from the device, and unpins it.
func (m *mr) Close() error {
	m.dev.mu.Lock()
	defer m.dev.mu.Unlock()
	if m.c == nil {
		return nil
	}
	if rc := C.ibv_dereg_mr(m.c); rc != 0 {
		return fmt.Errorf("close memory region: %w", callError(callDereg, unix.Errno(rc)))
	}
	m.c = nil
	m.closed.Store(true)
	m.pin.Unpin()
	delete(m.dev.mrs, m)
	return nil
}
