// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
)

// run measures one size.
func (s *sender) run(size int) (*Size, error) {
	n := s.params.iterations(size)
	ctx, cancel := s.step("preparing the receivers")
	defer cancel()
	for i, c := range s.controls {
		if s.isLost(i) {
			continue
		}
		if err := c.send(message{Type: typeRun, Run: &run{Size: size, Iterations: n}}); err != nil {
			return nil, err
		}
	}
	if err := s.awaitAll(ctx, typeArmed, nil); err != nil {
		return nil, err
	}
	m := newMeter(n*len(s.lanes), s.params.slots(size)*len(s.lanes))
	var lists []*samples
	for _, l := range s.lanes {
		var x *samples
		if s.params.latency() || s.params.replicates() {
			x = newSamples(len(s.controls), n)
			lists = append(lists, x)
		}
		l.prepare(m, x, s.params.slots(size))
	}
	watching, stop := context.WithCancel(s.ctx)
	defer stop()
	s.wg.Go(func() { s.stalled(watching, m, s.explain) })
	if s.params.DeadAfter > 0 {
		s.wg.Go(func() { s.probeLanes(watching) })
	}

	sent, known := s.port.Sent()
	before := s.traffic()
	start := time.Now()
	m.begin(start)
	if s.opts.onStart != nil {
		s.opts.onStart()
	}
	if err := s.runLanes(size, n, start.Add(s.params.Duration)); err != nil {
		return nil, err
	}
	stop()
	after, _ := s.port.Sent()
	results := make([]*result, len(s.controls))
	end, cancelEnd := s.step("the end at the receivers")
	defer cancelEnd()
	if err := s.awaitAll(end, typeResult, func(i int, m *message) { results[i] = m.Result }); err != nil {
		return nil, err
	}
	z := s.sum(size, m.rate(), results, lists)
	s.withoutLost(z)
	now := s.traffic()
	z.Retransmitted, z.CNPs, z.Rate = now.retransmitted-before.retransmitted, now.cnps-before.cnps, now.rate
	if known {
		z.SenderLinkBytes = after - sent
	}
	return z, nil
}

// runLanes runs all lanes at once. The first error ends all of them.
func (s *sender) runLanes(size, n int, until time.Time) error {
	var lanes sync.WaitGroup
	for _, l := range s.lanes {
		lanes.Go(func() {
			if err := l.run(s.ctx, size, n, until); err != nil {
				s.cancel(err)
			}
		})
	}
	lanes.Wait()
	if s.ctx.Err() != nil {
		return fmt.Errorf("%s of %d bytes: %w", s.params.Test, size, context.Cause(s.ctx))
	}
	return nil
}

// traffic sums up the counters of the sender's queue pairs.
type traffic struct {
	retransmitted uint64 // packets that were sent again
	cnps          uint64 // congestion notifications
	rate          int64  // the lowest, bits/s; 0: none is bounded
}

func (s *sender) traffic() (x traffic) {
	for _, l := range s.lanes {
		for _, t := range l.targets {
			q := t.qp.Stats()
			x.retransmitted += q.Retransmitted
			x.cnps += q.CNPsReceived + q.BECNReceived
			if q.Rate > 0 && (x.rate == 0 || q.Rate < x.rate) {
				x.rate = q.Rate
			}
		}
	}
	return x
}

// explain returns what is known of the receivers when no message gets through.
func (s *sender) explain() string {
	silent := make([]bool, len(s.controls))
	var asking sync.WaitGroup
	for i, c := range s.controls {
		asking.Go(func() { silent[i] = !c.alive(time.Second) })
	}
	asking.Wait()
	var names []string
	for i, c := range s.controls {
		if silent[i] {
			names = append(names, c.peer)
		}
	}
	switch {
	case len(names) > 1 && len(names) == len(s.controls):
		return "no receiver answers any more: see first whether this host's own link is up"
	case len(names) > 1:
		return strings.Join(names, ", ") + " do not answer any more"
	case len(names) == 1:
		return names[0] + " does not answer any more"
	case s.params.Mode == Group && s.switchSilent():
		return "all receivers' programs answer, but the switch does not: see at it whether gleamd runs"
	case s.params.Mode == Group:
		return fmt.Sprintf("all receivers' programs answer; at the switch, `gleam group show %s` names the member that the group waits for", s.opts.GroupIP)
	}
	return "all receivers' programs answer, but their RDMA traffic is lost"
}

// switchSilent reports whether the switch leaves the request to delete a group unanswered. The
// test is over by then, and would delete it next.
func (s *sender) switchSilent() bool {
	if len(s.groups) == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	var f *envelope.Failure
	return errors.As(s.groups[0].Leave(ctx), &f) && f.SwitchSilent
}
