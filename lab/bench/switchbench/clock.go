// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// clockOf reads a clock of the kernel.
func clockOf(id int32) (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		return 0, fmt.Errorf("read clock %d: %w", id, err)
	}
	return time.Duration(ts.Nano()), nil
}

// monotonic is the clock of bpf_ktime_get_ns.
func monotonic() (time.Duration, error) { return clockOf(unix.CLOCK_MONOTONIC) }

// processCPU is the CPU time of all threads of this process, ended ones too.
func processCPU() (time.Duration, error) { return clockOf(unix.CLOCK_PROCESS_CPUTIME_ID) }

// threadCPU is the CPU time of thread tid of this process, softirqs that ran in
// its context included (unless the kernel has CONFIG_IRQ_TIME_ACCOUNTING).
func threadCPU(tid int) (time.Duration, error) {
	return clockOf(^int32(tid)<<3 | 4 | 2) // MAKE_THREAD_CPUCLOCK(tid, CPUCLOCK_SCHED)
}

// softirqThreads are the directories in /proc of the kernel's threads for deferred
// softirqs. Empty where /proc does not show them.
func softirqThreads() (dirs []string) {
	names, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, n := range names {
		if b, err := os.ReadFile(n); err == nil && strings.HasPrefix(string(b), "ksoftirqd/") {
			dirs = append(dirs, filepath.Dir(n))
		}
	}
	return dirs
}

// scheduled is the CPU time of the tasks of dirs. The kernel brings it up to
// date at each tick only.
func scheduled(dirs []string) (sum time.Duration, err error) {
	for _, d := range dirs {
		b, err := os.ReadFile(filepath.Join(d, "schedstat"))
		if err != nil {
			return 0, err
		}
		var ns int64
		if _, err := fmt.Sscan(string(b), &ns); err != nil {
			return 0, fmt.Errorf("read %s/schedstat: %w", d, err)
		}
		sum += time.Duration(ns)
	}
	return sum, nil
}
