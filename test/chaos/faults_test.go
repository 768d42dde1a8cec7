// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/gleam-rdma/gleam/lab/fabric"
)

const (
	// repairTime bounds how long the fabric takes to be whole again after a fault.
	repairTime = 40 * time.Second
	// leastAway and mostAway bound how long a fault lasts.
	leastAway, mostAway = 50 * time.Millisecond, 5 * time.Second
)

// fault is what fails, and how it comes back.
type fault struct {
	kind  string
	of    string
	away  time.Duration               // the time that it is away
	cause func(context.Context) error // the failure
	hold  func(context.Context)       // what goes on until ctx ends; nil: nothing
	mend  func(context.Context) error // its end; nil: cause has it
	// harmless: nothing is missing for the groups, which go on meanwhile; their registrations may not.
	harmless bool
}

// fail has faults happen and end, one after the other, until ctx ends.
func (r *round) fail(ctx context.Context, actor uint64, choose func(*rand.Rand) fault) {
	rng := random(r.seed, actor)
	for sleep(ctx, between(rng, 300*time.Millisecond, 3*time.Second)) {
		if f := choose(rng); f.kind != "" && !r.fault(ctx, &f) {
			return
		}
	}
}

// between is a random time.
func between(rng *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(rng.Int64N(int64(most-least)))
}

// fault makes one fault, and takes it back. It returns false if the fabric cannot be used any more.
func (r *round) fault(ctx context.Context, f *fault) bool {
	name := f.kind + " " + f.of
	if f.away > 0 {
		name += fmt.Sprintf(" for %v", f.away.Round(time.Millisecond))
	}
	r.begins(f)
	r.note("%s", name)
	repair, cancel := context.WithTimeout(context.WithoutCancel(ctx), repairTime)
	defer cancel()
	err := f.cause(repair)
	if err == nil && f.mend != nil {
		during, cancel := context.WithTimeout(ctx, f.away)
		if f.hold != nil {
			f.hold(during)
		}
		<-during.Done()
		cancel()
		err = f.mend(repair)
	}
	if err != nil {
		r.wrong("%s: %v", name, err)
		return false
	}
	r.ends(f)
	r.note("%s is over", name)
	return true
}

// kinds are all kinds of faults, as the table has them.
var kinds = []string{
	"SIGTERM and restart", "kill -9 and start", "clock jump", "switch failed", "link cut", "host cut", "link flaps",
	"member killed", "master killed", "full disk", "flood", "poison",
}

// ofFabric returns one of the faults that switches and links can have.
func (r *round) ofFabric(rng *rand.Rand) fault {
	s := r.top.Switches[rng.IntN(len(r.top.Switches))]
	g := r.bed.Gleamds[s]
	kill := func(context.Context) error { return g.Kill() }
	away := between(rng, leastAway, mostAway)
	quick, pulled := away, rng.IntN(2) == 0
	if pulled {
		quick = 0
	}
	faults := []fault{
		{kind: "SIGTERM and restart", of: s, cause: g.Restart},
		{kind: "kill -9 and start", of: s, away: quick, cause: kill, mend: g.Start},
		{kind: "switch failed", of: s, away: away, cause: func(context.Context) error { return r.bed.Isolate(s) }, mend: func(ctx context.Context) error { return r.bed.Return(ctx, s) }},
	}
	clock := rng.Int64N(20 * 366 * 86400)
	if rng.IntN(2) == 0 { // the clock cannot go below 0
		clock = -(clock % (1 + r.uptime/2))
	}
	faults = append(faults, fault{kind: "clock jump", of: fmt.Sprintf("of %s to %d s", s, clock), away: quick, cause: kill, mend: func(ctx context.Context) error {
		return errors.Join(os.WriteFile(filepath.Join(r.clocks, s), []byte(strconv.FormatInt(clock, 10)), 0o644), g.Start(ctx))
	}})
	for i, links := range [][]fabric.Link{r.links(false), r.links(true)} {
		if len(links) == 0 {
			continue
		}
		l := links[rng.IntN(len(links))]
		name, set := "both ends down of "+l.String(), r.bed.SetLink
		if pulled || i == 1 { // a host's addresses and routes would go with its interface
			name, set = "the carrier of "+l.String(), r.bed.SetCarrier
		}
		up := func(ctx context.Context) error { return errors.Join(set(l.A, l.B, true), r.bed.WaitRouted(ctx)) }
		faults = append(faults,
			fault{kind: []string{"link cut", "host cut"}[i], of: name, away: away, cause: func(context.Context) error { return set(l.A, l.B, false) }, mend: up},
			fault{kind: "link flaps", of: name, away: away / 4, mend: up, cause: func(context.Context) error { return nil }, hold: func(ctx context.Context) {
				for on := false; sleep(ctx, 20*time.Millisecond); on = !on {
					if err := set(l.A, l.B, on); err != nil {
						r.wrong("%s: %v", name, err)
						return
					}
				}
			}})
	}
	return faults[rng.IntN(len(faults))]
}

// wrapper starts gleamd with another monotonic clock, if its switch has one in the folder of clocks: as after a jump, or the
// start of another machine. The file of its configuration is in a folder with the switch's name.
const wrapper = `#!/bin/sh
dir=${2%%/*}
clock=$(cat "%[1]s/${dir##*/}" 2>/dev/null) || exec %[2]s "$@"
exec unshare --time --monotonic "$clock" --boottime "$clock" %[2]s "$@"
`

// withClocks returns a gleamd whose clock can jump.
func (r *round) withClocks(gleamd string) string {
	r.t.Helper()
	r.clocks = r.t.TempDir()
	path := filepath.Join(r.clocks, "gleamd")
	text, err := os.ReadFile("/proc/uptime")
	if err == nil {
		_, err = fmt.Sscanf(string(text), "%d", &r.uptime)
	}
	if err == nil {
		err = os.WriteFile(path, fmt.Appendf(nil, wrapper, r.clocks, gleamd), 0o755)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return path
}
