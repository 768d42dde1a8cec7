// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"sync"
	"time"
)

// pauses measures how long each receiver gets nothing new, by looking at it every millisecond.
type pauses struct {
	mu      sync.Mutex
	longest pause // the longest pause since the last call of next

	stop chan struct{}
	all  sync.WaitGroup
}

// pause is a time without progress at a receiver.
type pause struct {
	receiver string
	lasted   time.Duration
}

// sample is the time between two looks at a receiver.
const sample = time.Millisecond

// watchPauses begins to look at receivers, which have progressed by what accepted returns, up to
// packets.
func watchPauses(names []string, packets uint64, accepted func(i int) uint64) *pauses {
	p := &pauses{stop: make(chan struct{})}
	for i, name := range names {
		p.all.Go(func() { p.watch(name, packets, func() uint64 { return accepted(i) }) })
	}
	return p
}

func (p *pauses) watch(name string, packets uint64, accepted func() uint64) {
	tick := time.NewTicker(sample)
	defer tick.Stop()
	for had, last := uint64(0), time.Now(); had < packets; {
		var now time.Time
		select {
		case <-p.stop:
			return
		case now = <-tick.C:
		}
		has := accepted()
		if has == had {
			continue
		}
		if had > 0 {
			p.note(pause{name, now.Sub(last)})
		}
		had, last = has, now
	}
}

func (p *pauses) note(x pause) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x.lasted > p.longest.lasted {
		p.longest = x
	}
}

// next returns the longest pause that has ended since the last call.
func (p *pauses) next() pause {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.longest
	p.longest = pause{}
	return x
}

// end waits until nothing is looked at any more.
func (p *pauses) end() {
	close(p.stop)
	p.all.Wait()
}
