// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"context"
	"fmt"
	"time"
)

// reading is the state of all counters at one time.
type reading struct {
	at                              time.Duration
	process, generator, softirqTime time.Duration // CPU time
	sent                            generatorTotals
	fast                            uint64
	all                             seenValue
}

// meter reads counters.
type meter struct {
	softirqThreads []string // the threads that the function softirqThreads returns
}

func (m *meter) read(s *testbed, tid int) (r reading, err error) {
	if r.sent, err = s.gen.sent(); err != nil {
		return r, err
	}
	if _, r.all, err = s.counts(); err != nil {
		return r, err
	}
	if s.fast != nil {
		if r.fast, err = s.fast(); err != nil {
			return r, err
		}
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
	r.softirqTime, err = scheduled(m.softirqThreads)
	return r, err
}

// outcome is the result of one run.
type outcome struct {
	// In the time that was measured:
	seconds       float64
	offered       uint64        // data frames sent
	copies        uint64        // copies that arrived, at all receivers together, each for the first time
	repeated      uint64        // copies that arrived once more, or behind a later PSN
	acks          uint64        // ACKs of receivers
	fast          uint64        // data frames that XDP has replicated, of a method with a fast path
	generatorIdle time.Duration // CPU time in which the generator waited
	threadTime    time.Duration // CPU time of this process without the generator
	generator     time.Duration // the CPU time of the generator's thread
	softirqTime   time.Duration // the CPU time of ksoftirqd
	// From the first to the last frame, with no frame in flight any more:
	totalSent uint64
	fewest    uint64 // the fewest copies that arrived at one receiver
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

// run sends at a pace for warm and d, measures the latter, and waits until all frames
// in flight have arrived.
func (m *meter) run(ctx context.Context, s *testbed, p pace, warm, d time.Duration) (*outcome, error) {
	if s.renew != nil {
		if err := s.renew(); err != nil {
			return nil, err
		}
	}
	firstEach, before, err := s.counts()
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
		return nil, fmt.Errorf("%s, %s: %d frames arrived with other addresses, QPN or length than they should", s.method.name, s.benchCase, n)
	}
	o := &outcome{
		seconds: (b.at - a.at).Seconds(), offered: b.sent.data - a.sent.data, copies: b.all.Good - a.all.Good,
		fast:          b.fast - a.fast,
		acks:          b.sent.acks - a.sent.acks,
		generatorIdle: b.sent.waited - a.sent.waited, repeated: b.all.Again - a.all.Again,
		generator: b.generator - a.generator, softirqTime: b.softirqTime - a.softirqTime,
		totalSent: last.data - first.data,
	}
	o.threadTime = b.process - a.process - o.generator
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
func (s *testbed) settle(ctx context.Context) (each []seenValue, all seenValue, err error) {
	const calm = 20 * time.Millisecond
	for end := time.Now().Add(2 * time.Second); ; {
		var now seenValue
		if each, now, err = s.counts(); err != nil || ctx.Err() != nil {
			return nil, now, err
		}
		if now == all && now.Good > 0 || time.Now().After(end) {
			return each, now, nil
		}
		all = now
		wait(ctx, calm)
	}
}

// generatorCost is the generator's own cost: ns of CPU per frame.
type generatorCost struct {
	thread  float64 // its thread, and ksoftirqd
	runtime float64 // Go's other threads: with a generator in Go, they look after its system calls
}

// measureGenerator runs the generator into nothing.
func (m *meter) measureGenerator(ctx context.Context, s *testbed, d time.Duration) (generatorCost, error) {
	var cost generatorCost
	err := untilSeen(d, s.benchCase, func(d time.Duration) (bool, error) {
		o, err := m.run(ctx, s, pace{}, d/4, d)
		if err != nil || o.offered == 0 {
			return false, err
		}
		n := float64(o.offered)
		cost = generatorCost{float64(o.generator+o.softirqTime) / n, float64(o.threadTime) / n}
		return true, nil
	})
	return cost, err
}

// costs are ns of CPU time per packet out: of the method's own threads, and of the
// kernel on the generator's side.
func (o *outcome) costs(w *method, b generatorCost) (own, softirq float64) {
	if o.copies == 0 {
		return 0, 0
	}
	frames := float64(o.offered + o.acks)
	if w.user { // a method in the kernel has no threads: other threads ran for the generator
		own = max(0, float64(o.threadTime)-frames*b.runtime)
	}
	softirq = max(0, float64(o.generator+o.softirqTime-o.generatorIdle)-frames*b.thread)
	return own / float64(o.copies), softirq / float64(o.copies)
}
