// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// All use of package unsafe is in this file: memory shared with the kernel, and system
// calls that take structs.

// ringNeedWakeup is XDP_RING_NEED_WAKEUP.
const ringNeedWakeup uint32 = unix.XDP_RING_NEED_WAKEUP

// mapRing maps one ring of socket fd. It also returns the mapping, for unix.Munmap when
// the ring is no longer used.
func mapRing[T uint64 | Desc](fd int, pgoff int64, size int, off unix.XDPRingOffset) (ring[T], []byte, error) {
	var entry T
	n := int(off.Desc) + size*int(unsafe.Sizeof(entry))
	mem, err := unix.Mmap(fd, pgoff, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return ring[T]{}, nil, err
	}
	r := ring[T]{
		producer: (*uint32)(unsafe.Pointer(&mem[off.Producer])),
		consumer: (*uint32)(unsafe.Pointer(&mem[off.Consumer])),
		flags:    (*uint32)(unsafe.Pointer(&mem[off.Flags])),
		entries:  unsafe.Slice((*T)(unsafe.Pointer(&mem[off.Desc])), size),
		mask:     uint32(size - 1),
	}
	r.prod, r.cons = *r.producer, *r.consumer
	return r, mem, nil
}

// addressOf returns the address of mem, which must not be on the Go heap.
func addressOf(mem []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(mem))) }

// registerUmem makes mem the UMEM of socket fd (XDP_UMEM_REG).
func registerUmem(fd int, mem []byte, frameSize int) error {
	reg := unix.XDPUmemReg{
		Addr: uint64(addressOf(mem)),
		Len:  uint64(len(mem)),
		Size: uint32(frameSize),
	}
	_, _, e := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_XDP, unix.XDP_UMEM_REG,
		uintptr(unsafe.Pointer(&reg)), unsafe.Sizeof(reg), 0)
	runtime.KeepAlive(mem)
	return errnoOrNil(e)
}

// mmapOffsets returns the offsets of the rings of fd in their mappings.
func mmapOffsets(fd int) (off unix.XDPMmapOffsets, err error) {
	err = getsockopt(fd, unix.XDP_MMAP_OFFSETS, unsafe.Pointer(&off), unsafe.Sizeof(off))
	return off, err
}

// statistics reads the kernel's counters of fd.
func statistics(fd int) (st unix.XDPStatistics, err error) {
	err = getsockopt(fd, unix.XDP_STATISTICS, unsafe.Pointer(&st), unsafe.Sizeof(st))
	return st, err
}

// getsockopt reads an option of level SOL_XDP. An older kernel may know a shorter struct;
// the rest then stays zero.
func getsockopt(fd, opt int, p unsafe.Pointer, size uintptr) error {
	n := uint32(size)
	_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_XDP, uintptr(opt),
		uintptr(p), uintptr(unsafe.Pointer(&n)), 0)
	return errnoOrNil(e)
}

func errnoOrNil(e unix.Errno) error {
	if e == 0 {
		return nil
	}
	return e
}
