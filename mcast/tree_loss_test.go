// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Recorded runs of trees of switches whose links all lose packets, in testdata/treeloss: what
// a loss costs on the links between switches, at the source and in time. The times are those
// of a fabric: a packet takes 1 us on a link, and 10 us to the other end; requesters have 128
// packets in flight and a timeout of 67 ms, switches probe after 4 ms.
//
//	tree up=-,0,1,1,1 hosts=3,0,3,3,3 packets=2048 [loss=100] [seeds=3]     loss in 10000, on every link
//	    [message=64] [window=128] [at=links|source|hosts]
//
// up has the switch above each one. The first host is the source. at limits the loss to the
// links between switches, to the source's own, or to those of the other hosts.
//
// "over" is the number of data frames on the links between switches over the smallest number,
// with the least and the greatest of a single link. "repeats" are packets that the source sent
// again for each packet, and "waves" the number of times that it went back. "goodput" is that of a
// run without loss.
func TestTreeLoss(t *testing.T) {
	datadriven.RunTest(t, "testdata/treeloss", func(t *testing.T, d *datadriven.TestData) string {
		a := args{t: t, d: d}
		var w strings.Builder
		fast := treeLossRun(a, 0, 0)
		for seed := range a.int("seeds", 3) {
			n := treeLossRun(a, uint64(seed), a.int("loss", 100))
			n.lossCosts(&w, seed, fast.complete)
		}
		return w.String()
	})
}

func treeLossRun(a args, seed uint64, loss int) *network {
	n := &network{
		tb: a.t, passed: map[rocev2.PSN]severity{}, silenced: -1, rng: random(seed), tiered: true, verify: a.d.HasArg("verify"),
		timer: 67 * time.Millisecond, pace: time.Microsecond, maxSteps: 5_000_000,
	}
	n.naive, n.lost, n.trace = &naiveModel{network: n, source: -1}, map[int]int{}, func(...any) {}
	n.repair = &repairing{RepairSpec{Bytes: 1 << 24, Timeout: DefaultRepairTimeout, Tries: DefaultRepairTries}, minFrameBytes, 1 << 24}
	n.portRoom = []int{0}
	var at []*node
	hosts := strings.Split(a.str("hosts", ""), ",")
	for i, up := range strings.Split(a.str("up", "-"), ",") {
		d := &node{network: n}
		if up != "-" {
			d.uplink = n.nodes[num(a.t, up, 10, 8)]
		}
		n.nodes = append(n.nodes, d)
		for range num(a.t, hosts[i], 10, 8) {
			at = append(at, d)
		}
	}
	switches, source := 2*len(at), 1
	n.links = func(link int) int {
		switch where := a.str("at", "all"); {
		case where == "all",
			where == "links" && link >= switches,
			where == "source" && link == source,
			where == "hosts" && link < switches && link > source:
			return loss
		}
		return 0
	}
	n.populate(len(at), 0, func(i int) *node { return at[i] })
	s := n.hosts[0]
	s.maxUnacked, s.strict = a.int("window", 128), false
	for len(s.ops) < a.int("packets", 2048) {
		s.ops = append(s.ops, message(a.int("message", 64))...)
	}
	for _, h := range n.hosts {
		h.rnrLeft, h.strict = 0, false
	}
	s.then = func() { n.complete = n.now }
	n.run()
	return n
}

// lossCosts writes what losses have cost in a run of a tree.
func (n *network) lossCosts(w *strings.Builder, seed int, fast time.Duration) {
	s := n.hosts[0]
	packets := float64(len(s.ops))
	least, most, sum, links := 0, 0, 0, 0
	for _, d := range n.nodes {
		for i := range d.legs {
			if e := &d.legs[i]; e.node != nil && e.frames > 0 {
				if links == 0 || e.frames < least {
					least = e.frames
				}
				most, sum, links = max(most, e.frames), sum+e.frames, links+1
			}
		}
	}
	var total Counters
	for _, d := range n.nodes {
		var st GroupStatus
		d.sw.Group(0).Snapshot(&st)
		c := &st.Counters
		total.NAKsServed, total.Probes, total.Resent = total.NAKsServed+c.NAKsServed, total.Probes+c.Probes, total.Resent+c.Resent
	}
	fmt.Fprintf(w, "seed %d: %d links, over %.3f (%.3f to %.3f); source: repeats %.3f, %d waves; goodput %.2f, %v; %d NAKs served, %d probes, %d resent\n", seed, links,
		float64(sum)/packets/float64(max(links, 1)), float64(least)/packets, float64(most)/packets,
		float64(s.transmitted)/packets-1, s.waves, fast.Seconds()/n.complete.Seconds(), n.complete.Round(time.Millisecond), total.NAKsServed, total.Probes, total.Resent)
}
