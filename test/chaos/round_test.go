// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/lab/testbed"
	"github.com/gleam-rdma/gleam/test/bedtest"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// round is a fabric with groups, and one who makes it fail.
type round struct {
	t     *testing.T
	seed  uint64
	what  string // the fabric
	bed   *testbed.Fabric
	top   *fabric.Topology
	hosts []*host
	lives []*life
	begin time.Time

	stranger *fabric.Host // a host that is in no group
	disk     string       // the small disk of all state files
	clocks   string       // the folder of the switches' clocks
	uptime   int64        // seconds by the machine's monotonic clock, when the round began

	mu      sync.Mutex
	notes   []string // what happened, in order
	journal []said   // events of the switches' journals
	going   []*fault // the faults that go on
	last    string   // the kind of the last one that began
	broken  []span   // the spans in which something was missing
	*tally
}

// random is the source of the choices of one who acts in the round.
func random(seed, actor uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, actor)) }

func newRound(t *testing.T, seed uint64) *round {
	t.Helper()
	r := &round{t: t, seed: seed, tally: newTally()}
	rng := random(seed, 0)
	r.top, r.what = randomTopology(rng)
	r.disk = t.TempDir()
	labtest.SmallDisk(t, r.disk)
	r.bed = bedtest.Fabric(t, testbed.FabricConfig{
		Dir: r.disk, Gleamd: r.withClocks(programs.Path(t, "gleamd")), State: true, Fabric: fabric.Config{Topology: r.top, Count: true},
		FastPathOf: func(s *fabric.Switch) string {
			mode := []string{"off", "auto", "require"}[rng.IntN(3)]
			r.what += fmt.Sprintf(", %s %s", s.Name, mode)
			return mode
		},
	})
	last := len(r.bed.Hosts) - 1
	r.stranger = r.bed.Hosts[last]
	for i, h := range bedtest.Open(t, fabric.Plain(r.bed.Hosts[:last]), r.endpoints(seed)) {
		r.hosts = append(r.hosts, &host{r.bed.Hosts[i], h})
	}
	return r
}

// run has groups live, and elements fail, for a time.
func (r *round) run(length time.Duration) {
	r.begin = time.Now()
	ctx, cancel := context.WithTimeout(r.t.Context(), length)
	defer cancel()
	for i := range 1 + random(r.seed, 0).IntN(2) {
		r.lives = append(r.lives, newLife(r, i))
	}
	var actors []interface {
		run(context.Context)
		heals()
	}
	for _, l := range r.lives {
		actors = append(actors, l)
	}
	if c := newByCM(r, len(r.lives)); c != nil {
		r.lives, actors = append(r.lives, c.life), append(actors, c)
	}
	var all sync.WaitGroup
	for _, a := range actors {
		all.Go(func() { a.run(ctx) })
	}
	if random(r.seed, 11).IntN(3) > 0 { // else no transfer may fail but for a killed member
		all.Go(func() { r.fail(ctx, 1, r.ofFabric) })
	}
	all.Go(func() { r.fail(ctx, 10, r.ofHosts) })
	following, stop := context.WithCancel(r.t.Context())
	var followers sync.WaitGroup
	for _, s := range r.bed.Switches {
		followers.Go(func() { r.follow(following, s) })
	}
	all.Wait()
	for _, a := range actors {
		all.Go(a.heals)
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
	text = fmt.Sprintf("GLEAM_SEED=%d, after %.3f s: %s", r.seed, time.Since(r.begin).Seconds(), text)
	r.mu.Lock()
	r.wrongs = append(r.wrongs, text)
	r.mu.Unlock()
	r.t.Error(text)
}

// reportLines is how much of each switch's log is printed.
const reportLines = 400

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
