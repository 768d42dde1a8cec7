// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/lab"
)

// thread is a function that runs on a thread of its own.
type thread struct {
	tid     int
	stopped chan struct{}
	ended   chan error
}

// onCPU runs f on a thread of its own, on a CPU; -1 for any. f returns when its
// argument is closed, and checks it after an interrupted system call.
func onCPU(cpu int, f func(stopped <-chan struct{}) error) *thread {
	t := &thread{stopped: make(chan struct{}), ended: make(chan error, 1)}
	ids := make(chan int, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends, with its affinity
		ids <- unix.Gettid()
		err := lab.StayOn(cpu)
		if err == nil {
			err = f(t.stopped)
		}
		t.ended <- err
	}()
	t.tid = <-ids
	return t
}

// stop makes f return, interrupting its system calls, and returns its error.
func (t *thread) stop() error {
	close(t.stopped)
	for {
		// The Go runtime takes this signal for a spurious request to preempt.
		_ = unix.Tgkill(os.Getpid(), t.tid, unix.SIGURG)
		select {
		case err := <-t.ended:
			return err
		case <-time.After(time.Millisecond):
		}
	}
}

// wait waits until f has returned by itself.
func (t *thread) wait() error { return <-t.ended }
