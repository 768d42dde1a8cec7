// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package torch

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/lab"
)

// known is the time within which all know of a death, from the kill or the link's failure to the exception.
const known = time.Second

// A rank is killed with its helper, and the others get Lost, none of them later than the bound: the source, with
// policy evict; any, with policy strict, also where the others are in Gloo.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		name, policy string
		scene        []string
		killed       int
		text         string
		cut          bool // its link goes down instead
	}{
		{"source", "evict", []string{"errors", "1"}, 1, "rank 1, the source", false},
		{"source that leads", "evict", []string{"errors", "0"}, 0, "rank 0", false},
		{"receiver, strict", "strict", []string{"errors", "1"}, 2, "rank 2 is lost", false},
		{"source, strict", "strict", []string{"errors", "1"}, 1, "rank 1", false},
		{"in all_reduce, strict", "strict", []string{"waits"}, 3, "rank 3 is lost", false},
		{"source's link", "evict", []string{"errors", "1"}, 1, "rank 1, the source", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := newJob(t, 4, killRate, "GLEAM_POLICY="+c.policy)
			j.startAll(c.scene...)
			for there := 0; there < 4; {
				if l := j.next(time.Minute); l.word == "there" {
					there++
				}
			}
			time.Sleep(300 * time.Millisecond) // in the middle of something
			at := time.Now()
			if c.cut {
				if err := j.bed.Star.Hosts[c.killed].NS.SetDown(lab.HostInterface); err != nil {
					t.Fatal(err)
				}
			} else {
				j.kill(c.killed, true)
			}
			lost, last := make(map[int]bool), time.Duration(0)
			for len(lost) < 3 {
				l := j.next(hung)
				switch {
				case l.word == "lost" && l.rank == c.killed:
				case l.word == "lost":
					if !strings.Contains(l.values[0].(string), c.text) {
						t.Errorf("%v, want %q", l, c.text)
					}
					lost[l.rank] = true
					last = max(last, time.UnixMicro(int64(l.number(1)*1e6)).Sub(at))
				case l.word == "update" && l.values[2] != true:
					t.Error(l)
				}
			}
			t.Logf("all knew %.2f s after the kill", last.Seconds())
			if last > known {
				t.Errorf("the last rank knew %v after the kill, want %v", last, known)
			}
			for n, x := range j.ranks {
				if n == c.killed {
					continue
				}
				select {
				case <-x.Done():
				case <-time.After(hung):
					_ = x.Signal(syscall.SIGKILL)
					t.Errorf("rank %d does not end", n)
				}
			}
		})
	}
}

// A rank whose helper alone is killed says so, and the others go on without it.
func TestHelperEnds(t *testing.T) {
	j := newJob(t, 4, killRate, "GLEAM_POLICY=evict")
	j.startAll("updates", killBytes, "0")
	w := &watch{job: j, cut: 2}
	w.update(3)
	for _, pid := range children(j.ranks[2].PID()) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	l := w.until(func(l line) bool { return l.word == "lost" })
	if l.rank != 2 {
		t.Error(l)
	}
	t.Log(l)
	w.until(func(l line) bool { return l.word == "update" && l.rank == 0 && len(w.members) == 3 })
	w.update(3)
}

// The same death with Gloo, beside: nobody goes on, and none knows before Gloo's timeout but by chance.
func TestGloo(t *testing.T) {
	j := newJob(t, 4, killRate)
	j.startAll("gloo")
	for there := 0; there < 4; {
		if j.next(time.Minute).word == "there" {
			there++
		}
	}
	time.Sleep(300 * time.Millisecond)
	at := time.Now()
	j.kill(2, true)
	for ended := 0; ended < 3; {
		l := j.next(time.Minute)
		switch l.word {
		case "goes":
			t.Error(l)
		case "afterwards":
			ended++
		}
		t.Logf("%.1f s after the kill: %v", time.Since(at).Seconds(), l)
	}
}
