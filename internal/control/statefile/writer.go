// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package statefile

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// work stores pending changes until the file is closed.
func (f *File) work() {
	defer close(f.done)
	var notBefore time.Time
	for f.waitUntil(notBefore) {
		b, number := f.take()
		wait := f.options.Interval
		if !f.store(b, number) {
			wait = f.options.Retry
		}
		notBefore = time.Now().Add(wait)
	}
}

// waitUntil waits for changes to write, and until t unless a Flush waits for them.
// It returns false when the file is closed.
func (f *File) waitUntil(t time.Time) bool {
	for {
		f.mu.Lock()
		closed, now, due := f.closed, f.urgent > 0, f.stored < f.next
		f.mu.Unlock()
		wait := time.Until(t)
		switch {
		case closed:
			return false
		case due && (now || wait <= 0):
			return true
		case !due:
			<-f.wake
		default:
			timer := time.NewTimer(wait)
			select {
			case <-f.wake:
			case <-timer.C:
			}
			timer.Stop()
		}
	}
}

// take returns the pending changes, and the number of the last one.
func (f *File) take() (*batch, uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.pending
	f.pending = batch{}
	f.begun++
	return &b, f.next
}

// store makes b durable, and with it all changes up to number.
func (f *File) store(b *batch, number uint64) bool {
	err := f.log.commit(b)
	if err != nil {
		err = f.explain(err)
	}
	f.mu.Lock()
	failedBefore := f.failing
	f.failing = err != nil
	if err != nil {
		f.failure, f.failed = err, f.begun
		f.errors++
	} else {
		f.stored = number
		f.written++
	}
	f.changed.Broadcast()
	f.mu.Unlock()
	if (err != nil) != failedBefore {
		f.options.Report(err)
	}
	f.options.Stored()
	return err == nil
}

// explain says what a failed write means, and what to do.
func (f *File) explain(err error) error {
	step := "see the kernel's log for the disk"
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		step = "make room on that file system"
	case errors.Is(err, unix.EROFS):
		step = "mount that file system for writing, or name another file"
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		step = "give the user of this process the right to write in that folder"
	}
	return fmt.Errorf("state file %s cannot be written: %w; groups go on without it, new members are refused, and a restart would know the groups as of the last write: %s", f.path, err, step)
}
