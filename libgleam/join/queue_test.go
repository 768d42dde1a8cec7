// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/endpoint"
	"github.com/gleam-rdma/gleam/rocev2"
)

// readable polls q's descriptor.
func readable(t *testing.T, q *queue) bool {
	t.Helper()
	p := []unix.PollFd{{Fd: int32(q.fd), Events: unix.POLLIN}}
	if _, err := unix.Poll(p, 0); err != nil {
		t.Fatal(err)
	}
	return p[0].Revents&unix.POLLIN != 0
}

func newTestQueue(t *testing.T) *queue {
	t.Helper()
	q, err := newQueue()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.close() })
	return q
}

// The descriptor is readable exactly while events wait.
func TestQueueDescriptor(t *testing.T) {
	q := newTestQueue(t)
	check := func(when string, want bool) {
		t.Helper()
		if got := readable(t, q); got != want {
			t.Errorf("%s: readable %v", when, got)
		}
	}
	check("empty", false)
	q.add(endpoint.Event{Kind: endpoint.Joined})
	q.add(endpoint.Event{Kind: endpoint.Ended})
	check("two", true)
	if e, err := q.next(t.Context()); err != nil || e.Kind != endpoint.Joined {
		t.Errorf("first: %v %v", e, err)
	}
	check("one", true)
	if e, err := q.next(t.Context()); err != nil || e.Kind != endpoint.Ended {
		t.Errorf("second: %v %v", e, err)
	}
	check("none", false)
	q.add(endpoint.Event{})
	q.reset()
	check("reset", false)
}

// If nobody reads, the newest stay.
func TestQueueOverflow(t *testing.T) {
	q := newTestQueue(t)
	for i := range eventSlots + 10 {
		q.add(endpoint.Event{PSN: rocev2.PSN(i)})
	}
	for i := 10; i < eventSlots+10; i++ {
		if e, err := q.next(t.Context()); err != nil || e.PSN != rocev2.PSN(i) {
			t.Fatalf("event %d: %v %v", i, e, err)
		}
	}
	if readable(t, q) {
		t.Error("readable although all is read")
	}
}

// Readers that wait are woken by events, by the end, and by close.
func TestQueueWakes(t *testing.T) {
	q := newTestQueue(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	results := make(chan error, 3)
	var started sync.WaitGroup
	for range 3 {
		started.Add(1)
		go func() {
			started.Done()
			_, err := q.next(ctx)
			results <- err
		}()
	}
	started.Wait()
	q.add(endpoint.Event{})
	if err := <-results; err != nil {
		t.Error(err)
	}
	q.end()
	for range 2 {
		if err := <-results; !errors.Is(err, ErrNoMore) {
			t.Errorf("after the end: %v", err)
		}
	}
	if err := q.close(); err != nil {
		t.Error(err)
	}
	q.add(endpoint.Event{}) // late: nobody minds
	if _, err := q.next(ctx); !errors.Is(err, endpoint.ErrClosed) {
		t.Errorf("after close: %v", err)
	}
	short, stop := context.WithTimeoutCause(t.Context(), time.Millisecond, errors.New("enough"))
	defer stop()
	if _, err := newTestQueue(t).next(short); err == nil || err.Error() != "enough" {
		t.Errorf("a reader's own end: %v", err)
	}
}
