// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsk

import "time"

// Queue is what a worker needs of one queue of a port: batches of descriptors in both
// directions. Socket implements it on AF_XDP; xsktest.Queue implements it in memory, for
// tests. xsktest.Conform holds both to the same behaviour, which the comments of Socket
// describe. A Queue is for one goroutine, and its methods allocate nothing.
type Queue interface {
	// Receive takes received packets, whole ones only; their frames then belong to the
	// caller.
	Receive(d []Desc) int
	// Fill gives frames to receive into, FillRoom at most.
	Fill(addrs []uint64) int
	FillRoom() int
	// Send stages whole packets to be sent, TxRoom descriptors at most. Kick has them
	// sent; Complete takes back the frames of those that were.
	Send(d []Desc) int
	TxRoom() int
	Kick() error
	Complete(addrs []uint64) int
	// Consumed returns how many descriptors were taken from the TX ring in total, modulo
	// 2^32, and how many are still there: those need another Kick.
	Consumed() (taken uint32, pending int)
}

// BoundQueue is a Queue with what is needed to report on it and to close it.
type BoundQueue interface {
	Queue
	Number() int    // the number of the queue at its port
	ZeroCopy() bool // frames are not copied between the driver and the Umem
	State() error   // nil, ErrDown or ErrGone
	Stats() (Stats, error)
	Occupancy() Occupancy
	Sizes() Occupancy
	// Close unbinds the queue. Reclaim then takes back frames that had not come back, until
	// it returns 0.
	Close() error
	Reclaim(addrs []uint64) int
}

// Poller waits for packets on the queues of one worker. Wait belongs to the worker; Wake
// is for any goroutine.
type Poller interface {
	// Wait returns when a queue has packets, after Wake (woken is true), or after timeout.
	// A negative timeout means none.
	Wait(timeout time.Duration) (woken bool, err error)
	// Wake ends the Wait that is in progress, or else the next one.
	Wake()
	// SetQueues replaces the queues between two calls of Wait. It belongs to the worker.
	SetQueues(queues []BoundQueue)
	Close() error
}
