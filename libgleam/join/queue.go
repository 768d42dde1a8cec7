// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/endpoint"
)

// ErrNoMore says that no event will come any more.
var ErrNoMore = errors.New("the group is over, and all its events have been read")

// eventSlots is how many events wait for a reader.
const eventSlots = 256

// queue holds events for a reader that may poll a descriptor.
type queue struct {
	fd int // an eventfd: readable while events wait

	mu      sync.Mutex
	events  []endpoint.Event
	ended   bool
	closed  bool
	changed chan struct{} // closed, and replaced, when a reader should look again
}

func newQueue() (*queue, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("make a descriptor to poll for events (eventfd): %w", err)
	}
	return &queue{fd: fd, changed: make(chan struct{})}, nil
}

// signal wakes readers. Callers hold mu.
func (q *queue) signal() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// add queues an event; the oldest gives way if there is no room.
func (q *queue) add(e endpoint.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	if len(q.events) == eventSlots {
		q.events = q.events[1:]
	}
	q.events = append(q.events, e)
	if len(q.events) == 1 {
		_, _ = unix.Write(q.fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // a counter far from full takes it
	}
	q.signal()
}

// end says that nothing more will come.
func (q *queue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	q.signal()
}

// reset forgets everything.
func (q *queue) reset() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.events, q.ended = nil, false
	q.clearSignal()
}

// clearSignal makes the descriptor unreadable.
func (q *queue) clearSignal() {
	var b [8]byte
	_, _ = unix.Read(q.fd, b[:]) // EAGAIN if it was
}

// next takes the next event, for which it waits until ctx ends.
func (q *queue) next(ctx context.Context) (endpoint.Event, error) {
	for {
		q.mu.Lock()
		switch {
		case q.closed:
			q.mu.Unlock()
			return endpoint.Event{}, errClosed
		case len(q.events) > 0:
			e := q.events[0]
			if q.events = q.events[1:]; len(q.events) == 0 {
				q.clearSignal()
			}
			q.mu.Unlock()
			return e, nil
		case q.ended:
			q.mu.Unlock()
			return endpoint.Event{}, ErrNoMore
		}
		changed := q.changed
		q.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return endpoint.Event{}, context.Cause(ctx)
		}
	}
}

func (q *queue) close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
	return unix.Close(q.fd)
}
