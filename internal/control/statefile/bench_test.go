// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package statefile

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkChange is one registration of a group of 16 in a file with many groups, made
// durable before the next, or in batches as they come.
func BenchmarkChange(b *testing.B) {
	for _, groups := range []int{1000, 10000} {
		for _, batched := range []bool{false, true} {
			b.Run(fmt.Sprintf("groups=%d/batched=%v", groups, batched), func(b *testing.B) {
				path := b.TempDir() + "/state"
				f, _, err := Open(path, Options{Report: func(err error) { b.Error(err) }})
				if err != nil {
					b.Fatal(err)
				}
				for i := range groups {
					var c Change
					c.PutGroup(testGroup(i, 16))
					f.Append(&c)
				}
				if err := f.Flush(); err != nil {
					b.Fatal(err)
				}
				f.log.written, f.log.syncs = 0, 0
				g := testGroup(0, 16)
				b.ResetTimer()
				for i := range b.N {
					var c Change
					g.Registration.Group = addr(i % groups)
					c.PutGroup(g)
					f.Append(&c)
					if !batched {
						if err := f.Flush(); err != nil {
							b.Fatal(err)
						}
					}
				}
				b.StopTimer()
				if err := f.Flush(); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(f.log.written)/float64(b.N), "bytes/op")
				b.ReportMetric(float64(f.log.syncs)/float64(b.N), "syncs/op")
				b.ReportMetric(float64(f.log.size)/float64(groups), "bytes/group")
				if err := f.Close(); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

// BenchmarkOpen is a start with many groups: the file is read, and written anew.
func BenchmarkOpen(b *testing.B) {
	for _, groups := range []int{1000, 10000} {
		b.Run(fmt.Sprintf("groups=%d", groups), func(b *testing.B) {
			path := b.TempDir() + "/state"
			f, _, err := Open(path, Options{Interval: time.Millisecond})
			if err != nil {
				b.Fatal(err)
			}
			for i := range groups {
				var c Change
				c.PutGroup(testGroup(i, 16))
				f.Append(&c)
			}
			for b.Loop() {
				if err := f.Close(); err != nil {
					b.Fatal(err)
				}
				if f, _, err = Open(path, Options{}); err != nil {
					b.Fatal(err)
				}
			}
			f.Close()
		})
	}
}

// BenchmarkRewrite is what each change would cost if there were no log: the whole file is
// written anew.
func BenchmarkRewrite(b *testing.B) {
	for _, groups := range []int{1000, 10000} {
		b.Run(fmt.Sprintf("groups=%d", groups), func(b *testing.B) {
			disk, err := openFolder(b.TempDir()+"/state", 0)
			if err != nil {
				b.Fatal(err)
			}
			defer disk.close()
			l := newLog(disk)
			for i := range groups {
				var c Change
				c.PutGroup(testGroup(i, 16))
				l.size += l.table.apply(&c.edits)
			}
			for b.Loop() {
				if err := l.checkpoint(); err != nil {
					b.Fatal(err)
				}
			}
			l.abandon()
			b.ReportMetric(float64(l.written)/float64(b.N), "bytes/op")
			b.ReportMetric(float64(l.syncs)/float64(b.N), "syncs/op")
		})
	}
}
