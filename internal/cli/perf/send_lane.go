// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
)

// sendLane is the sender's side of a lane: it posts messages while slots are free.
// Completions, or answers, show which receivers have them.
type sendLane struct {
	params  *Params
	number  int
	mr      endpoint.MR
	targets []*sendPipe  // pipes to the group, or to the receivers that the sender sends to
	answers []*recvInbox // answers of every receiver, if receivers answer

	tamper func(message int, b []byte) // tests only: corrupts a message

	mu         sync.Mutex
	changed    *sync.Cond
	meter      *meter // the meter of the run, shared by all lanes
	samples    *samples
	posted     []time.Time // the post times of messages, by slot
	lastPosted time.Time   // time of the last call of advance
	received   []int       // messages known to have arrived, by receiver
	done       int         // the least of received
	answered   []int       // messages whose slots a receiver needs no more, by receiver
	free       int         // the least of answered; done, where receivers do not answer
	completed  []int       // completed work requests of the run, by target
	transport  int         // the least of completed
	lost       []bool      // receivers that the group goes on without
	requests   int         // posted work requests of the run, of each target
	probeDue   bool        // a probe is to be sent if only answers are missing
	probing    bool        // the next completion is that of a probe
}

// samples are the latencies of a run on one lane.
type samples struct {
	receiver   [][]time.Duration // the times from posting to the receiver's answer, by receiver
	all        []time.Duration   // the times to the last receiver's answer
	completion []time.Duration   // the times to the last completion
}

// maxSamples is the initial capacity for samples of a run with a duration.
const maxSamples = 1 << 14

func newSamples(receivers, iterations int) *samples {
	n := iterations
	if n == 0 {
		n = maxSamples
	}
	s := &samples{all: make([]time.Duration, 0, n), completion: make([]time.Duration, 0, n)}
	for range receivers {
		s.receiver = append(s.receiver, make([]time.Duration, 0, n))
	}
	return s
}

func newSendLane(p *Params, number, receivers int) *sendLane {
	l := &sendLane{params: p, number: number, received: make([]int, receivers), answered: make([]int, receivers), lost: make([]bool, receivers)}
	l.changed = sync.NewCond(&l.mu)
	return l
}

// start collects completions and answers until ctx ends; fail gets any error.
func (l *sendLane) start(ctx context.Context, wg *sync.WaitGroup, fail func(error)) {
	l.completed = make([]int, len(l.targets))
	context.AfterFunc(ctx, func() { // wakes run
		l.mu.Lock()
		defer l.mu.Unlock()
		l.changed.Broadcast()
	})
	for t, p := range l.targets {
		wg.Go(func() {
			if err := p.collect(ctx, func(n int) { l.complete(t, n) }); ctx.Err() == nil {
				fail(err)
			}
		})
	}
	for i, b := range l.answers {
		wg.Go(func() {
			if err := l.listen(ctx, i, b); ctx.Err() == nil {
				fail(fmt.Errorf("answers of receiver %d: %w", i+1, err))
			}
		})
	}
}

// complete counts n completions of target t.
func (l *sendLane) complete(t, n int) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.probing {
		l.probing = false
		n--
	}
	l.completed[t] += n
	least := l.completed[t]
	for _, c := range l.completed {
		least = min(least, c)
	}
	if least > l.transport && l.params.latency() && !l.params.forwards() {
		l.samples.completion = append(l.samples.completion, now.Sub(l.posted[0]))
	}
	l.transport = least
	if l.params.completes() {
		if l.params.Mode == Group {
			for i := range l.received {
				l.received[i] = l.completed[t]
			}
		} else {
			l.received[t] = l.completed[t]
		}
		l.advance(now)
	}
	l.changed.Broadcast()
}

// listen counts receiver i's answers.
func (l *sendLane) listen(ctx context.Context, i int, b *recvInbox) error {
	for {
		wc, err := b.take(ctx)
		if err != nil {
			return err
		}
		now := time.Now()
		count := int(wc[len(wc)-1].Imm)
		if err := b.post(len(wc)); err != nil {
			return err
		}
		l.mu.Lock()
		if count > l.answered[i] {
			l.answered[i] = count
			l.free = slices.Min(l.answered)
			if l.params.latency() {
				l.samples.receiver[i] = append(l.samples.receiver[i], now.Sub(l.posted[0]))
			}
			if !l.params.completes() {
				l.received[i] = count
				l.advance(now)
			}
		}
		l.changed.Broadcast()
		l.mu.Unlock()
	}
}

// advance records which messages all receivers have. The caller holds mu. Callers may get
// mu in another order than that of their times.
func (l *sendLane) advance(now time.Time) {
	if now.Before(l.lastPosted) {
		now = l.lastPosted
	}
	l.lastPosted = now
	least := slices.Min(l.received)
	if least == l.done {
		return
	}
	l.meter.add(now, least-l.done)
	if l.samples != nil {
		for m := l.done; m < least; m++ {
			l.samples.all = append(l.samples.all, now.Sub(l.posted[m%len(l.posted)]))
		}
	}
	l.done = least
	if !l.params.needsAnswers() {
		l.free = least
	}
}

// prepare resets the lane for a run, while no message is under way.
func (l *sendLane) prepare(m *meter, s *samples, slots int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.meter, l.samples, l.done, l.free, l.transport = m, s, 0, 0, 0
	l.posted = make([]time.Time, slots)
	clear(l.received)
	clear(l.answered)
	clear(l.completed)
	l.requests, l.probeDue = 0, false
	l.ignoreLost()
}

// lose has the lane go on without receiver i.
func (l *sendLane) lose(i int) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost[i] = true
	if l.meter == nil {
		return // no run has begun
	}
	l.ignoreLost()
	if l.params.needsAnswers() {
		l.free = slices.Min(l.answered)
	}
	l.advance(now)
	l.changed.Broadcast()
}

// ignoreLost takes the messages for those that lost receivers have. The caller holds mu.
func (l *sendLane) ignoreLost() {
	for i, lost := range l.lost {
		if lost {
			l.received[i], l.answered[i] = math.MaxInt, math.MaxInt
		}
	}
}

// run sends n messages, or messages until the given time, and returns when all receivers
// have them.
func (l *sendLane) run(ctx context.Context, size, n int, until time.Time) error {
	lay := newLayout(l.params, size)
	depth := min(l.params.Depth, lay.slots)
	var wr endpoint.SendWR
	sent := 0
	for m, last := 0, false; !last; m++ {
		if err := l.wait(ctx, func() bool {
			return m-l.done < depth && m-l.free < lay.slots && (!l.params.latency() || l.transport >= m*lay.chunks)
		}); err != nil {
			return err
		}
		last = m == n-1 || n == 0 && !time.Now().Before(until)
		if l.params.Verify {
			l.fill(&lay, m)
		}
		if l.samples != nil {
			l.mu.Lock()
			l.posted[m%lay.slots] = time.Now()
			l.mu.Unlock()
		}
		for c := range lay.chunks {
			k := m*lay.chunks + c
			lay.request(&wr, l.params, l.mr, k, l.params.write() && l.params.noticed(size, m, last), last && c == lay.chunks-1)
			for _, t := range l.targets {
				wr.RemoteAddr, wr.RKey = t.va+uint64(wr.Local.Offset), t.rkey
				if err := t.post(ctx, &wr); err != nil {
					return fmt.Errorf("post message %d: %w", m, err)
				}
			}
			l.posting()
		}
		sent++
	}
	return l.wait(ctx, func() bool { return l.done == sent && l.free == sent && l.transport == sent*lay.chunks })
}

// fill writes message m's bytes into its slot, whose former message all receivers have.
func (l *sendLane) fill(lay *layout, m int) {
	b := l.mr.Bytes()[m%lay.slots*lay.size:][:lay.size]
	fill(b, pattern(l.params.Seed, l.number, m))
	if l.tamper != nil {
		l.tamper(m, b)
	}
}

// wait returns when ok, which is called with mu held, returns true, or when ctx ends.
func (l *sendLane) wait(ctx context.Context, ok func() bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !ok() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if l.probeDue && !l.probing && l.transport == l.requests {
			if err := l.probe(ctx); err != nil {
				return err
			}
			continue
		}
		l.changed.Wait()
	}
	return nil
}
