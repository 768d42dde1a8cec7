// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package torch

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"
)

// Two hosts have two ranks each, and one has one: a broadcast of any of them is whole at all, leaves the source's host once,
// and the other hosts send next to nothing.
func TestRanksOfAHost(t *testing.T) {
	const (
		size   = 16 << 20
		mostOf = 1.25 // copies: what is repeated on a busy machine is counted
	)
	hosts := []int{0, 0, 1, 1, 2}
	for _, policy := range []string{"evict", "strict"} {
		t.Run(policy, func(t *testing.T) {
			j := newJob(t, 3, killRate, "GLEAM_POLICY="+policy, "GLEAM_QP_TIMEOUT=16", "GLEAM_DEAD_AFTER=1500")
			j.place(hosts...)
			j.startAll("roots", fmt.Sprint(size))
			source, other, seen := 0.0, 0.0, 0
			for _, l := range j.ended(2 * time.Minute) {
				if l.word != "from" {
					t.Error(l)
					continue
				}
				seen++
				if l.values[1] != l.values[2] {
					t.Errorf("wrong bytes: %v", l)
				}
				root, copies := int(l.number(0)), l.number(3)/size
				switch {
				case root < 0:
				case hosts[root] == hosts[l.rank]:
					if source = max(source, copies); copies < 1 {
						t.Errorf("the source's host has sent %.3f × the tensor: %v", copies, l)
					}
				default:
					other = max(other, copies)
				}
			}
			if want := len(hosts) * (len(hosts) + 1); seen != want {
				t.Errorf("%d broadcasts at ranks, want %d", seen, want)
			}
			t.Logf("a source's host has sent %.3f × the tensor at most, another one %.3f ×", source, other)
			if source > mostOf || other > mostOf-1 {
				t.Errorf("want at most %v × and %v ×", mostOf, mostOf-1)
			}
		})
	}
}

// Of two ranks of a host one is killed: the other one and those of other hosts go on, whether it has started the helper or
// not. With the helper both are out. The leader is followed by the other rank of its host.
func TestRanksOfAHostKilled(t *testing.T) {
	j := newJobBesideStore(t, 3, "GLEAM_POLICY=evict", "GLEAM_DEAD_AFTER=1500", "GLEAM_QP_TIMEOUT=16") // nobody else is lost on a busy machine
	store := j.ranks[3]
	j.place(0, 0, 1, 1, 2)
	t.Cleanup(func() { <-store.Done() })
	begin := func(back string, ranks ...int) {
		for _, n := range ranks {
			j.start(n, "anew", "4", killBytes, back)
		}
	}
	lost := make(map[int]int)
	// until takes lines until each of the members has had updates with exactly these.
	until := func(members ...any) {
		t.Helper()
		for had := make(map[int]int); ; {
			l := j.next(begins)
			switch {
			case l.word == "lost":
				lost[l.rank]++
			case l.word == "update" && l.values[2] != true:
				t.Fatal(l)
			case l.word == "update" && slices.Equal(l.values[3].([]any), members):
				had[l.rank]++
			}
			if len(had) == len(members) && had[4] > 2 {
				return
			}
		}
	}
	none := func() {
		t.Helper()
		if len(lost) > 0 {
			t.Errorf("ranks had Lost: %v", lost)
		}
	}
	begin("0", 0, 1, 2, 3, 4)
	all := []any{0., 1., 2., 3., 4.}
	until(all...)
	helper, first := children(j.ranks[2].PID()), 2
	if len(helper) == 0 {
		helper, first = children(j.ranks[3].PID()), 3
	}
	if len(helper) != 1 || len(children(j.ranks[5-first].PID())) > 0 {
		t.Fatalf("ranks 2 and 3 have %v and %v", children(j.ranks[2].PID()), children(j.ranks[3].PID()))
	}
	for _, n := range []int{5 - first, first} { // a rank that found the helper, and the rank that started it
		j.kill(n, false)
		until(0., 1., float64(5-n), 4.)
		begin("1", n)
		until(all...)
		none()
	}
	if err := syscall.Kill(helper[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(0., 1., 4.)
	<-j.ranks[2].Done()
	<-j.ranks[3].Done()
	delete(lost, 2)
	delete(lost, 3)
	none()
	begin("1", 2, 3)
	until(all...)
	none()
	j.kill(0, false)
	until(1., 2., 3., 4.)
	if lost[1] != 1 || lost[2] != 1 || lost[3] != 1 || lost[4] != 1 {
		t.Errorf("the leader is killed, and ranks had Lost: %v", lost)
	}
	list, err := j.bed.Gleamd.Client.Groups(t.Context())
	if err != nil || len(list) == 0 {
		t.Errorf("%d groups: %v", len(list), err)
	}
	if err := os.WriteFile(j.stop(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for n := 1; n < 5; n++ {
		<-j.ranks[n].Done()
	}
}
