// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/test/xsktest"
)

// A closure wakes the worker, and do returns when it has run; the closures of one
// goroutine run in order. When the worker has ended, do says so and does not wait.
func TestMailbox(t *testing.T) {
	var m mailbox
	m.init(xsktest.NewPoller())
	var ran []int
	done := make(chan bool)
	go func() {
		for i := range 3 {
			if !m.do(func() { ran = append(ran, i) }) {
				t.Error("the worker has not ended")
			}
		}
		done <- true
	}()
	for len(ran) < 3 {
		if woken, err := m.poller.Wait(5 * time.Second); !woken || err != nil {
			t.Fatalf("not woken: %v", err)
		}
		for f := m.next(); f != nil; f = m.next() {
			f()
		}
	}
	<-done
	if ran[0] != 0 || ran[1] != 1 || ran[2] != 2 {
		t.Errorf("ran %v", ran)
	}

	go func() { done <- m.do(func() {}) }() // accepted, and never run
	for len(m.closures) == 0 {
		time.Sleep(time.Millisecond)
	}
	close(m.ended)
	if <-done {
		t.Error("said to have run, by a worker that has ended")
	}
	for range cap(m.closures) {
		if m.do(func() {}) {
			t.Fatal("said to have run, by a worker that has ended")
		}
	}
}

// Only a worker that sleeps is woken, and only once.
func TestWakeIfAsleep(t *testing.T) {
	var m mailbox
	m.init(xsktest.NewPoller())
	woken := func() bool {
		w, _ := m.poller.Wait(0)
		return w
	}
	if m.wakeIfAsleep(); woken() {
		t.Error("a worker that does not sleep is woken")
	}
	m.asleep.Store(true)
	if m.wakeIfAsleep(); !woken() || m.asleep.Load() {
		t.Error("a worker that sleeps is not woken")
	}
	if m.wakeIfAsleep(); woken() {
		t.Error("woken twice")
	}
}
