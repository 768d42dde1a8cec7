// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// BenchmarkRestart is the start of a switch with the groups of a state file. heap/group is what they
// take then, after garbage collection, without what the switch takes that has no groups; gc-cpu and gc-pause
// are the cost of one more collection while the groups are idle. cpu-s is the CPU time of the start: ns/op depends on
// what else runs.
func BenchmarkRestart(b *testing.B) {
	for _, c := range []struct{ groups, members int }{{1000, 4}, {1000, 16}, {20_000, 4}, {100_000, 4}} {
		b.Run(fmt.Sprintf("groups=%d/members=%d", c.groups, c.members), func(b *testing.B) { benchmarkRestart(b, c.groups, c.members) })
	}
}

func benchmarkRestart(b *testing.B, groups, members int) {
	config := restartConfig(groups)
	dir := b.TempDir()
	writeGroups(b, filepath.Join(dir, "groups"), groups, members)
	for b.Loop() {
		b.StopTimer()
		empty, _ := heapInUse()
		f := newFakeSwitchWith(b, members, 1, config)
		f.control.do(func() {})
		without, _ := heapInUse()
		without -= empty
		f.stop()
		f = nil
		empty, _ = heapInUse()
		began := cpuTime(b)
		b.StartTimer()
		f = newFakeSwitchWith(b, members, 1, config+"state: "+dir+"\n")
		f.control.do(func() {}) // after the groups
		b.StopTimer()
		b.ReportMetric((cpuTime(b) - began).Seconds(), "cpu-s")
		if n := len(f.control.dir.groups); n != groups {
			b.Fatalf("%d groups: %q", n, f.warnings[:min(3, len(f.warnings))])
		}
		f.log = nil                                                                // the log of the test
		f.control.do(func() { *f.control.departures.announcer = *newAnnouncer() }) // what is to be announced is no memory of idle groups
		with, _ := heapInUse()
		cpu, pauses := cpuTime(b), gcPauses()
		runtime.GC()
		cpuNow, pausesNow := cpuTime(b), gcPauses()
		b.ReportMetric(float64(with-empty-without)/float64(groups), "heap/group")
		b.ReportMetric(float64(with-empty)/1e6, "heap-MB")
		b.ReportMetric(float64((cpuNow-cpu).Microseconds())/1e3, "gc-cpu-ms")
		b.ReportMetric(float64(pausesNow-pauses)/1e6, "gc-pause-ms")
		f.end()
		b.StartTimer()
	}
}

// cpuTime returns the CPU time of the process.
func cpuTime(b testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// gcPauses returns the nanoseconds for which garbage collections have stopped the world.
func gcPauses() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.PauseTotalNs
}
