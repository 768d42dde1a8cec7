// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/test/labtest"
)

// LongEnv is the environment variable with the time for which the whole matrix is repeated, such as 20m; 0s is once. Without
// it each situation has two of the endings.
const LongEnv = "GLEAM_RESTART_MATRIX"

var programs = labtest.Programs{Packages: []string{"../../cmd/gleamd"}}

// TestMain runs the tests in a mount namespace of their own: small disks end with it.
func TestMain(m *testing.M) { os.Exit(labtest.OwnMounts(func() int { return programs.Run(m) })) }

// TestRestarts plays each situation with each way in which gleamd ends, beside strangers who poison ARP, ND and the
// forwarding database and acknowledge in every member's name. No completion comes before all live members have the bytes, and
// each group is used afterwards, deleted, and its address used and deleted again.
func TestRestarts(t *testing.T) {
	labtest.Require(t)
	until := time.Time{}
	if text := os.Getenv(LongEnv); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("%s: %v", LongEnv, err)
		}
		until = time.Now().Add(d)
	}
	for round := 0; round == 0 || time.Now().Before(until); round++ {
		t.Run(fmt.Sprintf("round %d", round), func(t *testing.T) {
			for i := range situations {
				for j := range endings {
					r, c := &situations[i], &endings[j]
					if until.IsZero() && !quick(i, j) {
						continue
					}
					t.Run(r.name+", "+c.name, func(t *testing.T) {
						t.Parallel()
						if !until.IsZero() && round > 0 && time.Now().After(until) {
							return // the time is over
						}
						play(t, r, c, (i+j+round)%2 == 1, i*len(endings)+j+3*round)
					})
				}
			}
		})
		if t.Failed() {
			return
		}
	}
}

// quick reports whether a cell is in the short form: each situation with kill -9 and another ending.
func quick(row, col int) bool {
	others := []int{0, 2, 3, 4}
	return endings[col].name == "kill -9" || col == others[row%len(others)]
}

// play plays one cell. number says which personalities the hosts have.
func play(t *testing.T, r *situation, c *ending, v6 bool, number int) {
	s := newScene(t, r, c, v6)
	s.number = number
	s.mend = sync.OnceFunc(func() {
		if c.mend != nil {
			c.mend(s)
		}
	})
	if r.at != "" {
		s.at = r.at
	}
	form := func() {
		t.Helper()
		s.group = r.form(s)
		s.attacked.Store(s.group)
	}
	strangers := []string{"x"}
	if r.tree {
		strangers = append(strangers, "y")
	}
	if r.prepare != nil {
		r.prepare(s)
	}
	form()
	s.hostile(strangers...)
	if s.group.pass("before the restart", "a", slots); r.before != nil {
		r.before(s)
	}
	var f *flow
	if !r.still {
		f = s.group.flow("a")
		s.group.goesOn("before the restart", f)
	}
	mayFail := c.oldFile || c.fail != nil && r.mayFail
	if c.fail != nil {
		c.fail(s)
	}
	if r.act != nil {
		r.act(s)
	}
	s.stop(c.stop)
	if c.tear != nil {
		c.tear(s)
	}
	s.start()
	if r.after != nil {
		r.after(s)
	}
	var failed error
	if f != nil {
		if !mayFail {
			s.group.goesOn("after the restart", f)
		}
		failed = f.end()
	}
	switch {
	case failed == nil:
		s.use()
	case mayFail && (!errors.Is(failed, errNoCompletion) || s.group.isOver()):
		t.Logf("the group has ended with gleamd: %v", failed)
	default:
		t.Fatalf("the transfer during the restart: %v\n%s", failed, s.describe())
	}
	s.mend()
	s.quiet()
	s.group.ended("after the restart")
	form()
	s.group.pass("made anew", "a", 8)
	s.quiet()
	s.group.ended("made anew")
}

// use has all members of the group take part: the source sends, each receiver in turn hears nothing for a while, and another
// member sends.
func (s *scene) use() {
	s.t.Helper()
	s.group.pass("after the restart", "a", 8)
	for _, m := range s.group.members {
		if m.Name != "a" && m.live {
			s.group.silenced("after the restart", "a", m.Name)
		}
	}
	if !s.situation.oneSource {
		s.group.pass("after the restart, from another member", "b", 8)
	}
}
