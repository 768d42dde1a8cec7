// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/statefile"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
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
	config := fmt.Sprintf("psn_probe: 1ms\nenvelope: {insecure: true}\ngroup_prefixes: [10.80.0.0/12]\nlimits: {groups: %d}\n", groups)
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

// writeGroups writes the state file of a switch whose groups have members at the first hosts.
func writeGroups(b *testing.B, path string, groups, members int) {
	x, _, err := statefile.Open(path, statefile.Options{Interval: time.Millisecond})
	if err != nil {
		b.Fatal(err)
	}
	var change statefile.Change
	for i := range members {
		at := statefile.Location{Port: fmt.Sprintf("f%d", i), MAC: [6]byte{2, 0, 0, 0, 0, byte(i)}, Hop: fakeHost(i)}
		change.PutHost(fakeHost(i), &statefile.Host{Pinned: at, Locations: map[envelope.KeyID]statefile.Location{0: at}})
	}
	for n := range groups {
		g := &statefile.Group{Transaction: 1, Digests: make([][32]byte, 1), RegisteredAt: time.Now().Truncate(time.Millisecond), Registration: envelope.Registration{
			Group: netip.AddrFrom4([4]byte{10, 80 + byte(n>>16), byte(n >> 8), byte(n)}), Epoch: 1, GroupParams: mcast.GroupParams{QPN: 0x4711, PathMTU: 1024},
			Lease: 10 * time.Minute, Master: netip.AddrPortFrom(fakeHost(0), 4797),
		}}
		for i := range members {
			m := envelope.MemberRecord{IP: fakeHost(i), QPN: rocev2.QPN(0x100 + n), SQPSN: 1, RQPSN: 1}
			g.Registration.Members, g.Joined = append(g.Registration.Members, m), append(g.Joined, 1)
		}
		change.PutGroup(g)
		if n%1000 == 999 {
			x.Append(&change)
			change = statefile.Change{}
		}
	}
	x.Append(&change)
	if err := x.Close(); err != nil {
		b.Fatal(err)
	}
}
