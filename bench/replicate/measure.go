// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package replicate

import (
	"context"
	"fmt"
	"time"
)

// reading is the state of all counters at one time.
type reading struct {
	at                        time.Duration
	process, generator, softs time.Duration // CPU time
	sent                      sent
	each                      []seenValue
	all, source               seenValue
}

// meter reads counters.
type meter struct {
	softs []string // see softirqThreads
}

func (m *meter) read(s *stage, tid int) (r reading, err error) {
	if r.sent, err = s.gen.sent(); err != nil {
		return r, err
	}
	if r.each, r.all, r.source, err = s.counts(); err != nil {
		return r, err
	}
	if r.at, err = monotonic(); err != nil {
		return r, err
	}
	if r.process, err = processCPU(); err != nil {
		return r, err
	}
	if r.generator, err = threadCPU(tid); err != nil {
		return r, err
	}
	r.softs, err = scheduled(m.softs)
	return r, err
}

// outcome is what one run showed.
type outcome struct {
	// In the time that was measured:
	seconds   float64
	offered   uint64        // data frames sent
	copies    uint64        // that arrived, at all receivers together, each for the first time
	again     uint64        // that arrived once more, or late
	acks      uint64        // of receivers
	answers   uint64        // ACKs that the source got
	waited    time.Duration // CPU time that the generator had nothing to do
	own       time.Duration // CPU time of this process without the generator
	generator time.Duration // of the generator's thread
	softs     time.Duration // of ksoftirqd
	// From the first to the last frame, with nothing under way any more:
	totalSent uint64
	fewest    uint64 // that arrived at one receiver
}

func (o *outcome) offeredRate() float64 { return float64(o.offered) / o.seconds }
func (o *outcome) outRate() float64     { return float64(o.copies) / o.seconds }

// loss is the share of the packets that did not arrive at the receiver that got
// the fewest.
func (o *outcome) loss() float64 {
	if o.totalSent == 0 {
		return 0
	}
	return 1 - float64(o.fewest)/float64(o.totalSent)
}

// run sends at a pace for warm and d, measures the latter, and waits until what
// is under way has arrived.
func (m *meter) run(ctx context.Context, s *stage, p pace, warm, d time.Duration) (*outcome, error) {
	if s.renew != nil {
		if err := s.renew(); err != nil {
			return nil, err
		}
	}
	firstEach, before, _, err := s.counts()
	if err != nil {
		return nil, err
	}
	first, err := s.gen.sent()
	if err != nil {
		return nil, err
	}
	t, err := s.gen.start(p)
	if err != nil {
		return nil, err
	}
	var a, b reading
	wait(ctx, warm)
	if a, err = m.read(s, t.tid); err == nil {
		wait(ctx, d)
		b, err = m.read(s, t.tid)
	}
	if stopErr := t.stop(); stopErr != nil {
		return nil, stopErr
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	each, all, err := s.settle(ctx)
	if err != nil {
		return nil, err
	}
	last, err := s.gen.sent()
	if err != nil {
		return nil, err
	}
	if n := all.Wrong - before.Wrong; n > 0 {
		return nil, fmt.Errorf("%s, %s: %d frames arrived with other addresses, QPN or length than they should", s.way.name, s.column, n)
	}
	o := &outcome{
		seconds: (b.at - a.at).Seconds(), offered: b.sent.data - a.sent.data, copies: b.all.Good - a.all.Good,
		acks: b.sent.acks - a.sent.acks, answers: b.source.Acks - a.source.Acks,
		waited: b.sent.waited - a.sent.waited, again: b.all.Again - a.all.Again,
		generator: b.generator - a.generator, softs: b.softs - a.softs,
		totalSent: last.data - first.data,
	}
	o.own = b.process - a.process - o.generator
	for i := range each {
		n := each[i].Good - firstEach[i].Good
		if i == 0 || n < o.fewest {
			o.fewest = n
		}
	}
	return o, s.acknowledgeAll()
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// settle waits until no more frames arrive.
func (s *stage) settle(ctx context.Context) (each []seenValue, all seenValue, err error) {
	const calm = 20 * time.Millisecond
	for end := time.Now().Add(2 * time.Second); ; {
		var now seenValue
		if each, now, _, err = s.counts(); err != nil || ctx.Err() != nil {
			return nil, now, err
		}
		if now == all && now.Good > 0 || time.Now().After(end) {
			return each, now, nil
		}
		all = now
		wait(ctx, calm)
	}
}

// base is what the generator takes by itself: ns of CPU per frame.
type base struct {
	thread  float64 // its thread, and ksoftirqd
	runtime float64 // Go's other threads: with a generator in Go, they look after its system calls
}

// measureBase runs the generator into nothing.
func (m *meter) measureBase(ctx context.Context, s *stage, d time.Duration) (base, error) {
	for range measureTries {
		o, err := m.run(ctx, s, pace{}, d/4, d)
		if err != nil {
			return base{}, err
		}
		if n := float64(o.offered); n > 0 {
			return base{float64(o.generator+o.softs) / n, float64(o.own) / n}, nil
		}
	}
	return base{}, fmt.Errorf("%s: the generator did not run in %d measurements of %v", s.column, measureTries, d)
}

// costs are ns of CPU time per packet out: of the way's own threads, and of the
// kernel on the generator's side.
func (o *outcome) costs(w *way, b base) (own, softirq float64) {
	if o.copies == 0 {
		return 0, 0
	}
	frames := float64(o.offered + o.acks)
	if w.user { // a way in the kernel has no threads: what others ran was for the generator
		own = max(0, float64(o.own)-frames*b.runtime)
	}
	softirq = max(0, float64(o.generator+o.softs-o.waited)-frames*b.thread)
	return own / float64(o.copies), softirq / float64(o.copies)
}
