// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsk

import "sync/atomic"

// Occupancy is how many entries of each of a socket's rings are in use.
type Occupancy struct {
	RX         int // received packets that Receive has yet to take
	Fill       int // frames for the kernel to receive into
	TX         int // packets that the kernel has yet to send
	Completion int // sent frames that Complete has yet to take
}

// Occupancy looks at the rings. Like Receive it is for the goroutine that owns the
// socket.
func (s *Socket) Occupancy() Occupancy {
	if s.fd < 0 {
		return Occupancy{}
	}
	return Occupancy{RX: s.rx.used(), Fill: s.fill.used(), TX: s.tx.used(), Completion: s.completion.used()}
}

// used returns how many entries were produced and not consumed.
func (r *ring[T]) used() int {
	consumer := atomic.LoadUint32(r.consumer) // first: it cannot overtake a producer read later
	return int(atomic.LoadUint32(r.producer) - consumer)
}

// Queue returns the queue that the socket was bound to.
func (s *Socket) Queue() int { return s.cfg.Queue }

// Sizes returns how many entries each ring has.
func (s *Socket) Sizes() Occupancy {
	return Occupancy{RX: s.cfg.RxSize, Fill: s.cfg.FillSize, TX: s.cfg.TxSize, Completion: s.cfg.CompSize}
}
