// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
)

// Rotation: each member of a group is its source in turn. A turn has no more messages than there are slots, and
// each turn has bytes of its own, so that members need no answers to check them.

// access returns the access to the sender's memory.
func (p *Params) access() endpoint.Access {
	if p.rotates() {
		return endpoint.LocalWrite | endpoint.RemoteWrite
	}
	return 0
}

// sends returns the depth of a receiver's send queue to the group.
func (p *Params) sends() int {
	if p.rotates() {
		return p.work()
	}
	return 1
}

// part is the sender's part in the group of lane l.
func (s *sender) part(l *sendLane, app json.RawMessage) endpoint.Local {
	part := endpoint.Local{Device: s.port, QPConfig: s.qpConfig(s.params.work(), 1), Host: s.host, App: app}
	if s.params.rotates() {
		part.Memory, part.QPConfig.MaxRecv = l.mr, recvDepth
	}
	return part
}

// rotate runs a test of all sizes.
func (s *sender) rotate(res *Result) error {
	var lanes []*recvLane
	for i, l := range s.lanes {
		g := s.groups[i]
		lanes = append(lanes, &recvLane{params: &s.params, number: i, mr: l.mr, in: newInbox(g.QP()), window: g.Info().Window})
	}
	for _, size := range s.params.sizes() {
		z, err := s.rounds(lanes, size)
		if err != nil {
			return err
		}
		res.Sizes = append(res.Sizes, z)
		if s.opts.OnEachSize != nil {
			s.opts.OnEachSize(z)
		}
	}
	return nil
}

// rounds has the sender be the source, then each receiver, and so on, and at last the sender again.
func (s *sender) rounds(lanes []*recvLane, size int) (*Size, error) {
	n := s.params.iterations(size)
	z := &Size{Bytes: size, Receivers: []ReceiverResult{}}
	members := len(s.controls) + 1
	for turn, until := 1, time.Now().Add(s.params.Duration); ; turn++ {
		r := &run{Size: size, Iterations: n, Turn: turn, Source: (turn - 1) % members}
		took, err := s.turn(lanes, r)
		if err != nil {
			return nil, fmt.Errorf("turn %d, source %s: %w", turn, s.memberName(r.Source), err)
		}
		messages := n * len(lanes)
		rate := float64(messages) / took.Seconds()
		z.Iterations, z.Seconds = z.Iterations+messages, z.Seconds+took.Seconds()
		z.Turns = append(z.Turns, Turn{Source: s.memberName(r.Source), Messages: messages, Bandwidth: *bandwidth(size, rate, rate)})
		if r.Source == 0 && turn > 1 && !time.Now().Before(until) {
			break
		}
	}
	rate := float64(z.Iterations) / z.Seconds
	z.All.Bandwidth = bandwidth(size, rate, rate)
	return z, nil
}

// memberName is the address of the member of that rank.
func (s *sender) memberName(rank int) string {
	if rank == 0 {
		return s.port.IP.String()
	}
	return s.members[rank-1].String()
}

// turn runs a turn at all members. It returns the time that the source took.
func (s *sender) turn(lanes []*recvLane, r *run) (took time.Duration, err error) {
	ctx, cancel := s.step("a turn")
	defer cancel()
	for _, c := range s.controls {
		if err := c.send(message{Type: typeRun, Run: r}); err != nil {
			return 0, err
		}
	}
	t := s.beginTurn(lanes, r, 0)
	if t.err != nil {
		return 0, t.err
	}
	if err := s.awaitAll(ctx, typeArmed, nil); err != nil {
		return 0, err
	}
	if r.Source > 0 {
		if err := s.controls[r.Source-1].send(message{Type: typeGo}); err != nil {
			return 0, err
		}
	}
	if took, err = t.finish(ctx); err != nil {
		return 0, err
	}
	err = s.awaitAll(ctx, typeResult, func(i int, m *message) {
		if i+1 == r.Source && m.Result != nil {
			took = time.Duration(m.Result.Seconds * float64(time.Second))
		}
	})
	if err == nil && took <= 0 {
		err = fmt.Errorf("%s sent a time that makes no sense", s.controls[r.Source-1].peer)
	}
	return took, err
}

// turn is a receiver's part in a turn.
func (r *receiver) turn(z *run) error {
	if z.Turn < 1 || z.Source < 0 || z.Source > r.setup.Receivers || z.Iterations < 1 || z.Iterations > r.params.slots(z.Size) {
		return fmt.Errorf("%s: a turn that makes no sense", r.control.peer)
	}
	ctx, cancel := r.step("a turn")
	defer cancel()
	t := r.beginTurn(r.lanes, z, r.setup.Rank)
	if t.err != nil {
		return t.err
	}
	if err := r.control.send(message{Type: typeArmed}); err != nil {
		return err
	}
	if t.source {
		if _, err := r.control.receive(ctx, typeGo); err != nil {
			return err
		}
	}
	took, err := t.finish(ctx)
	if err != nil {
		return err
	}
	what := "verified"
	if t.source {
		what = "sent"
	}
	r.opts.Say(fmt.Sprintf("%s, turn %d: %d messages of %d bytes, %s", r.params.Test, z.Turn, z.Iterations*len(r.lanes), z.Size, what))
	return r.control.send(message{Type: typeResult, Result: &result{Messages: z.Iterations * len(r.lanes), Seconds: took.Seconds()}})
}

// turn is a member's part in a turn.
type turn struct {
	*run
	lanes  []*recvLane
	source bool
	err    error
}

// beginTurn prepares the part of the member of that rank: it fills its memory, or posts receives.
func (s *peer) beginTurn(lanes []*recvLane, r *run, rank int) *turn {
	p := s.params
	p.Seed += uint64(r.Turn)
	t := &turn{run: r, lanes: lanes, source: r.Source == rank}
	for _, l := range lanes {
		l.params = &p
		if !t.source {
			if t.err = l.arm(r); t.err != nil {
				break
			}
			continue
		}
		for m := range r.Iterations {
			fill(l.mr.Bytes()[m*r.Size:][:r.Size], pattern(p.Seed, l.number, m))
		}
	}
	return t
}

// finish sends the messages, or receives and checks them. It returns the time from the first post to the last completion.
func (t *turn) finish(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	start := time.Now()
	a := &arrivals{meter: newMeter(t.Iterations*len(t.lanes), 0)}
	var lanes sync.WaitGroup
	for _, l := range t.lanes {
		lanes.Go(func() {
			var err error
			if t.source {
				err = l.sendTurn(ctx, t.run)
			} else {
				err = l.run(ctx, t.run, a)
			}
			if err != nil {
				cancel(err)
			}
		})
	}
	lanes.Wait()
	return time.Since(start), context.Cause(ctx)
}

// sendTurn sends the messages of a turn, and returns when all others have them.
func (l *recvLane) sendTurn(ctx context.Context, r *run) error {
	lay := newLayout(l.params, r.Size)
	for m := range r.Iterations {
		var wr endpoint.SendWR
		lay.request(&wr, l.params, l.mr, m, true, m == r.Iterations-1)
		wr.RemoteAddr, wr.RKey = l.window.Base+uint64(wr.Local.Offset), l.window.RKey
		if _, err := l.in.qp.PostSend(wr); err != nil {
			return fmt.Errorf("post message %d: %w", m, err)
		}
	}
	wc := make([]endpoint.Completion, pollBatch)
	for done := 0; done < r.Iterations; {
		n, err := l.in.qp.Poll(ctx, wc)
		if err != nil {
			return err
		}
		for i := range n {
			if err := wc[i].Err(); err != nil {
				return fmt.Errorf("message %d: %w", wc[i].ID, err)
			}
		}
		done += n
	}
	return nil
}
