// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// thread is where a worker runs, and how long it polls before it sleeps.
type thread struct {
	cpu      int // the CPU to run on; -1 for any
	spin     time.Duration
	affinity chan error // the result of pin; workers.run waits for it
}

// pin locks the calling goroutine to its thread, and the thread to the CPU.
func (t *thread) pin() error {
	runtime.LockOSThread()
	if t.cpu < 0 {
		return nil
	}
	var set unix.CPUSet
	set.Set(t.cpu)
	return unix.SchedSetaffinity(0, &set)
}
