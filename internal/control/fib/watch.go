// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fib

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// SweepInterval is the time between two sweeps without a notification: what the kernel
// changes silently is found then. With more destinations than SweepRate a sweep takes
// longer.
const SweepInterval = time.Second

// SweepRate is the number of destinations a second that sweeps match.
const SweepRate = 4000

const (
	sweepPause   = 10 * time.Millisecond
	sweepBatch   = int(SweepRate * sweepPause / time.Second)
	resubscribe  = time.Second
	eventsBuffer = 8 << 20 // bytes of the socket's receive buffer
)

// groups are the notifications that are subscribed to.
var groups = []uint{
	unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE,
	unix.RTNLGRP_NEXTHOP, unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV6_RULE,
}

// Watcher keeps a Table as the kernel's FIB is. Its methods may be called from any
// goroutine.
type Watcher struct {
	// Bell has room for one: it rings when Changed has something.
	Bell chan struct{}

	mu     sync.Mutex
	table  *Table
	vrfs   []int // the VRFs whose tables have the routes; 0: that of none
	lost   uint64
	failed error // the error of the last match

	wake     chan struct{} // room for one: the table has something to match
	ns       netns.NsHandle
	matcher  *matcher
	buffer   int
	interval time.Duration // the interval of sweeps; tests change it
	report   func(error)
	events   *nl.NetlinkSocket
}

// NewWatcher subscribes to the notifications of the calling thread's network namespace.
// report gets errors of the subscription, for the operator, and may be nil; matches go on
// meanwhile.
func NewWatcher(report func(error)) (*Watcher, error) { return newWatcher(report, eventsBuffer) }

func newWatcher(report func(error), buffer int) (*Watcher, error) {
	if report == nil {
		report = func(error) {}
	}
	ns, err := netns.Get()
	if err != nil {
		return nil, fmt.Errorf("find the network namespace whose routes to watch: %w", err)
	}
	w := &Watcher{
		Bell: make(chan struct{}, 1), table: NewTable(), wake: make(chan struct{}, 1),
		ns: ns, buffer: buffer, interval: SweepInterval, report: report,
	}
	if w.events, err = w.subscribe(); err == nil {
		if w.matcher, err = newMatcher(ns); err != nil {
			w.events.Close()
		}
	}
	if err != nil {
		ns.Close()
		return nil, err
	}
	return w, nil
}

func (w *Watcher) subscribe() (*nl.NetlinkSocket, error) { return w.subscribeTo(groups) }

func (w *Watcher) subscribeTo(groups []uint) (*nl.NetlinkSocket, error) {
	var s *nl.NetlinkSocket
	if err := inNamespace(w.ns, func() (err error) {
		s, err = nl.Subscribe(unix.NETLINK_ROUTE, groups...)
		return err
	}); err != nil {
		return nil, fmt.Errorf("watch routes by netlink: %w", err)
	}
	// Without CAP_NET_ADMIN the size is at most net.core.rmem_max.
	if s.SetReceiveBufferSize(w.buffer, true) != nil {
		_ = s.SetReceiveBufferSize(w.buffer, false)
	}
	return s, nil
}

// Close frees what New has opened. Run must have returned, if it was called.
func (w *Watcher) Close() {
	w.events.Close()
	w.matcher.close()
	w.ns.Close()
}

// Subscribe adds a destination, or a user of one. Its route is Unmatched until Run has
// asked the kernel.
func (w *Watcher) Subscribe(a netip.Addr) { w.change(func(t *Table) { t.Subscribe(a) }) }

// Unsubscribe removes a user of a destination.
func (w *Watcher) Unsubscribe(a netip.Addr) { w.change(func(t *Table) { t.Unsubscribe(a) }) }

// SetVRFs names the VRFs, by their interfaces, whose tables have the routes; 0 stands for none.
// Without any, routes are those by no VRF.
func (w *Watcher) SetVRFs(vrfs []int) {
	w.mu.Lock()
	same := slices.Equal(w.vrfs, vrfs)
	if w.vrfs = vrfs; !same {
		w.table.Sweep()
	}
	w.mu.Unlock()
	if !same {
		ring(w.wake)
	}
}

// Route returns the route of a destination; false if it is not subscribed.
func (w *Watcher) Route(a netip.Addr) (Route, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.table.Route(a)
}

// Changed returns the destinations whose routes have changed since the last call.
func (w *Watcher) Changed() []netip.Addr {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.table.Changed()
}

// Lost returns how many times notifications were lost, so that all destinations were
// matched again.
func (w *Watcher) Lost() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost
}

// change changes the table, and wakes Run.
func (w *Watcher) change(f func(*Table)) {
	w.mu.Lock()
	f(w.table)
	w.mu.Unlock()
	ring(w.wake)
}

// ring rings a bell, unless it rings already.
func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// Run keeps the table until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.follow(ctx)
	}()
	w.match(ctx)
	<-ended
}

// match has the kernel asked for what the table wants to know: for urgent destinations at
// once, for those of a sweep at SweepRate.
func (w *Watcher) match(ctx context.Context) {
	tick := time.NewTicker(w.interval)
	defer tick.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	var rest time.Time // no sweep before
	for batch := 0; ctx.Err() == nil; {
		resting := time.Now().Before(rest)
		w.mu.Lock()
		urgent := w.table.Urgent()
		a, ok := netip.Addr{}, false
		if urgent || !resting {
			a, ok = w.table.Next()
		}
		w.mu.Unlock()
		if ok {
			w.ask(a)
			if !urgent {
				batch++
			}
			if batch == sweepBatch {
				batch, rest = 0, time.Now().Add(sweepPause)
			}
			continue
		}
		if resting {
			pause.Reset(time.Until(rest))
		}
		select {
		case <-ctx.Done():
		case <-w.wake:
		case <-pause.C:
		case <-tick.C:
			w.change((*Table).Sweep)
		}
	}
}

// ask has the kernel match a destination. Where that fails, the table keeps what it has
// until the next sweep; the operator is told of an error that is not the last one.
func (w *Watcher) ask(a netip.Addr) {
	w.mu.Lock()
	vrfs := w.vrfs
	w.mu.Unlock()
	r, err := w.matcher.best(a, vrfs)
	w.mu.Lock()
	differs := err == nil && w.table.Answer(a, r)
	news := err != nil && (w.failed == nil || errors.Unwrap(w.failed) != errors.Unwrap(err))
	w.failed = err
	w.mu.Unlock()
	if news {
		w.report(err)
	}
	if differs {
		ring(w.Bell)
	}
}

// follow reads notifications until ctx ends, and replaces a socket that breaks.
func (w *Watcher) follow(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { w.current().Close() })
	defer stop()
	for ctx.Err() == nil {
		err := w.read(ctx)
		if ctx.Err() != nil {
			return
		}
		w.report(fmt.Errorf("watch routes by netlink: %w; they are matched every %v meanwhile", err, w.interval))
		w.current().Close()
		for ctx.Err() == nil {
			s, err := w.subscribe()
			if err == nil {
				w.mu.Lock()
				w.events = s
				w.table.Sweep() // changes between the two sockets were missed
				w.mu.Unlock()
				ring(w.wake)
				if ctx.Err() != nil { // AfterFunc may have closed the former one
					s.Close()
				}
				break
			}
			w.report(err)
			select {
			case <-ctx.Done():
			case <-time.After(resubscribe):
			}
		}
	}
}

func (w *Watcher) current() *nl.NetlinkSocket {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.events
}

// read feeds notifications to the table until the socket breaks.
func (w *Watcher) read(ctx context.Context) error {
	s := w.current()
	for ctx.Err() == nil {
		msgs, from, err := s.Receive()
		switch {
		case errors.Is(err, unix.ENOBUFS):
			w.change(func(t *Table) {
				w.lost++
				t.Feed(Event{All: true})
			})
			continue
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case from.Pid != 0:
			continue // not from the kernel
		}
		w.change(func(t *Table) { feed(t, msgs) })
	}
	return nil
}

func feed(t *Table, msgs []syscall.NetlinkMessage) {
	for i := range msgs {
		if e, ok := ParseEvent(msgs[i].Header.Type, msgs[i].Data); ok {
			t.Feed(e)
		}
	}
}
