// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

// tick is the unit of CPU time in /proc: USER_HZ is 100 on every architecture of Linux.
const tick = 10 * time.Millisecond

// cpu returns the CPU time that the device's processes that run, and its switch, have had.
func (d *Device) cpu() (sum time.Duration, err error) {
	d.mu.Lock()
	pids := []int{d.gateway.PID(), d.Bed.Gleamd.Process.PID()}
	for _, p := range d.replicas[1:] {
		pids = append(pids, p.PID())
	}
	d.mu.Unlock()
	for _, pid := range pids {
		t, err := cpuOf(pid)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return 0, err
		}
		sum += t
	}
	return sum, nil
}

// cpuOf reads the user and system time of a process, proc_pid_stat(5).
func cpuOf(pid int) (time.Duration, error) {
	name := fmt.Sprintf("/proc/%d/stat", pid)
	b, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:]) // from field 3 on
	if len(fields) < 13 {
		return 0, fmt.Errorf("%s: %d fields", name, len(fields))
	}
	var sum int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		sum += n
	}
	return time.Duration(sum) * tick, nil
}
