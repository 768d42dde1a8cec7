// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"os"

	"golang.org/x/sys/unix"
)

// readKeys passes on what is typed, key by key: a terminal gives no lines, and shows no keys, until
// restore is called. Ctrl-C stays a signal. Where f is no terminal its bytes are keys, too.
func readKeys(f *os.File) (keys <-chan byte, restore func()) {
	restore = func() {}
	fd := int(f.Fd())
	if was, err := unix.IoctlGetTermios(fd, unix.TCGETS); err == nil {
		if front, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err != nil || front != unix.Getpgrp() {
			return nil, restore // a job in the background may not read
		}
		now := *was
		now.Lflag &^= unix.ICANON | unix.ECHO
		now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 1, 0
		if unix.IoctlSetTermios(fd, unix.TCSETS, &now) == nil {
			restore = func() { _ = unix.IoctlSetTermios(fd, unix.TCSETS, was) }
		}
	}
	typed := make(chan byte)
	go func() { // it ends with the program, as nothing ends a read
		var b [16]byte
		for {
			n, err := f.Read(b[:])
			for _, k := range b[:n] {
				typed <- k
			}
			if err != nil {
				return
			}
		}
	}()
	return typed, restore
}
