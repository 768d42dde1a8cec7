// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/lab/testbed"
	"github.com/gleam-rdma/gleam/test/bedtest"
)

// round is a fabric with groups, and one who makes it fail.
type round struct {
	t     *testing.T
	seed  uint64
	what  string // the fabric
	bed   *testbed.Fabric
	top   *fabric.Topology
	hosts []*host
	begin time.Time

	mu      sync.Mutex
	notes   []string  // what happened, in order
	journal []said    // events of the switches' journals
	whole   time.Time // the time since which nothing is missing; zero: something is
	broken  []span    // the spans in which something was missing
	*tally
}

// host is a host with its device and its answers to envelopes.
type host struct {
	*testbed.Host
}

// tally counts.
type tally struct {
	counts map[string]int
}

func newTally() *tally { return &tally{counts: make(map[string]int)} }

func (t *tally) add(o *tally) {
	for k, n := range o.counts {
		t.counts[k] += n
	}
}

func (t *tally) String() string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(t.counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", t.counts[k], k))
	}
	return strings.Join(parts, ", ")
}

// random is the source of the choices of one who acts in the round.
func random(seed, actor uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, actor)) }

func newRound(t *testing.T, seed uint64) *round {
	t.Helper()
	r := &round{t: t, seed: seed, tally: newTally()}
	rng := random(seed, 0)
	r.top, r.what = randomTopology(rng)
	r.bed = bedtest.Fabric(t, testbed.FabricConfig{Gleamd: programs.Path(t, "gleamd"), State: true, Fabric: fabric.Config{Topology: r.top, Count: true}})
	for _, h := range bedtest.Open(t, fabric.Plain(r.bed.Hosts), testbed.Endpoints{Key: r.bed.Key, Device: soft.Config{Seed: seed}, Answer: true}) {
		r.hosts = append(r.hosts, &host{h})
	}
	return r
}

// run has groups live, and elements fail, for a time.
func (r *round) run(length time.Duration) {
	r.begin = time.Now()
	r.setWhole(true)
	ctx, cancel := context.WithTimeout(r.t.Context(), length)
	defer cancel()
	groups := 1 + random(r.seed, 0).IntN(2)
	var all sync.WaitGroup
	for i := range groups {
		all.Go(func() { newLife(r, i).run(ctx) })
	}
	all.Go(func() { r.fail(ctx) })
	following, stop := context.WithCancel(r.t.Context())
	var followers sync.WaitGroup
	for _, s := range r.bed.Switches {
		followers.Go(func() { r.follow(following, s) })
	}
	all.Wait()
	stop()
	followers.Wait()
	if r.t.Failed() {
		r.report()
	}
}

// note remembers what happened, for the report.
func (r *round) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, fmt.Sprintf("%8.3f s  %s", time.Since(r.begin).Seconds(), fmt.Sprintf(format, args...)))
}

// wrong is a broken promise.
func (r *round) wrong(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.note("WRONG: %s", text)
	r.t.Errorf("GLEAM_SEED=%d, after %.3f s: %s", r.seed, time.Since(r.begin).Seconds(), text)
}

// count adds one to a count.
func (r *round) count(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[what]++
}

func (r *round) setWhole(whole bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch now := time.Now(); {
	case !whole:
		r.whole = time.Time{}
		r.broken = append(r.broken, span{from: now})
	default:
		r.whole = now
		if n := len(r.broken); n > 0 {
			r.broken[n-1].to = now
		}
	}
}

// span is from a fault to its end; without an end it lasts.
type span struct{ from, to time.Time }

// brokenSince returns for how long something has been missing since a time.
func (r *round) brokenSince(since time.Time) (d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.broken {
		if s.to.IsZero() {
			s.to = time.Now()
		}
		if s.from.Before(since) {
			s.from = since
		}
		d += max(0, s.to.Sub(s.from))
	}
	return d
}

// wholeFor returns how long nothing has been missing.
func (r *round) wholeFor() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.whole.IsZero() {
		return 0
	}
	return time.Since(r.whole)
}

// reportLines is how much of each switch's log is printed.
const reportLines = 120

// report prints what happened, and what every switch says.
func (r *round) report() {
	r.t.Logf("GLEAM_SEED=%d: %s\n%+v\n%s", r.seed, r.what, *r.top, strings.Join(r.notes, "\n"))
	for _, s := range r.bed.Switches {
		g := r.bed.Gleamds[s.Name]
		groups, err := g.Client.Groups(r.t.Context())
		var state strings.Builder
		for _, x := range groups {
			fmt.Fprintf(&state, "group %s: %s, source %v, acknowledged 0x%06x, next 0x%06x, waits for %v, %+v\n", x.IP, x.State, x.Source, x.AckPSN, x.NextPSN, x.WaitsFor, x.Counters)
		}
		lines := strings.Split(strings.TrimSpace(g.Output()), "\n")
		r.t.Logf("%s (switch %s): %v\n%s%s", s.Name, s.ID(), err, &state, strings.Join(lines[max(0, len(lines)-reportLines):], "\n"))
	}
}

// picture notes what every switch says of a group, twice: what is repeated shows.
func (r *round) picture(group netip.Addr) {
	for range 2 {
		for _, s := range r.bed.Switches {
			g, err := r.bed.Gleamds[s.Name].Client.Group(r.t.Context(), group)
			if err != nil {
				r.note("%s: %v", s.Name, err)
				continue
			}
			g.Former = nil
			text, _ := json.Marshal(g) // it has no cycle
			r.note("%s: %s", s.Name, text)
		}
		time.Sleep(pictureTime)
	}
}

// pictureTime is between the two.
const pictureTime = 100 * time.Millisecond

// groupIP is the address of group i.
func groupIP(i int) netip.Addr {
	a := fabric.GroupsIPv4.Addr()
	for range i + 1 {
		a = a.Next()
	}
	return a
}
