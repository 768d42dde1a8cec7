// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
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
	links := inner(r.top)
	l := links[rng.IntN(len(links))]
	s := r.top.Switches[rng.IntN(len(r.top.Switches))]
	away := between(rng, 50*time.Millisecond, 5*time.Second)
	kind, pulled := rng.IntN(4), rng.IntN(2) == 0
	name := []string{map[bool]string{true: "loss of the carrier of ", false: "both ends down of "}[pulled] + l.String(), "SIGTERM and restart of " + s, "kill -9 of " + s, "failure of " + s}[kind]
	if kind == 2 && pulled {
		away = 0
	}
	if kind != 1 && away > 0 {
		name += fmt.Sprintf(" for %v", away.Round(time.Millisecond))
	}
	r.setWhole(false)
	r.note("%s", name)
	r.count([]string{"links cut", "switches restarted", "switches killed", "switches failed"}[kind])
	repair, cancel := context.WithTimeout(context.WithoutCancel(ctx), repairTime)
	defer cancel()
	if err := r.breakAndMend(ctx, repair, kind, l, s, away, pulled); err != nil {
		r.wrong("%s: %v", name, err)
		return false
	}
	r.setWhole(true)
	r.note("%s is over", name)
	return true
}

func (r *round) breakAndMend(ctx, repair context.Context, kind int, l fabric.Link, s string, away time.Duration, pulled bool) error {
	g := r.bed.Gleamds[s]
	switch kind {
	case 0:
		set := r.bed.SetLink
		if pulled {
			set = r.bed.SetCarrier
		}
		if err := set(l.A, l.B, false); err != nil {
			return err
		}
		sleep(ctx, away)
		if err := set(l.A, l.B, true); err != nil {
			return err
		}
		return r.bed.WaitRouted(repair)
	case 1:
		return g.Restart(repair)
	case 2:
		if err := g.Kill(); err != nil {
			return err
		}
		sleep(ctx, away)
		return g.Start(repair)
	}
	if err := r.bed.Isolate(s); err != nil {
		return err
	}
	sleep(ctx, away)
	return r.bed.Return(repair, s)
}
