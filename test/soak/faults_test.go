// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gleam-rdma/gleam/lab/fabric"
)

// repairTime bounds how long the fabric takes to be whole again after a fault.
const repairTime = 40 * time.Second

// fail has links and switches fail and come back, one after the other, until ctx ends.
func (r *round) fail(ctx context.Context) {
	rng := random(r.seed, 1)
	for sleep(ctx, between(rng, 500*time.Millisecond, 4*time.Second)) {
		if !r.fault(ctx, rng) {
			return
		}
	}
}

// between is a random time.
func between(rng *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(rng.Int64N(int64(most-least)))
}

// fault makes one fault, and takes it back. It returns false if the fabric cannot be used any more.
func (r *round) fault(ctx context.Context, rng *rand.Rand) bool {
	f := r.choose(rng)
	if f.away > 0 {
		f.name += fmt.Sprintf(" for %v", f.away.Round(time.Millisecond))
	}
	r.setWhole(false)
	r.note("%s", f.name)
	r.count(f.counted)
	repair, cancel := context.WithTimeout(context.WithoutCancel(ctx), repairTime)
	defer cancel()
	err := f.cause(repair)
	if err == nil && f.mend != nil {
		sleep(ctx, f.away)
		err = f.mend(repair)
	}
	if err != nil {
		r.wrong("%s: %v", f.name, err)
		return false
	}
	r.setWhole(true)
	r.note("%s is over", f.name)
	return true
}

// fault is what fails, and how it comes back.
type fault struct {
	name, counted string
	away          time.Duration               // the time that it is away
	cause         func(context.Context) error // the failure
	mend          func(context.Context) error // its end; nil: cause has it
}

// choose returns one of the faults that the fabric can have.
func (r *round) choose(rng *rand.Rand) fault {
	s := r.top.Switches[rng.IntN(len(r.top.Switches))]
	g := r.bed.Gleamds[s]
	away := between(rng, 50*time.Millisecond, 5*time.Second)
	quick, pulled := away, rng.IntN(2) == 0
	if pulled {
		quick = 0
	}
	kinds := []fault{
		{"SIGTERM and restart of " + s, "switches restarted", 0, g.Restart, nil},
		{"kill -9 of " + s, "switches killed", quick, func(context.Context) error { return g.Kill() }, g.Start},
		{"failure of " + s, "switches failed", away, func(context.Context) error { return r.bed.Isolate(s) }, func(ctx context.Context) error { return r.bed.Return(ctx, s) }},
	}
	for i, links := range [][]fabric.Link{r.links(false), r.links(true)} {
		if len(links) == 0 {
			continue
		}
		l := links[rng.IntN(len(links))]
		name, set := "both ends down of "+l.String(), r.bed.SetLink
		if pulled || i == 1 { // a host's addresses and routes would go with its interface
			name, set = "loss of the carrier of "+l.String(), r.bed.SetCarrier
		}
		kinds = append(kinds, fault{name, []string{"links cut", "hosts cut"}[i], away,
			func(context.Context) error { return set(l.A, l.B, false) },
			func(ctx context.Context) error { return errors.Join(set(l.A, l.B, true), r.bed.WaitRouted(ctx)) }})
	}
	return kinds[rng.IntN(len(kinds))]
}
