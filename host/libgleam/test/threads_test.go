// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

const withThread = 16 // the GLEAM_THREAD of gleam.h

// TestThreads: groups whose progress a thread of the library makes, in processes under
// ThreadSanitizer: it ends one that has a race with a failure. All give commands at once.
func TestThreads(t *testing.T) {
	w := newWorld(t, 4)
	const group = "10.77.254.1"
	all := []*participant{w.startProgram(t, "carrier-threads", 0, "master", w.ip(0, false), "0x20", rightKey, group, "2", fmt.Sprint(withThread|withTargets))}
	for i := 1; i < 3; i++ {
		all = append(all, w.startProgram(t, "carrier-threads", i, "member", w.ip(i, false), fmt.Sprint(0x20+i), rightKey, fmt.Sprint(withThread)))
	}
	joinByBlobs(t, group, all, 3) // one is ThreadSanitizer's

	var done sync.WaitGroup
	for _, x := range all {
		done.Go(func() {
			for range 200 {
				x.do("window")
				x.expect("window 0x5000000")
				x.do("peer")
				x.expect("peer " + group)
			}
		})
	}
	done.Wait()
	all[0].do("targets " + w.ip(1, false))
	all[0].expect("rkey set payload 4754010")

	x := w.startProgram(t, "carrier-threads", 3, "member", w.ip(3, false), "0x44", rightKey, fmt.Sprint(withThread))
	all[0].does("import " + x.blob("export"))
	x.does("import " + all[0].blob("describe"))
	x.does("connected")
	all[0].do("update 10000") // event and answer come in any order
	all[0].expectAll("ok update", "event updated |")
	x.expect("event joined |")
	all[1].do("leave")
	all[1].expectAll("ok leave", "event ended |")
	all[0].expect("event left "+w.ip(1, false)+"|", "left")
	for _, x := range append(all[1:], x, all[0]) {
		x.end()
	}
}

// expectAll reads as many lines, in any order.
func (x *participant) expectAll(starts ...string) {
	x.t.Helper()
	left := map[string]bool{}
	for _, s := range starts {
		left[s] = true
	}
	for range starts {
		line := x.expect("")
		found := false
		for s := range left {
			if len(line) >= len(s) && line[:len(s)] == s {
				delete(left, s)
				found = true
				break
			}
		}
		if !found {
			x.t.Fatalf("%s says %q, want one of %v", x.name, line, starts)
		}
	}
}

// TestFork: a child of fork() has no group with a thread of the library, may use one without, and
// has no descriptor of the library after exec. The parent's group goes on.
func TestFork(t *testing.T) {
	for _, c := range []struct {
		name, program  string
		flags, threads int
		child          []string
	}{
		{"with a thread", "carrier-threads", withThread, 3, []string{"child -22 invalid argument: no such group: it has a thread, which a child of fork() has not", "destroy -22"}},
		{"without", "carrier", 0, 1, []string{"child 0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, 2)
			const group = "10.77.254.1"
			all := []*participant{
				w.startProgram(t, c.program, 0, "master", w.ip(0, false), "0x20", rightKey, group, "1", fmt.Sprint(c.flags)),
				w.startProgram(t, c.program, 1, "member", w.ip(1, false), "0x21", rightKey, fmt.Sprint(c.flags)),
			}
			joinByBlobs(t, group, all, c.threads)
			for _, x := range all {
				x.do("fork")
				for _, line := range c.child {
					x.expect(line)
				}
				if line := x.expect("descriptors"); line != "descriptors" {
					t.Errorf("the child has %s", line)
				}
				x.expect("ok fork")
			}
			all[0].silent(2500 * time.Millisecond) // more than a lease
			for i := range all {
				all[1-i].do("leave")
				all[1-i].expectAll("ok leave", "event ended |")
				if i == 0 {
					all[0].expect("event left " + w.ip(1, false) + "|")
				}
			}
			for _, x := range all {
				x.end()
			}
		})
	}
}
