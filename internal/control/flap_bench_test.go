// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkFlap is what the control loop does about a link that comes up behind 100,000 groups of 4: up-ms is the CPU time of the
// event with its first announcements, most-ms that of the costliest batch of them, cpu-s that of all.
func BenchmarkFlap(b *testing.B) {
	const groups, members = 100_000, 4
	dir := b.TempDir()
	writeGroups(b, filepath.Join(dir, "groups"), groups, members)
	f := newFakeSwitchWith(b, members, 1, restartConfig(groups)+"state: "+dir+"\n")
	f.control.do(func() {
		c := f.control
		a, now := c.departures.announcer, c.now()
		for b.Loop() {
			*a = *newAnnouncer()
			begin := cpuTime(b)
			last := begin
			var up, most time.Duration
			c.dir.hosts.Repin(c.ports[1].Ifindex)
			c.announcePort(1)
			for at, ok := a.next(); ok; at, ok = a.next() {
				now = max(now+announceInterval, at)
				c.continueSweeps(now)
				a.due(now)
				took := cpuTime(b) - last
				if last += took; up == 0 {
					up = took
				}
				most = max(most, took)
			}
			b.ReportMetric(float64(up.Microseconds())/1e3, "up-ms")
			b.ReportMetric(float64(most.Microseconds())/1e3, "most-ms")
			b.ReportMetric((last - begin).Seconds(), "cpu-s")
		}
	})
}
