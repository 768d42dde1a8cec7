// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"flag"
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// outcome sums up random runs with one kind of local repair, or without.
type outcome struct {
	evictions, failures int           // number of evictions of live members, and of failed groups
	behind              int           // number of members that lack data at the end
	took, worst         time.Duration // total and maximum of the time to the source's last completion
	sent                int           // packets sent by the source
}

func (o *outcome) add(one *outcome) {
	o.evictions += one.evictions
	o.failures += one.failures
	o.behind += one.behind
	o.took += one.took
	o.worst = max(o.worst, one.worst)
	o.sent += one.sent
}

// lossy runs one source and some receivers over a network whose links all lose the same
// fraction of packets, in both directions.
func (o *outcome) lossy(t *testing.T, seed uint64, loss, dead int, policy Policy, r *repairing) {
	n := &network{tb: t, passed: map[rocev2.PSN]severity{}, silenced: -1, rng: random(seed), loss: loss, repair: r,
		policy: policy, deadAfter: time.Duration(dead) * timeout, unfair: true}
	if policy == Quorum {
		n.quorum = 2
	}
	n.build(4+n.rng(5), 1, 0)
	n.portRoom, n.full = []int{0}, 0
	n.lossRand = ownDice(seed)
	for _, h := range n.hosts {
		h.rnrLeft = 0 // no RNR NAKs: requesters here do not wait for the timer of one
	}
	s := n.hosts[0]
	s.then = func() {
		o.took += n.now
		o.worst = max(o.worst, n.now)
	}
	n.after(0, s.start)
	n.finish()
	o.sent += s.transmitted
	o.evictions += n.evictions
	for _, h := range n.hosts[1:] {
		if !h.removed && len(h.got) < len(s.ops) {
			o.behind++
		}
	}
	if n.failure != nil {
		o.failures++
	}
}

// ownDice gives each link its own random numbers, so that the losses of a link do not
// depend on the number of packets on other links.
func ownDice(seed uint64) func(link int) func(n int) int {
	links := map[int]func(int) int{}
	return func(link int) func(int) int {
		if links[link] == nil {
			links[link] = random(seed<<16 + uint64(link))
		}
		return links[link]
	}
}

// differences are of runs with the same seed: with local repair less without.
type differences struct {
	n            int
	sum, squares float64
}

func (d *differences) add(with, without int) {
	x := float64(with - without)
	d.n++
	d.sum += x
	d.squares += x * x
}

// worse reports whether the mean is above zero by more than three standard errors. A
// single run may be worse by the luck of its losses: up to 4 runs of 10 are.
func (d *differences) worse() bool {
	n := float64(d.n)
	mean := d.sum / n
	return mean > 3*math.Sqrt(max(0, d.squares/n-mean*mean)/(n-1))
}

// TestPropertyRepairIsNeverWorse runs the same random networks with and without local
// repair. The ratio of its timeout to the requester's is that of the defaults, larger or
// smaller, and its memory is large or small. With local repair no more live members are
// evicted, no more groups fail, and transfers finish no later, at any loss and under any
// policy (R56, R57), in the mean. make soak runs more of them.
func TestPropertyRepairIsNeverWorse(t *testing.T) {
	checks, _ := strconv.Atoi(flag.Lookup("rapid.checks").Value.String())
	repairs := []RepairSpec{
		{Bytes: 1 << 23, Timeout: timeout / 16, Tries: DefaultRepairTries},
		{Bytes: 1 << 23, Timeout: timeout / 4, Tries: 2},
		{Bytes: 8 * minFrameBytes, Timeout: timeout / 8, Tries: 5},
	}
	for _, c := range []struct {
		name   string
		policy Policy
		dead   int // dead_after, in timeouts of the requester
		losses []int
		runs   int // number of runs for 100 checks
	}{
		{"evict", Evict, 3, []int{100, 200}, 40},
		{"strict", Strict, 3, []int{100, 200}, 30},
		{"quorum", Quorum, 3, []int{30, 100, 300}, 30},
		{"time", Strict, 0, []int{3, 30, 100, 300}, 30},
		{"time with a quorum", Quorum, 0, []int{3, 30, 100, 300}, 30},
	} {
		for _, loss := range c.losses {
			t.Run(fmt.Sprintf("%s/loss=%d", c.name, loss), func(t *testing.T) {
				runs := max(8, c.runs*checks/100)
				var sum outcome
				plain := make([]outcome, runs)
				for seed := range runs {
					plain[seed].lossy(t, uint64(seed), loss, c.dead, c.policy, &repairing{unit: 1})
					sum.add(&plain[seed])
				}
				t.Logf("without: %+v", sum)
				for _, spec := range repairs {
					var o outcome
					var lost, failures, took differences
					for seed := range runs {
						var one outcome
						one.lossy(t, uint64(seed), loss, c.dead, c.policy, &repairing{spec, minFrameBytes, 1 << 24})
						p := &plain[seed]
						lost.add(one.evictions+one.behind, p.evictions+p.behind)
						failures.add(one.failures, p.failures)
						took.add(int(one.took), int(p.took))
						o.add(&one)
					}
					t.Logf("%v, %d tries, %d KiB: %+v", spec.Timeout, spec.Tries, spec.Bytes>>10, o)
					if lost.worse() || failures.worse() {
						t.Errorf("%d evictions, %d receivers behind and %d failures, without repair %d, %d and %d", o.evictions, o.behind, o.failures, sum.evictions, sum.behind, sum.failures)
					}
					if c.dead == 0 && took.worse() {
						t.Errorf("%d transfers took %v, without repair %v", runs, o.took, sum.took)
					}
				}
			})
		}
	}
}

// TestRepairEvictsNobodyItDidNotAsk repeats runs at 10 % loss, with a dead_after of eight
// timeouts of the requester. In these runs live receivers were once evicted with local
// repair that stay without it.
func TestRepairEvictsNobodyItDidNotAsk(t *testing.T) {
	spacious := RepairSpec{Bytes: 1 << 23, Timeout: timeout / 16, Tries: DefaultRepairTries}
	tight := RepairSpec{Bytes: 8 * minFrameBytes, Timeout: timeout / 8, Tries: 5}
	for _, c := range []struct {
		seed uint64
		spec RepairSpec
	}{{838, tight}, {1338, tight}, {1358, spacious}, {1521, tight}, {1983, tight}, {2784, tight}} {
		var o outcome
		o.lossy(t, c.seed, 100, 8, Evict, &repairing{c.spec, minFrameBytes, 1 << 24})
		if o.evictions > 0 {
			t.Errorf("seed %d: %d receivers are alive and evicted", c.seed, o.evictions)
		}
	}
}
