// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsk

import "sync/atomic"

// Occupancy is the number of entries in use of each of a socket's rings.
type Occupancy struct {
	RX         int // received packets that Receive has not taken yet
	Fill       int // frames for the kernel to receive into
	TX         int // packets that the kernel has not sent yet
	Completion int // sent frames that Complete has not taken yet
}

// Occupancy reads the rings' indices. Like Receive it is for the goroutine that owns the
// socket.
func (s *Socket) Occupancy() Occupancy {
	if s.fd < 0 {
		return Occupancy{}
	}
	return Occupancy{RX: s.rx.used(), Fill: s.fill.used(), TX: s.tx.used(), Completion: s.completion.used()}
}

// used returns how many entries have been produced and not consumed.
func (r *ring[T]) used() int {
	consumer := atomic.LoadUint32(r.consumer) // first: it cannot overtake a producer read later
	return int(atomic.LoadUint32(r.producer) - consumer)
}

// Number returns the queue that the socket is bound to.
func (s *Socket) Number() int { return s.cfg.Queue }

// Sizes returns the number of entries of each ring.
func (s *Socket) Sizes() Occupancy {
	return Occupancy{RX: s.cfg.RxSize, Fill: s.cfg.FillSize, TX: s.cfg.TxSize, Completion: s.cfg.CompSize}
}
