// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package xsktest has an xsk.Queue without a kernel, for tests, and Conform, which holds
// any implementation of xsk.Queue to the same behaviour. Tests of the data plane use it;
// the switch does not.
//
// A Queue here has the rings, the limits and the owners of frames that a Socket has. What
// the kernel would do is a method or a field: Arrive receives a frame, Kick takes as many
// descriptors as Budget allows, HoldCompletions keeps what was taken, SetDown and Vanish
// change the interface. Nothing happens by itself, so a test is the same each time.
package xsktest

import (
	"bytes"
	"fmt"

	"github.com/gleam-rdma/gleam/dataplane/xsk"
)

// Config describes a Queue.
type Config struct {
	Number      int // what Queue.Number returns
	Ring        int // entries of each of the four rings
	MultiBuffer bool
}

// minFrame is the least length that can be sent: an Ethernet header.
const minFrame = 14

// headroom is the number of bytes before a received frame, as the kernel leaves them.
const headroom = 256

// Queue is an xsk.BoundQueue whose wire is the test. Like a Socket it belongs to one
// goroutine, the one that its worker runs on.
type Queue struct {
	Budget          int  // how many descriptors a Kick takes; -1: all of them
	Capacity        int  // how many may be taken and not completed, as by a full send buffer; 0: no limit
	HoldCompletions bool // descriptors that are taken complete only by Finish
	Discard         bool // packets that are sent are not recorded for Sent: for benchmarks

	umem *xsk.Umem
	id   xsk.Owner
	cfg  Config

	fill, completion fifo[uint64]
	rx, tx           fifo[xsk.Desc]
	onWire           fifo[uint64] // taken from the TX ring and not completed
	inFlight         int          // sent and not completed: tx, onWire and completion
	taken            uint32
	packet           []byte   // bytes of the packet that was taken in part
	sent             [][]byte // packets that were taken whole

	down, gone, closed bool
	stats              xsk.Stats
}

// New returns a queue on u.
func New(u *xsk.Umem, cfg Config) *Queue {
	id, ok := u.NewOwner()
	if !ok {
		panic("xsktest: too many queues were made on this UMEM")
	}
	q := &Queue{Budget: -1, umem: u, id: id, cfg: cfg}
	q.fill, q.completion = newFIFO[uint64](cfg.Ring), newFIFO[uint64](cfg.Ring)
	q.rx, q.tx, q.onWire = newFIFO[xsk.Desc](cfg.Ring), newFIFO[xsk.Desc](cfg.Ring), newFIFO[uint64](cfg.Ring)
	return q
}

// Arrive has the queue receive frame, in as few buffers as it fits, and reports whether
// there was room. If not, the frame is counted as the kernel counts it.
func (q *Queue) Arrive(frame []byte) bool {
	size := q.umem.MaxReceive()
	buffers := max(1, (len(frame)+size-1)/size)
	switch {
	case q.down || q.gone:
		return false
	case buffers > 1 && !q.cfg.MultiBuffer:
		q.stats.RxDropped++
		return false
	case q.fill.len() < buffers:
		q.stats.RxFillEmpty++
		return false
	case q.rx.room() < buffers:
		q.stats.RxRingFull++
		return false
	}
	for range buffers {
		d := xsk.Desc{Addr: q.fill.pop() + headroom, Options: xsk.PktContd}
		d.Len = uint32(min(size, len(frame)))
		copy(q.umem.Data(d.Addr, d.Len), frame)
		frame = frame[d.Len:]
		if len(frame) == 0 {
			d.Options = 0
		}
		q.rx.push(d)
	}
	return true
}

// Receive implements xsk.Queue.
func (q *Queue) Receive(d []xsk.Desc) (n int) {
	longest := min(xsk.MaxChain, len(d), q.cfg.Ring)
	for n < len(d) && q.rx.len() > 0 {
		k := 1
		for q.rx.at(k-1).Options&xsk.PktContd != 0 {
			k++
		}
		if k > longest {
			for i := range k {
				q.rx.at(i).Options = xsk.Torn
			}
			continue
		}
		if n+k > len(d) {
			break
		}
		for range k {
			d[n] = q.rx.pop()
			q.umem.Move(d[n].Addr, q.id, xsk.OwnedByWorker)
			n++
		}
	}
	return n
}

// FillRoom implements xsk.Queue.
func (q *Queue) FillRoom() int { return q.fill.room() }

// Fill implements xsk.Queue.
func (q *Queue) Fill(addrs []uint64) int {
	n := min(len(addrs), q.fill.room())
	for _, a := range addrs[:n] {
		q.umem.Move(a, xsk.OwnedByWorker, q.id)
		q.fill.push(q.umem.Base(a))
	}
	return n
}

// TxRoom implements xsk.Queue.
func (q *Queue) TxRoom() int { return min(q.tx.room(), q.cfg.Ring-q.inFlight) }

// Send implements xsk.Queue.
func (q *Queue) Send(d []xsk.Desc) int {
	if last := len(d) - 1; last >= 0 && d[last].Options&xsk.PktContd != 0 {
		panic(fmt.Sprintf("xsktest: cannot send %d buffers that end in the middle of a packet", len(d)))
	}
	n := min(len(d), q.TxRoom())
	for n > 0 && d[n-1].Options&xsk.PktContd != 0 {
		n--
	}
	allowed, buffers := uint32(0), 0
	if q.cfg.MultiBuffer {
		allowed = xsk.PktContd
	}
	for _, p := range d[:n] {
		least := uint32(1)
		if buffers == 0 {
			least = minFrame
		}
		buffers++
		if p.Len < least || int(p.Len) > q.umem.Room(p.Addr) || p.Options&^allowed != 0 || buffers > xsk.MaxChain {
			panic(fmt.Sprintf("xsktest: cannot send packet of %d bytes at %#x with options %#x", p.Len, p.Addr, p.Options))
		}
		if p.Options == 0 {
			buffers = 0
		}
		q.umem.Move(p.Addr, xsk.OwnedByWorker, q.id)
		q.tx.push(p)
	}
	q.inFlight += n
	return n
}

// Consumed implements xsk.Queue.
func (q *Queue) Consumed() (taken uint32, pending int) { return q.taken, q.tx.len() }

// Kick implements xsk.Queue.
func (q *Queue) Kick() error {
	if q.tx.len() == 0 {
		return nil
	}
	q.stats.Kicks++
	if err := q.State(); err != nil {
		return err
	}
	if q.transmit() == 0 {
		q.stats.KickStalls++
	}
	return nil
}

// transmit takes descriptors from the TX ring and returns their number.
func (q *Queue) transmit() int {
	n := q.tx.len()
	if q.Budget >= 0 {
		n = min(n, q.Budget)
	}
	if q.Capacity > 0 {
		n = min(n, max(0, q.Capacity-q.onWire.len()))
	}
	for range n {
		d := q.tx.pop()
		if !q.Discard {
			q.record(d)
		}
		q.onWire.push(q.umem.Base(d.Addr))
	}
	q.taken += uint32(n)
	if !q.HoldCompletions {
		q.Finish(-1)
	}
	return n
}

func (q *Queue) record(d xsk.Desc) {
	q.packet = append(q.packet, q.umem.Data(d.Addr, d.Len)...)
	if d.Options&xsk.PktContd == 0 {
		q.sent = append(q.sent, bytes.Clone(q.packet))
		q.packet = q.packet[:0]
	}
}

// Stop has the queue send no more once capacity descriptors are on their way, while its
// interface stays up. GoOn ends that, and completes those.
func (q *Queue) Stop(capacity int) { q.HoldCompletions, q.Capacity = true, capacity }

// GoOn ends Stop.
func (q *Queue) GoOn() {
	q.HoldCompletions, q.Capacity = false, 0
	q.Finish(-1)
}

// Finish completes up to n of the descriptors that were taken from the TX ring, the
// oldest first; all of them if n is -1. It returns their number.
func (q *Queue) Finish(n int) int {
	if n < 0 || n > q.onWire.len() {
		n = q.onWire.len()
	}
	for range n {
		q.completion.push(q.onWire.pop())
	}
	return n
}

// Complete implements xsk.Queue.
func (q *Queue) Complete(addrs []uint64) int {
	n := min(len(addrs), q.completion.len())
	for i := range n {
		addrs[i] = q.completion.pop()
		q.umem.Move(addrs[i], q.id, xsk.OwnedByWorker)
	}
	q.inFlight -= n
	return n
}

// Sent returns the packets that were taken from the TX ring since the last call, in
// order.
func (q *Queue) Sent() [][]byte {
	s := q.sent
	q.sent = nil
	return s
}

// SetDown makes the interface down or up: a queue that is down receives and sends
// nothing.
func (q *Queue) SetDown(down bool) { q.down = down }

// Vanish removes the interface.
func (q *Queue) Vanish() { q.gone = true }

// State implements xsk.BoundQueue.
func (q *Queue) State() error {
	switch {
	case q.gone:
		return xsk.ErrGone
	case q.down:
		return xsk.ErrDown
	}
	return nil
}

// Number implements xsk.BoundQueue.
func (q *Queue) Number() int { return q.cfg.Number }

// ZeroCopy implements xsk.BoundQueue.
func (q *Queue) ZeroCopy() bool { return false }

// Stats implements xsk.BoundQueue.
func (q *Queue) Stats() (xsk.Stats, error) {
	s := q.stats
	s.TxIncomplete = q.inFlight
	return s, nil
}

// Occupancy implements xsk.BoundQueue.
func (q *Queue) Occupancy() xsk.Occupancy {
	if q.closed {
		return xsk.Occupancy{}
	}
	return xsk.Occupancy{RX: q.rx.len(), Fill: q.fill.len(), TX: q.tx.len(), Completion: q.completion.len()}
}

// Sizes implements xsk.BoundQueue.
func (q *Queue) Sizes() xsk.Occupancy {
	return xsk.Occupancy{RX: q.cfg.Ring, Fill: q.cfg.Ring, TX: q.cfg.Ring, Completion: q.cfg.Ring}
}

// Close implements xsk.BoundQueue.
func (q *Queue) Close() error {
	q.closed = true
	return nil
}

// Reclaim implements xsk.BoundQueue.
func (q *Queue) Reclaim(addrs []uint64) int {
	if !q.closed {
		return 0
	}
	return q.umem.Reclaim(q.id, addrs)
}
