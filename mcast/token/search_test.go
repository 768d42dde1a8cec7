// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"fmt"
	"hash/maphash"
	"strings"
	"testing"
)

// The search tries every step in every state, breadth first, so that a violation is a
// shortest one. From every state a fair run has to end with all messages sent: nothing
// more goes wrong, everything is delivered, and what is due is done. Two fair schedules
// are followed: the first takes the first of the fair steps, the second the last of
// those that are not a repetition or a new message.

// visit is what is stored of a state.
type visit struct {
	from  uint64
	by    action
	next  [2]uint64 // states that follow in the fair schedules; the state itself at their end
	fates uint8
}

type result struct {
	states, transitions, depth int
	complete                   bool
}

var seed = maphash.MakeSeed()

// search tries everything that can happen from w, to limit states.
func search(t testing.TB, first *world, limit int) result {
	t.Helper()
	first.check()
	var buf []byte
	hash := func(w *world) uint64 {
		buf = w.encode(buf[:0])
		return maphash.Bytes(seed, buf)
	}
	root := hash(first)
	seen := map[uint64]*visit{root: {}}
	fail := func(at uint64, step *action, what string) {
		t.Helper()
		t.Fatalf("%s\n%s", what, trace(first, seen, at, step))
	}
	todo := []*world{first}
	var res result
	for len(todo) > 0 && (limit == 0 || len(seen) < limit) {
		var then []*world
		for _, w := range todo {
			at := hash(w)
			all, fair := w.actions()
			v := seen[at]
			v.next = [2]uint64{at, at}
			if fair == 0 && !w.finished() {
				fail(at, nil, "nothing can happen any more, and somebody waits")
			}
			second := fair - 1
			for second > 0 && all[second].kind >= resend {
				second--
			}
			for i, a := range all {
				c := w.clone()
				c.do(a)
				if c.wrong != "" {
					fail(at, &a, c.wrong)
				}
				h := hash(c)
				res.transitions++
				if i == 0 && fair > 0 {
					v.next[0] = h
				}
				if i == second && fair > 0 {
					v.next[1] = h
				}
				if seen[h] == nil {
					seen[h] = &visit{from: at, by: a}
					then = append(then, c)
				}
			}
			if w.finished() && !w.lost && fair == 0 {
				v.next = [2]uint64{at, at}
			}
		}
		if todo = then; len(then) > 0 {
			res.depth++
		}
	}
	res.states, res.complete = len(seen), len(todo) == 0
	if res.complete {
		for schedule := range 2 {
			for h := range seen {
				if bad := endless(seen, h, schedule); bad != 0 {
					fail(bad, nil, fmt.Sprintf("fair schedule %d does not end", schedule+1))
				}
			}
		}
	}
	return res
}

// endless returns a state of the fair run from h if the run has no end, else 0.
func endless(seen map[uint64]*visit, h uint64, schedule int) uint64 {
	ends, onPath := uint8(1)<<schedule, uint8(4)<<schedule
	var path []uint64
	for {
		v := seen[h]
		if v.fates&ends != 0 || v.next[schedule] == h {
			break
		}
		if v.fates&onPath != 0 {
			return h
		}
		v.fates |= onPath
		path = append(path, h)
		h = v.next[schedule]
	}
	for _, p := range path {
		seen[p].fates = seen[p].fates&^onPath | ends
	}
	return 0
}

// trace is the way from the first state to at, and a step from there.
func trace(first *world, seen map[uint64]*visit, at uint64, step *action) string {
	var steps []action
	if step != nil {
		steps = append(steps, *step)
	}
	for v := seen[at]; v.from != 0; v = seen[v.from] {
		steps = append(steps, v.by)
	}
	var b strings.Builder
	w := first.clone()
	fmt.Fprint(&b, w)
	for i := len(steps) - 1; i >= 0; i-- {
		w.do(steps[i])
		fmt.Fprintf(&b, "%v\n%v", steps[i], w)
	}
	return b.String()
}
