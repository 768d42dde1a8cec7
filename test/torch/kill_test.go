// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package torch

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/lab"
)

// Bounds of a run of kills.
const (
	killBytes  = "8388608"
	killRate   = 400_000_000
	mostPause  = 0.5              // seconds of an update beyond the longest one that nothing disturbed
	hung       = 15 * time.Second // time without an update
	begins     = 2 * time.Minute  // time in which a process has begun
	mostReturn = 2.0              // seconds from rejoin to being in, and having the update before
)

// watch is what a test knows of a run of updates.
type watch struct {
	*job
	updates   [4]int // updates of each rank
	longest   float64
	members   int // ranks that were in the group at rank 0's last update
	cut       int // the rank whose link is down
	calm      bool
	undisturb float64 // the longest update that nothing disturbed
}

// step takes the next line.
func (w *watch) step() line {
	w.t.Helper()
	within := hung
	if w.updates[0] == 0 { // import torch of four processes, on a busy machine
		within = begins
	}
	l := w.next(within)
	switch l.word {
	case "update":
		if l.values[2] != true {
			w.t.Fatalf("wrong bytes: %v", l)
		}
		w.updates[l.rank]++
		if l.rank == 0 {
			w.members = len(l.values[3].([]any))
			if w.calm {
				w.undisturb = max(w.undisturb, l.number(1))
			}
			w.longest = max(w.longest, l.number(1))
		}
	case "caught":
		if l.values[3] != true {
			w.t.Fatalf("wrong bytes: %v", l)
		}
	case "lost":
		if l.rank != w.cut {
			w.t.Fatal(l)
		}
	}
	return l
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

// Receivers are killed at random in the middle of updates, with their helpers or without, or their
// links go down; the others go on, and new processes come back, each with the update before.
func TestKills(t *testing.T) {
	kills, _ := strconv.Atoi(os.Getenv("GLEAM_KILLS"))
	if kills == 0 {
		kills = 3
	}
	j := newJob(t, 4, killRate, "GLEAM_POLICY=evict")
	w := &watch{job: j}
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
	var pauses, returns []float64
	caught := 0
	for k := range kills {
		n := 1 + random.IntN(3)
		time.Sleep(time.Duration(random.IntN(200)) * time.Millisecond)
		w.longest = 0
		how := random.IntN(3)
		switch how {
		case 0:
			j.kill(n, true)
		case 1:
			j.kill(n, false)
		case 2:
			w.cut = n
			if err := j.bed.Star.Hosts[n].NS.SetDown(lab.HostInterface); err != nil {
				t.Fatal(err)
			}
		}
		w.until(func(l line) bool { return l.word == "update" && l.rank == 0 && w.members == 3 })
		w.update(2)
		pauses = append(pauses, w.longest)
		if how == 2 {
			j.kill(n, true)
			w.cut = 0
			if err := j.bed.Star.Hosts[n].NS.SetUp(lab.HostInterface); err != nil {
				t.Fatal(err)
			}
		}
		w.longest, w.calm = 0, true
		w.update(2)
		w.calm = false
		begin := time.Now()
		j.start(n, "updates", killBytes, "1")
		back := w.until(func(l line) bool { return l.word == "back" && l.rank == n })
		in := back.number(1)
		if l := w.until(func(l line) bool { return (l.word == "caught" || l.word == "uncaught") && l.rank == n }); l.word == "caught" {
			caught, in = caught+1, l.number(2)
		}
		w.until(func(l line) bool { return l.word == "update" && l.rank == n })
		took := time.Since(begin)
		returns = append(returns, in)
		t.Logf("kill %d, of rank %d, %s: longest update %.2f s (undisturbed %.2f s), in %.2f s after rejoin, with an update %.2f s after its start",
			k+1, n, [...]string{"with its helper", "alone", "by its link"}[how], pauses[k], w.undisturb, in, took.Seconds())
		if in > mostReturn {
			t.Errorf("rank %d was in %.2f s after rejoin, want %.2f s", n, in, mostReturn)
		}
	}
	if err := os.WriteFile(j.stop(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ends := 0
	for _, l := range j.ended(time.Minute) {
		if l.word == "update" && l.values[2] != true || l.word == "lost" {
			t.Error(l)
		}
		if l.word == "end" {
			ends++
		}
	}
	worst := 0.0
	for _, p := range pauses {
		worst = max(worst, p-w.undisturb)
	}
	t.Logf("%d kills, %d updates: %d new processes have caught up, pause %.2f s at most beyond %.2f s, in %.2f s after rejoin at most", kills, w.updates[0], caught, worst, w.undisturb, maxOf(returns))
	if caught < kills {
		t.Errorf("%d of %d new processes have got the update before", caught, kills)
	}
	if ends != 4 {
		t.Errorf("%d ranks have ended as members, want 4", ends)
	}
	if worst > mostPause {
		t.Errorf("the others waited %.2f s more than ever undisturbed, want %.2f s", worst, mostPause)
	}
}

func maxOf(all []float64) (m float64) {
	for _, x := range all {
		m = max(m, x)
	}
	return m
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
					w.members = len(l.values[3].([]any))
				}
				if stopped && (w.members == 3 || len(lost) == 3) {
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
