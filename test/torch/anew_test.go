// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package torch

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/lab"
)

// newJobBesideStore is newJob with torch's Store in a host that has no rank, as torchrun has it.
func newJobBesideStore(t *testing.T, ranks int, env ...string) *job {
	t.Helper()
	j := newJob(t, ranks+1, killRate, env...)
	j.env = append(j.env, fmt.Sprintf("WORLD_SIZE=%d", ranks), "TORCHELASTIC_USE_AGENT_STORE=True", "TORCHELASTIC_RESTART_COUNT=0", "MASTER_ADDR="+j.bed.Star.Hosts[ranks].IPv4.String())
	j.start(ranks, "store")
	if l := j.next(begins); l.word != "there" {
		t.Fatal(l)
	}
	return j
}

// A source, a leader, or a rank that is both, is killed or cut off in a broadcast: the others have Lost within a second, the
// next broadcast makes the group anew and is whole at all of them, all have one version, and a new process comes back.
func TestAnew(t *testing.T) {
	for _, c := range []struct {
		name         string
		root, killed int
		cut          bool
	}{
		{"source", 1, 1, false}, {"leader", 1, 0, false}, {"source that leads", 0, 0, false}, {"source's link", 1, 1, true}, {"leader's link", 1, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := newJobBesideStore(t, 4, "GLEAM_POLICY=evict", "GLEAM_DEAD_AFTER=1500", "GLEAM_QP_TIMEOUT=16") // nobody else is lost on a busy machine
			for n := range 4 {
				j.start(n, "anew", fmt.Sprint(c.root), killBytes, "0")
			}
			for seen := make(map[int]int); len(seen) < 4 || seen[3] < 3; {
				l := j.next(begins)
				if l.word != "update" || l.values[2] != true {
					t.Fatal(l)
				}
				seen[l.rank]++
			}
			time.Sleep(100 * time.Millisecond)
			at, cut := time.Now(), j.bed.Star.Hosts[c.killed].NS
			if c.cut {
				if err := cut.SetDown(lab.HostInterface); err != nil {
					t.Fatal(err)
				}
			} else {
				j.kill(c.killed, true)
			}
			want := make([]any, 0, 3)
			for n := range 4 {
				if n != c.killed {
					want = append(want, float64(n))
				}
			}
			lost, anew, last, first := make(map[int]bool), make(map[int]float64), time.Duration(0), time.Duration(0)
			for len(anew) < 3 {
				l := j.next(hung)
				switch {
				case l.rank == c.killed:
				case l.word == "lost":
					if lost[l.rank] || l.values[2] != true {
						t.Errorf("a second time, or with another version: %v", l)
					}
					lost[l.rank] = true
					last = max(last, time.UnixMicro(int64(l.number(1)*1e6)).Sub(at))
				case l.word == "update" && (l.values[2] != true || l.values[4] != true):
					t.Fatal(l)
				case l.word == "update" && lost[l.rank]:
					if !slices.Equal(l.values[3].([]any), want) {
						t.Errorf("%v: want members %v", l, want)
					}
					if anew[l.rank] = l.number(0); first == 0 {
						first = l.at.Sub(at)
					}
				}
			}
			t.Logf("all knew %.2f s after the kill; the first update of the next group was there after %.2f s", last.Seconds(), first.Seconds())
			if last > known {
				t.Errorf("the last rank knew %v after the kill, want %v", last, known)
			}
			for _, n := range anew {
				if n != anew[3] {
					t.Errorf("the first broadcast of the next group has the numbers %v", anew)
					break
				}
			}
			if c.cut {
				j.kill(c.killed, true)
				if err := cut.SetUp(lab.HostInterface); err != nil {
					t.Fatal(err)
				}
			}
			j.start(c.killed, "anew", fmt.Sprint(c.root), killBytes, "1")
			for back := false; !back; {
				l := j.next(begins)
				if l.word == "lost" && l.rank != c.killed || l.word == "update" && l.values[2] != true {
					t.Fatal(l)
				}
				back = l.word == "update" && l.rank == c.killed
			}
			if err := os.WriteFile(j.stop(), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			ends := 0
			for _, l := range j.ended(time.Minute) {
				if l.word == "end" {
					versions := l.values[0].([]any)
					if ends++; len(versions) != 4 || slices.ContainsFunc(versions, func(v any) bool { return v != versions[0] }) {
						t.Errorf("other versions at the end: %v", l)
					}
				}
			}
			if ends != 4 {
				t.Errorf("%d ranks have ended as members, want 4", ends)
			}
		})
	}
}

// A process that is stopped for 0.3 s is not lost, whether it leads or receives.
func TestStopped(t *testing.T) {
	j := newJob(t, 4, killRate, "GLEAM_POLICY=evict", "GLEAM_DEAD_AFTER=1500", "GLEAM_QP_TIMEOUT=16") // nobody else is lost on a busy machine
	j.startAll("updates", killBytes, "0")
	w := &watch{job: j, cut: -1}
	w.update(3)
	for _, n := range []int{0, 2, 0, 3} {
		_ = j.ranks[n].Signal(syscall.SIGSTOP)
		time.Sleep(300 * time.Millisecond)
		_ = j.ranks[n].Signal(syscall.SIGCONT)
		w.update(3)
		if len(w.members) != 4 {
			t.Fatalf("%d members after rank %d was stopped", len(w.members), n)
		}
	}
}

// Two jobs have one prefix with as many addresses as groups, under one key: each has a GroupIP of its own, and their bytes.
func TestTwoJobs(t *testing.T) {
	j := newJob(t, 4, 0, "GLEAM_POLICY=evict", "GLEAM_GROUPS=10.77.254.8/30", "WORLD_SIZE=2", "MASTER_PORT=29511")
	for round := range 2 {
		for n := range 4 {
			j.env = append(j.env, fmt.Sprintf("MASTER_ADDR=%s", j.bed.Star.Hosts[n/2*2].IPv4))
			c := exec.Command(python, absolute(t, "testdata/worker.py"), "anew", "0", killBytes, "0")
			j.runAs(n, n%2, c)
		}
		for seen := make(map[int]int); len(seen) < 4 || min(seen[0], seen[1], seen[2], seen[3]) < 4; {
			l := j.next(begins)
			if l.word != "update" || l.values[2] != true {
				t.Fatal(l)
			}
			seen[l.rank]++
		}
		list, err := j.bed.Gleamd.Client.Groups(t.Context())
		if err != nil || len(list) != 2 {
			t.Errorf("round %d: %d groups, want 2: %v", round, len(list), err)
		}
		if err := os.WriteFile(j.stop(), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		j.ended(time.Minute)
		_ = os.Remove(j.stop())
	}
}
