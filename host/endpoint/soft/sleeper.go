// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package soft

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// sleeper sleeps for less than a millisecond. Go's network poller waits in whole
// milliseconds, in which a paced queue pair at 500 Mbit/s would gather a burst of 60 KB.
// A sleeper holds a thread meanwhile, so only devices that pace have one. Its zero value
// is unused.
type sleeper struct {
	waker  *os.File // an eventfd; nil: none
	fd     int      // its descriptor
	asleep atomic.Bool

	// Used by the sleeping goroutine only; fields, so that nothing is allocated.
	fds   [2]unix.PollFd
	ts    unix.Timespec
	count [8]byte
}

// ppollBelow is the longest sleep; a longer wait uses the poller. minPpoll bounds how
// often a paced device wakes.
const (
	ppollBelow = time.Millisecond
	minPpoll   = 100 * time.Microsecond
)

func (n *sleeper) open() error {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return fmt.Errorf("eventfd: %w", err)
	}
	n.fd, n.waker = fd, os.NewFile(uintptr(fd), "eventfd")
	return nil
}

func (n *sleeper) close() error {
	if n.waker == nil {
		return nil
	}
	return n.waker.Close()
}

// wake ends a sleep. Any goroutine may call it.
func (n *sleeper) wake() {
	if n.asleep.Load() {
		_, _ = n.waker.Write([]byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
}

// sleep waits for d, or until fd is readable or wake is called. Between setting asleep
// and the call the caller must check for work that a wake would announce.
func (n *sleeper) sleep(fd int, d time.Duration) error {
	n.fds = [2]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(n.fd), Events: unix.POLLIN}}
	n.ts = unix.NsecToTimespec(int64(d))
	// The system call keeps the processor from Go's other goroutines until the runtime's
	// monitor notices, which can take longer than the sleep.
	runtime.Gosched()
	_, err := unix.Ppoll(n.fds[:], &n.ts, nil)
	n.asleep.Store(false)
	if n.fds[1].Revents != 0 {
		_, _ = unix.Read(n.fd, n.count[:])
	}
	if err == unix.EINTR {
		return nil
	}
	return err
}
