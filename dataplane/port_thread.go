// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"fmt"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// portThread is the thread on which ports are opened and closed while the workers run. It
// is in the network namespace of the ports: a process that has given up its privileges
// cannot enter one any more, and Go chooses any thread for a goroutine.
type portThread struct {
	jobs  chan func()
	mu    sync.Mutex // the lock of ended
	ended bool
	done  chan struct{}
}

// newPortThread starts the thread, in the calling thread's network namespace.
func newPortThread() (*portThread, error) {
	const own = "/proc/thread-self/ns/net"
	ns, err := os.Open(own)
	if err != nil {
		return nil, fmt.Errorf("open the network namespace of the ports: %w", err)
	}
	defer ns.Close()
	t := &portThread{jobs: make(chan func(), 64), done: make(chan struct{})}
	entered := make(chan error)
	go func() {
		defer close(t.done)
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		entered <- enter(ns, own)
		for f := range t.jobs {
			f()
		}
	}()
	if err := <-entered; err != nil {
		t.stop()
		return nil, fmt.Errorf("enter the network namespace of the ports: %w", err)
	}
	return t, nil
}

// enter moves the calling thread into a namespace, unless it is there.
func enter(ns *os.File, own string) error {
	var here, there unix.Stat_t
	if err := unix.Stat(own, &here); err != nil {
		return err
	}
	if err := unix.Fstat(int(ns.Fd()), &there); err != nil {
		return err
	}
	if here.Ino == there.Ino && here.Dev == there.Dev {
		return nil
	}
	return unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
}

// put has f run on the thread after what was put before. It returns false if the thread has
// been stopped.
func (t *portThread) put(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return false
	}
	t.jobs <- f
	return true
}

// try is put, unless the thread has as much to do as it may.
func (t *portThread) try(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return true // nothing is done any more
	}
	select {
	case t.jobs <- f:
		return true
	default:
		return false
	}
}

// do is put, and waits until f has run.
func (t *portThread) do(f func()) bool {
	done := make(chan struct{})
	if !t.put(func() { defer close(done); f() }) {
		return false
	}
	<-done
	return true
}

// stop ends the thread when it has done all that was put.
func (t *portThread) stop() {
	t.mu.Lock()
	if !t.ended {
		t.ended = true
		close(t.jobs)
	}
	t.mu.Unlock()
	<-t.done
}
