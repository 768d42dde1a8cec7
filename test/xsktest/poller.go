// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsktest

import (
	"time"

	"github.com/gleam-rdma/gleam/dataplane/xsk"
)

// Poller is the xsk.Poller of Queues.
type Poller struct {
	queues []*Queue
	wake   chan struct{}
}

// NewPoller returns a Poller for queues.
func NewPoller(queues ...*Queue) *Poller {
	return &Poller{queues: queues, wake: make(chan struct{}, 1)}
}

// SetQueues implements xsk.Poller.
func (p *Poller) SetQueues(queues []xsk.BoundQueue) {
	p.queues = nil
	for _, q := range queues {
		p.queues = append(p.queues, q.(*Queue))
	}
}

// Wait implements xsk.Poller. As with sockets, it has descriptors sent that a Kick left in
// the TX rings. A frame that arrives while Wait waits does not end it, since a Queue
// belongs to the goroutine that waits.
func (p *Poller) Wait(timeout time.Duration) (woken bool, err error) {
	for _, q := range p.queues {
		if q.closed || q.State() != nil {
			continue
		}
		q.transmit()
		if q.rx.len() > 0 {
			timeout = 0
		}
	}
	var end <-chan time.Time
	switch {
	case timeout == 0:
		select {
		case <-p.wake:
			return true, nil
		default:
			return false, nil
		}
	case timeout > 0:
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		end = timer.C
	}
	select {
	case <-p.wake:
		return true, nil
	case <-end:
		return false, nil
	}
}

// Wake implements xsk.Poller.
func (p *Poller) Wake() {
	select {
	case p.wake <- struct{}{}:
	default: // a wakeup is pending already
	}
}

// Close implements xsk.Poller.
func (p *Poller) Close() error { return nil }
