// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Alloc returns n bytes of memory outside of the Go heap, zeroed and beginning
// where a page begins, and what frees them: after the region's Close, and after
// the last use of the slice.
func Alloc(n int) (buf []byte, free func() error, err error) {
	if n < 1 {
		return nil, nil, fmt.Errorf("allocate %d bytes to register: want at least 1", n)
	}
	buf, err = unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, nil, fmt.Errorf("allocate %d bytes to register: %w", n, err)
	}
	return buf, func() error { return unix.Munmap(buf) }, nil
}

// pageOffsetsAgree says whether a buffer at address va can appear to peers at
// iova: the device maps whole pages (ib_uverbs_reg_mr in the kernel wants it).
func pageOffsetsAgree(va, iova uint64, pageSize int) bool {
	return (va^iova)&uint64(pageSize-1) == 0
}
