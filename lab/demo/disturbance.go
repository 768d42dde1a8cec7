// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// disturbances are the changes of the fabric during the group's transfer, one after the other.
type disturbances struct {
	say *progress
	do  func(context.Context, *change) error
	// routed waits until all switches have the routes of the changed fabric; nil: they are
	// static.
	routed func(context.Context) error
	pauses *pauses
	before time.Duration // longest pause before the first change

	mu      sync.Mutex
	done    int // completions at the sender
	all     []*disturbance
	waiting chan *disturbance // disturbances whose time has come
	ended   sync.WaitGroup
	err     error // the first one of a change
}

type disturbance struct {
	change
	at     int // messages
	began  time.Time
	took   time.Duration // the time that the change took
	routed time.Duration // the time from its beginning until all switches had their routes; 0: not measured
	pause  pause
}

// routedTimeout is the longest time for the routes to follow a change.
const routedTimeout = 30 * time.Second

// newDisturbances begins to wait for the messages at which something is to happen.
func newDisturbances(ctx context.Context, changes []change, messages int, d *disturbances) *disturbances {
	d.waiting = make(chan *disturbance, len(changes))
	for _, c := range changes {
		d.all = append(d.all, &disturbance{change: c, at: min(max(1, int(c.part*float64(messages))), messages)})
	}
	d.ended.Go(func() {
		for x := range d.waiting {
			d.happen(ctx, x)
		}
	})
	return d
}

// completed notes one more completion at the sender.
func (d *disturbances) completed() {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done++
	for _, x := range d.all {
		if x.at == d.done {
			d.waiting <- x
		}
	}
}

func (d *disturbances) happen(ctx context.Context, x *disturbance) {
	d.attribute()
	x.began = time.Now()
	err := d.do(ctx, &x.change)
	x.took = time.Since(x.began)
	if err != nil {
		d.fail(fmt.Errorf("%v: %w", x.change, err))
		return
	}
	d.say.printf("%v after %s, done in %.0f ms", x.change, plural(x.at, "message"), milliseconds(x.took))
	if d.routed == nil || x.kind == reload || x.kind == restartSwitch {
		return
	}
	d.ended.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, routedTimeout)
		defer cancel()
		if err := d.routed(ctx); err != nil {
			d.fail(err)
			return
		}
		x.routed = time.Since(x.began)
	})
}

// attribute gives the longest pause since the last change to that one.
func (d *disturbances) attribute() {
	p := d.pauses.next()
	for i := len(d.all) - 1; i >= 0; i-- {
		if x := d.all[i]; !x.began.IsZero() {
			x.pause = p
			return
		}
	}
	d.before = p.lasted
}

func (d *disturbances) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil {
		d.err = err
	}
}

// end waits until all that has begun has ended.
func (d *disturbances) end() error {
	if d == nil {
		return nil
	}
	close(d.waiting)
	d.ended.Wait()
	d.pauses.end()
	d.attribute()
	return d.err
}

// begun returns the changes that have begun.
func (d *disturbances) begun() (all []change) {
	if d == nil {
		return nil
	}
	for _, x := range d.all {
		if !x.began.IsZero() {
			all = append(all, x.change)
		}
	}
	return all
}

// Disturbance is what a change in mid-transfer has cost.
type Disturbance struct {
	Name   string  `json:"name"`
	After  int     `json:"after"`   // messages that were complete when it began
	TookMS float64 `json:"took_ms"` // the change itself
	// ResumeMS is the longest time for which a receiver got nothing new, from the change on up
	// to the next one; BeforeMS that before the first change.
	ResumeMS float64 `json:"resume_ms"`
	Receiver string  `json:"receiver"` // the receiver to which that happened
	BeforeMS float64 `json:"before_ms"`
	RoutedMS float64 `json:"routed_ms,omitempty"` // the time until every switch had its new routes, with FRR
}

func (d *disturbances) results() (all []Disturbance) {
	if d == nil {
		return nil
	}
	for _, x := range d.all {
		all = append(all, Disturbance{
			Name: x.change.String(), After: x.at, TookMS: milliseconds(x.took), ResumeMS: milliseconds(x.pause.lasted), Receiver: x.pause.receiver,
			BeforeMS: milliseconds(d.before), RoutedMS: milliseconds(x.routed),
		})
	}
	return all
}

func milliseconds(t time.Duration) float64 { return float64(t.Microseconds()) / 1000 }
