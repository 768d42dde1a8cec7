// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// disturbance is an operation on the fabric when half of the messages are complete.
type disturbance struct {
	name string
	do   func(context.Context) error
	at   int // messages

	mu      sync.Mutex
	done    int
	ended   chan error // of do, once it has begun
	began   time.Time
	last    time.Time // of a completion
	longest time.Duration
	took    time.Duration // by do
}

// completed notes one more completion at the sender.
func (d *disturbance) completed(ctx context.Context) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if d.done++; d.done > d.at {
		d.longest = max(d.longest, now.Sub(d.last))
	}
	d.last = now
	if d.done == d.at {
		d.began, d.ended = now, make(chan error, 1)
		go func() {
			err := d.do(ctx)
			d.mu.Lock()
			d.took = time.Since(d.began)
			d.mu.Unlock()
			d.ended <- err
		}()
	}
}

// wait waits until the operation has ended.
func (d *disturbance) wait() error {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	ended := d.ended
	d.mu.Unlock()
	if ended == nil {
		return fmt.Errorf("%s: the transfer did not get to its middle", d.name)
	}
	if err := <-ended; err != nil {
		return fmt.Errorf("%s: %w", d.name, err)
	}
	return nil
}

// Disturbance is what an operation in mid-transfer has cost.
type Disturbance struct {
	Name    string  `json:"name"`
	After   int     `json:"after"`    // messages that were complete when it began
	TookMS  float64 `json:"took_ms"`  // the operation itself
	StallMS float64 `json:"stall_ms"` // longest time without a completion from its begin on
}

func (d *disturbance) result() *Disturbance {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	ms := func(t time.Duration) float64 { return float64(t.Microseconds()) / 1000 }
	return &Disturbance{Name: d.name, After: d.at, TookMS: ms(d.took), StallMS: ms(d.longest)}
}
