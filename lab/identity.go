// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// processID names one process for good: ids are reused, but not together with
// the start time.
type processID struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`         // clock ticks since boot, field 22 of /proc/PID/stat
	Log   string `json:"log,omitempty"` // file with its output
}

// identify returns the identity of a running process.
func identify(pid int) (processID, error) {
	start, err := statFields(pid, 22, 1)
	if err != nil {
		return processID{}, fmt.Errorf("identify process %d: %w", pid, err)
	}
	return processID{PID: pid, Start: start[0]}, nil
}

// alive reports whether the very process p still runs.
func (p processID) alive() bool {
	now, err := identify(p.PID)
	return err == nil && now.Start == p.Start
}

// kill ends p: SIGTERM, after grace SIGKILL, and waits until it is gone. A
// process that has already ended, or whose id now belongs to another, is left
// alone: the pidfd is opened before the identity is checked, so the signal can
// only reach the process that was checked.
func (p processID) kill(grace time.Duration) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("stop process %d: %w", p.PID, err)
	}
	defer unix.Close(fd)
	if !p.alive() {
		return nil
	}
	for _, step := range []struct {
		signal unix.Signal
		wait   time.Duration
	}{{unix.SIGTERM, grace}, {unix.SIGKILL, grace}} {
		if err := unix.PidfdSendSignal(fd, step.signal, nil, 0); errors.Is(err, unix.ESRCH) {
			return nil
		} else if err != nil {
			return fmt.Errorf("stop process %d: %w", p.PID, err)
		}
		if gone, err := waitReadable(fd, step.wait); err != nil {
			return fmt.Errorf("stop process %d: %w", p.PID, err)
		} else if gone {
			return nil
		}
	}
	return fmt.Errorf("stop process %d: still there %v after SIGKILL", p.PID, grace)
}

// waitReadable waits until fd, a pidfd, is readable: the process has ended.
func waitReadable(fd int, d time.Duration) (bool, error) {
	end := time.Now().Add(d)
	for {
		left := max(time.Until(end), 0)
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds()))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return false, err
		}
		if n > 0 || left == 0 {
			return n > 0, nil
		}
	}
}
