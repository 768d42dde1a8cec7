// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package chaos has random long runs of groups over several switches (make chaos).
package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/test/labtest"
)

var programs = labtest.Programs{Packages: []string{"github.com/gleam-rdma/gleam/cmd/gleamd"}}

func TestMain(m *testing.M) { os.Exit(labtest.OwnMounts(func() int { return programs.Run(m) })) }

// roundTime is how long the groups of a round live.
const roundTime = 20 * time.Second

// TestChaos has random groups in random fabrics for GLEAM_CHAOS, with real gleamds, while links, hosts, switches and the disk
// of the state files fail and come back, programs are killed and a stranger attacks. A completion at a source means that all
// live members have the bytes; and a group that does not get on for 5 s has a reason for it. GLEAM_SEED is the
// seed of the first round. Each round prints its own, from which all its choices follow.
func TestChaos(t *testing.T) {
	labtest.Part(t, "chaos")
	labtest.Require(t)
	length, err := time.ParseDuration(os.Getenv("GLEAM_CHAOS"))
	if err != nil {
		t.Fatalf("GLEAM_CHAOS: %v", err)
	}
	seed := uint64(time.Now().UnixNano()) % 1_000_000
	if s := os.Getenv("GLEAM_SEED"); s != "" {
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("GLEAM_SEED: %v", err)
		}
	}
	total := newTally()
	for end := time.Now().Add(length); time.Now().Before(end); seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			r := newRound(t, seed)
			r.run(roundTime)
			t.Logf("GLEAM_SEED=%d: %s: %s", seed, r.what, r.tally)
			total.add(r.tally)
		})
	}
	t.Logf("in all: %s\n%s", total, total.table())
	if total.counts["messages"] == 0 {
		t.Error("no message was complete")
	}
}

// star is one switch.
func star(rng *rand.Rand) *fabric.Topology {
	top := &fabric.Topology{Switches: []string{"s1"}}
	for i := range 3 + rng.IntN(4) {
		h := fmt.Sprintf("h%d", i+1)
		top.Hosts = append(top.Hosts, h)
		top.Links = append(top.Links, fabric.Link{A: "s1", B: h})
	}
	return top
}

// randomTopology is one switch, a leaf-spine, or switches that are joined at random.
func randomTopology(rng *rand.Rand) (*fabric.Topology, string) {
	var top *fabric.Topology
	var what string
	switch rng.IntN(3) {
	case 0:
		top = star(rng)
		what = fmt.Sprintf("one switch, %d hosts", len(top.Hosts))
	case 1:
		leaves, spines, hosts := 2+rng.IntN(2), 1+rng.IntN(2), 1+rng.IntN(2)
		top, what = fabric.LeafSpine(leaves, spines, hosts), fmt.Sprintf("leaf-spine of %d and %d, %d hosts each", leaves, spines, hosts)
	default:
		top = &fabric.Topology{}
		n := 2 + rng.IntN(4)
		for i := range n {
			name := fmt.Sprintf("s%d", i+1)
			if i > 0 {
				top.Links = append(top.Links, fabric.Link{A: name, B: top.Switches[rng.IntN(i)]})
			}
			top.Switches = append(top.Switches, name)
		}
		for range rng.IntN(n) { // further links
			a, b := top.Switches[rng.IntN(n)], top.Switches[rng.IntN(n)]
			if a != b && !linked(top, a, b) {
				top.Links = append(top.Links, fabric.Link{A: a, B: b})
			}
		}
		inner := len(top.Links)
		for i := range 3 + rng.IntN(4) {
			h := fmt.Sprintf("h%d", i+1)
			top.Hosts = append(top.Hosts, h)
			top.Links = append(top.Links, fabric.Link{A: top.Switches[rng.IntN(n)], B: h})
		}
		what = fmt.Sprintf("%d switches with %d links, %d hosts", n, inner, len(top.Hosts))
	}
	near := top.Links[len(top.Links)-1-rng.IntN(3)].A                                              // a host's switch
	top.Hosts, top.Links = append(top.Hosts, "x"), append(top.Links, fabric.Link{A: near, B: "x"}) // the stranger
	loss := []float64{0, 0, 0.001, 0.01}[rng.IntN(4)]
	for i := range top.Links {
		top.Links[i].Loss = loss
	}
	return top, fmt.Sprintf("%s, loss %v", what, loss)
}

func linked(t *fabric.Topology, a, b string) bool {
	for _, l := range t.Links {
		if l.A == a && l.B == b || l.A == b && l.B == a {
			return true
		}
	}
	return false
}

// links are the links to hosts, or those between switches.
func (r *round) links(hosts bool) (all []fabric.Link) {
	for _, l := range r.top.Links {
		if hosts == slices.ContainsFunc([]string{l.A, l.B}, func(n string) bool { return slices.Contains(r.top.Hosts, n) }) {
			all = append(all, l)
		}
	}
	return all
}

// sleep returns false if ctx has ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
