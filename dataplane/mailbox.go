// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"sync/atomic"

	"github.com/gleam-rdma/gleam/dataplane/xsk"
)

// mailbox is the only way into a worker for other goroutines: closures, which the worker
// runs between two batches, in order.
type mailbox struct {
	closures chan func()
	ended    chan struct{} // closed when the worker has ended
	poller   xsk.Poller    // the poller of the worker, which may sleep in it
	quit     bool          // a closure has told the worker to end
	asleep   atomic.Bool   // the worker sleeps, or is about to
}

// init makes an empty mailbox.
func (m *mailbox) init(p xsk.Poller) {
	m.closures, m.ended, m.poller = make(chan func(), 64), make(chan struct{}), p
}

// do runs f on the worker between two batches and returns when it has run. It
// must not be called from the worker. It returns false if the worker has ended.
func (m *mailbox) do(f func()) bool {
	done := make(chan struct{})
	return m.put(func() { f(); close(done) }) && m.wait(done)
}

// put has f run on the worker, which it wakes. It returns false if the worker has ended.
func (m *mailbox) put(f func()) bool {
	select {
	case m.closures <- f:
	case <-m.ended:
		return false
	}
	m.poller.Wake()
	return true
}

// wait waits for done, or for the worker's end: then it returns false.
func (m *mailbox) wait(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-m.ended:
		return false
	}
}

// next returns a closure that waits; nil if there is none.
func (m *mailbox) next() func() {
	select {
	case f := <-m.closures:
		return f
	default:
		return nil
	}
}

// wakeIfAsleep ends the worker's sleep, if it sleeps. Other workers call it after they
// have published entries for this one.
func (m *mailbox) wakeIfAsleep() {
	if m.asleep.Load() && m.asleep.CompareAndSwap(true, false) {
		m.poller.Wake()
	}
}
