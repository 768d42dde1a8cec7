// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// maxOthers is the number of CPUs that other programs may use while a test measures
// times. On an idle machine it is below 0.1.
const maxOthers = 0.3

// Machine is how much of the machine other programs use.
type Machine struct {
	others time.Duration
	at     time.Time
	tree   map[int]time.Duration // the CPU time of each process that this one had started; nil: those are others
}

// Watch begins to count.
func Watch() Machine { return Machine{others: others(), at: time.Now()} }

// WatchTree is Watch where the processes that this one starts, and theirs, are no others. What one uses
// that ends meanwhile counts as others' nevertheless.
func WatchTree() Machine {
	m := Watch()
	m.tree = tree()
	return m
}

// Others returns how many CPUs other programs, and a hypervisor's other machines,
// have used since Watch, on average.
func (m Machine) Others() float64 {
	used := others() - m.others
	if m.tree != nil {
		for pid, t := range tree() {
			used -= t - m.tree[pid]
		}
	}
	return float64(used) / float64(time.Since(m.at))
}

// Timing fails the test for its measured time, unless other programs had the CPUs
// meanwhile: then it logs that and skips the test.
func (m Machine) Timing(t testing.TB, format string, args ...any) {
	t.Helper()
	if n := m.Others(); n > maxOthers {
		t.Skipf("%s; but other programs used %.2f CPUs meanwhile", fmt.Sprintf(format, args...), n)
	}
	t.Fatalf(format, args...)
}

// tick is the unit of /proc/stat: USER_HZ is 100 on all that Go runs on.
const tick = 10 * time.Millisecond

// others is the CPU time that was used by anything but this process since the
// machine was started. Interrupts are left out: those here are the test's packets.
func others() time.Duration {
	var user, nice, system, idle, iowait, irq, softirq, steal int64
	b, _ := os.ReadFile("/proc/stat")
	if n, _ := fmt.Sscanf(string(b), "cpu %d %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &iowait, &irq, &softirq, &steal); n < 8 {
		return 0
	}
	var own unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &own) // fails for a bad argument only
	return time.Duration(user+nice+system+steal)*tick - time.Duration(own.Utime.Nano()+own.Stime.Nano())
}

// tree is the CPU time of each process that this one has started, and of theirs, without those that
// outlive their parents.
func tree() map[int]time.Duration {
	all := make(map[int]time.Duration)
	for todo := []int{os.Getpid()}; len(todo) > 0; todo = todo[1:] {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", todo[0]))
		for _, f := range files {
			children, _ := os.ReadFile(f)
			for text := range strings.FieldsSeq(string(children)) {
				pid, err := strconv.Atoi(text)
				if stat, err2 := os.ReadFile("/proc/" + text + "/stat"); err != nil || err2 != nil {
					continue // the process has ended
				} else if f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])); len(f) > 12 {
					user, _ := strconv.Atoi(f[11])
					system, _ := strconv.Atoi(f[12])
					all[pid], todo = time.Duration(user+system)*tick, append(todo, pid)
				}
			}
		}
	}
	return all
}
