// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"os/exec"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/test/labtest"
)

// A program whose name has spaces and parentheses takes CPU time, and has memory.
func TestUsage(t *testing.T) {
	ns, err := labtest.New(t).Namespace("h1")
	if err != nil {
		t.Fatal(err)
	}
	p, err := ns.Start(exec.Command("sh", "-c", "printf ') 1 2 (' >/proc/self/comm; while :; do :; done"))
	if err != nil {
		t.Fatal(err)
	}
	for begin := time.Now(); ; <-time.After(5 * time.Millisecond) {
		used, err := p.CPUTime()
		if most := time.Since(begin) + time.Second; err != nil || used > most || most > 20*time.Second {
			t.Fatalf("%v of CPU time in less than %v, %v", used, most, err)
		}
		if used >= 50*time.Millisecond {
			break
		}
	}
	if n, err := p.Resident(); err != nil || n < 64<<10 || n > 64<<20 {
		t.Errorf("%d bytes of memory, %v", n, err)
	}
	if err := p.Stop(0); err != nil {
		t.Log(err)
	}
	if used, err := p.CPUTime(); err == nil {
		t.Errorf("a process that has ended has had %v of CPU time", used)
	}
}
