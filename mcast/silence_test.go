// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"flag"
	"fmt"
	"strconv"
	"testing"
	"time"
)

// TestR110_TheLivingStay: a source that stops in the middle of a message, as rdma_rxe does with 129
// packets in flight, so that the last packets ask for no acknowledgement. Members of a star, or
// of a tree, die at random. No living member is evicted, each dead one is within a bound, and
// everything is complete at the living ones.
func TestR110_TheLivingStay(t *testing.T) {
	runs, _ := strconv.Atoi(flag.Lookup("rapid.checks").Value.String())
	runs = max(runs/2, 1) // a run is long: the usual number takes 20 s of CPU under the race detector
	for _, kind := range []struct {
		name     string
		switches int
	}{{"star", 1}, {"line", 2}, {"tree", 0}} {
		t.Run(kind.name, func(t *testing.T) {
			for seed := range runs {
				if wrong := silentMembers(t, uint64(seed)*15485863+uint64(kind.switches), kind.switches); wrong != "" {
					t.Errorf("run %d: %s", seed, wrong)
				}
			}
		})
	}
}

// silentMembers makes a run. It returns what is wrong at the end.
func silentMembers(t fatalReporter, seed uint64, switches int) string {
	rng := random(seed)
	if switches == 0 {
		switches = 2 + rng(4)
	}
	hosts := max(4, switches) + rng(4)
	n := newTreeNet(t, rng, switches, hosts)
	n.askAtEnd, n.loss, n.probe = true, []int{0, 0, 10, 30}[rng(4)], rng(2) == 0
	n.silence = time.Duration(5+rng(16)) * time.Millisecond
	n.patience = n.silence * time.Duration(1+rng(9)) / 10 // a sender's timeout is shorter than DeadAfter
	n.window = []int{5, 13, 30, 129}[rng(4)]
	if rng(4) != 0 {
		n.repair = RepairSpec{Bytes: int64(n.window+4) * minFrameBytes, Timeout: 200 * time.Microsecond, Tries: 1 + rng(4)}
	} else {
		n.loss = 0 // the source alone asks, once in each of its timeouts
	}
	source := rng(hosts)
	witness := (source + 1) % hosts // a receiver that lives; rarely at the root, which then decides alone about its own (R108)
	n.start()

	limit := 4 * n.silence // AllDeadAfter; a switch answers for half of DeadAfter
	for s, above := range n.parent {
		if above >= 0 {
			limit = max(limit, 2*n.silence<<levelsFrom(n.parent, s, above), 2*n.silence<<levelsFrom(n.parent, above, s))
		}
	}
	died := map[*treeHost]time.Duration{}
	wrong := ""
	n.evicted = func(h *treeHost) {
		if at, dies := died[h]; (!dies || n.now < at) && wrong == "" {
			wrong = fmt.Sprintf("%v: host %d at switch %d is evicted, and lives", n.now, h.id, h.at)
		}
		h.out = true
	}
	for range 1 + rng(hosts-2) {
		h := n.hosts[rng(hosts)]
		if h.id == source || h.id == witness || died[h] != 0 {
			continue
		}
		at := time.Millisecond * time.Duration(2+rng(60))
		died[h] = at
		n.after(at, func() { h.deafTo = time.Hour })
	}
	end := 60*time.Millisecond + time.Duration(len(died)+1)*limit
	var post func()
	post = func() { // the source goes on until every dead member has had data
		h := n.hosts[source]
		for n.pending < 4*n.window {
			h.post(1 + rng(max(n.window/2, 2)))
		}
		left := 0
		for h := range died {
			if !h.out {
				left++
			}
		}
		if left > 0 && n.now < end {
			n.after(time.Millisecond, post)
		}
	}
	post()
	n.run(end, func() bool { return wrong != "" })
	if wrong != "" {
		return wrong
	}
	for h := range died {
		if !h.out {
			return fmt.Sprintf("%v: host %d at switch %d is dead since %v, with a DeadAfter of %v, and has not been evicted; parents %v", n.now, h.id, h.at, died[h], n.silence, n.parent)
		}
	}
	if !n.run(end+2*time.Second, func() bool { return n.pending == 0 || wrong != "" }) {
		return fmt.Sprintf("%v: %d packets are not complete", n.now, n.pending)
	}
	return wrong
}

// levelsFrom returns how many levels of switches are behind the edge from switch s to its neighbour t.
func levelsFrom(parent []int, s, t int) (n uint8) {
	for x := range parent {
		if x != t && x != s && (parent[x] == t || parent[t] == x) {
			n = max(n, levelsFrom(parent, t, x))
		}
	}
	return n + 1
}

// noteEvicted tells the run of a member that switch at has evicted.
func (n *treeNet) noteEvicted(at int, h *treeHost) {
	if n.evicted == nil {
		n.tb.Fatalf("%v: switch %d: host %d is evicted", n.now, at, h.id)
	}
	n.evicted(h)
}
