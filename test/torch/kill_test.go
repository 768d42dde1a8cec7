// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package torch

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// Bounds of a run of kills.
const (
	killBytes  = "8388608"
	killRate   = 400_000_000
	mostPause  = 0.5              // seconds of an update beyond the longest one that nothing disturbed
	hung       = 15 * time.Second // time without an update
	begins     = 2 * time.Minute  // time in which a process has begun
	mostReturn = 2.0              // seconds from rejoin to being in, and having the update before
	mostMemory = 2048             // MiB of rank 0, whatever the number of updates
)

// silent is why a rank that lives is out where the CPUs are full.
var silent = regexp.MustCompile("silent for dead_after|host does not answer|Connection timed out")

// watch is what a test knows of a run of updates.
type watch struct {
	*job
	updates   [4]int // updates of each rank
	longest   float64
	members   []any     // ranks that were in the group at rank 0's last update
	cut       int       // the rank that is killed, or whose link is down
	back      bool      // true: a rank that lives and was taken for dead has a new process
	coming    [4]bool   // ranks with a new process that has no update yet
	evicted   int       // ranks that lived and were taken for dead; each has a new process
	caught    int       // new processes that have got the update before
	returns   []float64 // seconds from rejoin until then
	calm      bool
	undisturb float64         // the longest update that nothing disturbed
	machine   labtest.Machine // the machine since the newest process came back
	spares    [4]spare        // the next process of each rank
}

// spare is a process that has torch in memory, and goes on after a line.
type spare struct {
	*lab.Process
	in io.Writer
}

// step takes the next line.
func (w *watch) step() line {
	w.t.Helper()
	within := hung
	if w.updates[0] == 0 { // import torch of four processes, on a busy machine
		within = begins
	}
	l := w.next(within)
	if l.of != w.ranks[l.rank] {
		return line{rank: l.rank} // an earlier process
	}
	switch l.word {
	case "update":
		if l.values[2] != true {
			w.t.Fatalf("wrong bytes: %v", l)
		}
		w.updates[l.rank]++
		w.coming[l.rank] = false
		if l.rank == 0 {
			w.members = l.values[3].([]any)
			if w.calm {
				w.undisturb = max(w.undisturb, l.number(1))
			}
			w.longest = max(w.longest, l.number(1))
		}
	case "caught":
		if l.values[3] != true {
			w.t.Fatalf("wrong bytes: %v", l)
		}
		in := l.number(2)
		w.returns, w.caught = append(w.returns, in), w.caught+1
		if in > mostReturn {
			w.t.Run("return", func(t *testing.T) {
				w.machine.Timing(t, "rank %d was in %.2f s after rejoin, want %.2f s", l.rank, in, mostReturn)
			})
		}
	case "lost":
		switch {
		case l.rank == w.cut:
		case w.back && l.rank > 0 && silent.MatchString(l.values[0].(string)):
			w.evicted++
			w.t.Logf("rank %d lives and was taken for dead", l.rank)
			w.again(l.rank)
		default:
			w.t.Fatal(l)
		}
	}
	return l
}

// spare starts the next process of a rank, beside its present one.
func (w *watch) spare(n int) {
	w.t.Helper()
	c := exec.Command(python, absolute(w.t, "testdata/worker.py"), "updates", killBytes, "1")
	in, err := c.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	now := w.ranks[n]
	w.spares[n] = spare{w.run(n, c), in}
	w.ranks[n] = now
}

// again has the next process of a rank go on when the present one has ended.
func (w *watch) again(n int) {
	w.t.Helper()
	select {
	case <-w.ranks[n].Done():
	case <-time.After(hung):
		w.t.Fatalf("rank %d is lost and has not ended after %v", n, hung)
	}
	w.coming[n], w.machine, w.ranks[n] = true, labtest.WatchTree(), w.spares[n].Process
	if _, err := io.WriteString(w.spares[n].in, "\n"); err != nil {
		w.t.Fatal(err)
	}
	w.spare(n)
}

// until takes lines until one is wanted.
func (w *watch) until(want func(line) bool) line {
	w.t.Helper()
	begin := time.Now()
	for time.Since(begin) < begins {
		if l := w.step(); want(l) {
			return l
		}
	}
	w.t.Fatal("what was waited for has not come")
	return line{}
}

func (w *watch) update(n int) {
	w.t.Helper()
	for range n {
		w.until(func(l line) bool { return l.word == "update" && l.rank == 0 })
	}
}

// whole waits until all ranks have updates.
func (w *watch) whole() {
	w.t.Helper()
	if w.coming != [4]bool{} || len(w.members) < 4 {
		w.until(func(line) bool { return w.coming == [4]bool{} && len(w.members) == 4 })
	}
}

// Receivers are killed at random in the middle of updates, with their helpers or without, or their
// links go down; the others go on, and new processes come back, each with the update before.
func TestKills(t *testing.T) {
	kills, _ := strconv.Atoi(os.Getenv("GLEAM_KILLS"))
	if kills == 0 {
		kills = 3
	}
	j := newJob(t, 4, killRate, "GLEAM_POLICY=evict")
	w := &watch{job: j, back: true}
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv("GLEAM_SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("GLEAM_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	j.startAll("updates", killBytes, "0")
	w.update(3) // the first makes the group
	w.longest, w.calm = 0, true
	w.update(10)
	w.calm = false
	for n := 1; n < 4; n++ {
		w.spare(n)
	}
	worst := 0.0
	for k := range kills {
		w.whole()
		n := 1 + random.IntN(3)
		time.Sleep(time.Duration(random.IntN(200)) * time.Millisecond)
		machine := labtest.WatchTree()
		w.longest, w.cut = 0, n
		how := random.IntN(3)
		switch how {
		case 0:
			j.kill(n, true)
		case 1:
			j.kill(n, false)
		case 2:
			if err := j.bed.Star.Hosts[n].NS.SetDown(lab.HostInterface); err != nil {
				t.Fatal(err)
			}
		}
		w.until(func(l line) bool {
			return l.word == "update" && l.rank == 0 && !slices.Contains(w.members, any(float64(n)))
		})
		w.update(2)
		pause := w.longest
		worst = max(worst, pause-w.undisturb)
		if pause > w.undisturb+mostPause {
			t.Run("pause", func(t *testing.T) {
				machine.Timing(t, "the longest update was %.2f s, want %.2f s beyond %.2f s", pause, mostPause, w.undisturb)
			})
		}
		if how == 2 {
			j.kill(n, true)
			if err := j.bed.Star.Hosts[n].NS.SetUp(lab.HostInterface); err != nil {
				t.Fatal(err)
			}
		}
		evicted, caught := w.evicted, w.caught
		w.longest, w.calm = 0, true
		w.update(2)
		w.calm, w.cut = false, 0
		w.again(n)
		w.whole()
		if w.caught == caught {
			t.Fatalf("rank %d has not got the update before its first one", n)
		}
		t.Logf("kill %d, of rank %d, %s: longest update %.2f s (undisturbed %.2f s), in %.2f s after rejoin, %d others taken for dead",
			k+1, n, [...]string{"with its helper", "alone", "by its link"}[how], pause, w.undisturb, w.returns[len(w.returns)-1], w.evicted-evicted)
	}
	mib := resident(t, j.ranks[0].PID())
	if mib > mostMemory {
		t.Errorf("rank 0 has %d MiB after %d updates, want %d at most", mib, w.updates[0], mostMemory)
	}
	if err := os.WriteFile(j.stop(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ends := 0
	for _, l := range j.ended(time.Minute) {
		switch {
		case l.word == "update" && l.values[2] != true, l.word == "lost" && (l.rank == 0 || !silent.MatchString(l.values[0].(string))):
			t.Error(l)
		case l.word == "end", l.word == "lost":
			ends++
		}
	}
	t.Logf("%d kills, %d ranks that lived taken for dead, %d updates: %d new processes have caught up, pause %.2f s at most beyond %.2f s, in %.2f s after rejoin at most; rank 0 has %d MiB",
		kills, w.evicted, w.updates[0], w.caught, worst, w.undisturb, slices.Max(w.returns), mib)
	if ends != 4 {
		t.Errorf("%d ranks have ended, want 4", ends)
	}
}

// resident is a process's memory in MiB.
func resident(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize() >> 20
}

// A rank that is stopped, and so reads nothing, is out after GLEAM_LAG, and the others go on; with policy strict all have Lost.
func TestLag(t *testing.T) {
	for _, policy := range []string{"evict", "strict"} {
		t.Run(policy, func(t *testing.T) {
			j := newJob(t, 4, killRate, "GLEAM_POLICY="+policy, "GLEAM_LAG=700", "GLEAM_WINDOW=4")
			j.startAll("updates", killBytes, "0")
			w := &watch{job: j}
			w.update(3)
			if err := j.ranks[2].Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			lost := make(map[int]string)
			for stopped := true; len(lost) == 0 || policy == "strict" && len(lost) < 4; {
				l := j.next(hung)
				switch {
				case l.word == "lost":
					lost[l.rank] = l.values[0].(string)
				case l.word == "update" && l.values[2] != true:
					t.Fatal(l)
				case l.word == "update" && l.rank == 0:
					w.members = l.values[3].([]any)
				}
				if stopped && (len(w.members) == 3 || len(lost) == 3) {
					t.Logf("out %.2f s after the stop", time.Since(begin).Seconds())
					if err := j.ranks[2].Signal(syscall.SIGCONT); err != nil {
						t.Fatal(err)
					}
					stopped = false
				}
			}
			for rank, text := range lost {
				if !strings.Contains(text, "it has not read for") || policy == "evict" && rank != 2 {
					t.Errorf("rank %d: %s", rank, text)
				}
			}
			if policy == "evict" {
				w.cut = 2
				w.update(3)
			}
		})
	}
}
