// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// tick is the unit of CPU time in /proc: USER_HZ is 100 on every architecture of Linux.
const tick = 10 * time.Millisecond

// statFields returns the numbers of /proc/PID/stat from field n on. Its second field is the
// command in parentheses and may hold any text, so fields count from the last ')', which field 3 follows.
func statFields(pid, n, count int) ([]uint64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < n-3+count {
		return nil, fmt.Errorf("/proc/%d/stat has too few fields", pid)
	}
	numbers := make([]uint64, count)
	for i := range numbers {
		if numbers[i], err = strconv.ParseUint(string(fields[n-3+i]), 10, 64); err != nil {
			return nil, fmt.Errorf("/proc/%d/stat, field %d: %w", pid, n+i, err)
		}
	}
	return numbers, nil
}

// CPUTime returns the CPU time that the process has had, of users and system, in ticks of 10 ms.
func (p *Process) CPUTime() (time.Duration, error) {
	n, err := statFields(p.PID(), 14, 2)
	if err != nil {
		return 0, fmt.Errorf("CPU time of %s: %w", p.name, err)
	}
	return time.Duration(n[0]+n[1]) * tick, nil
}

// Resident returns the bytes of the process's memory that are in RAM.
func (p *Process) Resident() (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		return 0, fmt.Errorf("memory of %s: %w", p.name, err)
	}
	for line := range strings.Lines(string(status)) {
		var kb int64
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kb); n == 1 {
			return kb << 10, nil
		}
	}
	return 0, fmt.Errorf("memory of %s: process %d has no VmRSS", p.name, p.PID())
}

// TwoCPUs returns the first and the last CPU that this process may use: one for what is measured,
// and one for what loads it. It returns -1 twice if there is only one.
func TwoCPUs() (first, last int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return 0, 0, fmt.Errorf("ask for this process's CPUs: %w", err)
	}
	if set.Count() < 2 {
		return -1, -1, nil
	}
	first = -1
	for i := range len(set) * 64 {
		if set.IsSet(i) {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	return first, last, nil
}

// StayOn keeps the calling thread, which must be locked, on a CPU; -1 on any.
func StayOn(cpu int) error {
	if cpu < 0 {
		return nil
	}
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("stay on CPU %d: %w", cpu, err)
	}
	return nil
}
