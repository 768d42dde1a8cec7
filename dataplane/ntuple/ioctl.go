// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package ntuple

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ifreq is struct ifreq with a pointer for its union.
type ifreq struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [24 - unsafe.Sizeof(uintptr(0))]byte
}

// call makes the request b about an interface, which is answered in place.
func call(fd int, name string, b []byte) error {
	r := ifreq{data: unsafe.Pointer(&b[0])}
	copy(r.name[:unix.IFNAMSIZ-1], name)
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&r)))
	runtime.KeepAlive(b)
	if e != 0 {
		return e
	}
	return nil
}
