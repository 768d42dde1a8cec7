// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"time"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
)

// egress is a port's way out as one worker has it. A packet is staged for the ring behind
// it, which is the TX ring or, where another worker transmits, a remote TX ring. It goes
// to the queue instead if the ring has no room, others are in the queue, or the port has a
// rate. It belongs to the worker; its methods allocate nothing.
//
// Nothing is staged beyond stageLimit, so that the ring takes all that is staged when the
// batch ends. All buffers of a packet go the same way, and packets leave in the order in
// which they came.
type egress struct {
	queue           egressQueue
	ecn             marker
	ring            txRing // unused where another worker transmits
	progress        progress
	staged          []xsk.Desc // the frames for the ring in this batch
	stageLimit      int        // the number of frames that staged may have, as of the last flush
	maxPacketFrames int        // the most frames that one packet of a group has had at this port
	maxPacketCopies int        // the frames of these that are copies of the packet
	fullAt          uint64     // the core call after the last one in which there was no room

	maxDepth      int    // the largest depth so far
	ceMarked      uint64 // data frames that were marked CE here
	deferred      uint64 // times that a copy stayed in a repair store for lack of room here
	refusedFrames uint64 // copies and replies that the queue did not admit
}

// newEgress makes the egress of the worker that transmits for port c by q.
func newEgress(c *config.Port, cfg *config.Config, q xsk.Queue, seed uint64) egress {
	e := egress{
		queue: newEgressQueue(c.Queue, queueFrames(cfg), int64(c.Rate)), ecn: newMarker(c.ECN, seed),
		ring: newTXRing(q, max(cfg.Rings.TX, cfg.Rings.Completion)), staged: make([]xsk.Desc, 0, cfg.Rings.TX),
	}
	if q != nil {
		e.stageLimit = min(q.TxRoom(), e.queue.maxFrames)
	}
	return e
}

// queueFrames returns how many frames of the UMEM may wait in the queue and TX ring of
// each port. All ports together may hold a quarter of the UMEM, so that ports that are
// slow, or do not transmit at all, leave frames for the others to receive and copy into.
// With several workers half of that quarter is for the remote TX rings.
func queueFrames(cfg *config.Config) int {
	share := 4
	if len(cfg.Worker.CPUs) > 1 {
		share = 8
	}
	return cfg.UMEM.Frames / share / len(cfg.Ports)
}

// bypassesQueue reports whether a packet in the given number of buffers that is staged
// now goes to the ring without queueing.
func (e *egress) bypassesQueue(buffers int) bool {
	return e.queue.rate == 0 && e.queue.head == e.queue.tail && len(e.staged)+buffers <= e.stageLimit
}

// stage stages a packet in one buffer, which then belongs to the port. The caller has
// checked admits for data, admitsReply for a reply.
func (e *egress) stage(d xsk.Desc) {
	if e.bypassesQueue(1) {
		e.staged = append(e.staged, d)
		return
	}
	e.enqueue(d)
}

// stagePacket is stage for a data packet in several buffers, which all take the same way.
func (e *egress) stagePacket(ds []xsk.Desc) {
	if e.bypassesQueue(len(ds)) {
		e.staged = append(e.staged, ds...)
		return
	}
	for _, d := range ds {
		e.enqueue(d)
	}
}

func (e *egress) enqueue(d xsk.Desc) {
	e.queue.push(d)
	e.maxDepth = max(e.maxDepth, e.depth())
}

// admits reports whether a data packet of n bytes in the given number of buffers may be
// staged. If not, that copy is dropped as a switch drops at the tail of a full egress
// queue: for that leg alone.
func (e *egress) admits(n, buffers int) bool {
	return e.bypassesQueue(buffers) || e.queue.fits(n, buffers+len(e.staged))
}

// admitsReply reports whether a frame that the switch itself sends may be staged.
func (e *egress) admitsReply() bool { return e.bypassesQueue(1) || e.queue.fitsReply() }

// room returns how many more data packets of n bytes, each in the given number of
// buffers, are admitted.
func (e *egress) room(n, buffers int) int {
	ring := 0
	if e.queue.rate == 0 && e.queue.len() == 0 {
		ring = wholePackets(max(0, e.stageLimit-len(e.staged)), buffers)
	}
	return ring + e.queue.room(n, buffers, len(e.staged)+ring*buffers)
}

// depth returns the number of bytes that wait to leave: in the queue, and in the TX ring
// since before this batch.
func (e *egress) depth() int { return e.queue.bytes + e.ring.bytes }

// release stages what the queue releases at time now, as far as room frames of the ring
// are left, and returns all that is staged; staged is empty then, and reused from the next
// call of stage on.
func (e *egress) release(now time.Duration, room int) []xsk.Desc {
	all := e.queue.release(now, e.staged, room-len(e.staged))
	e.staged = all[:0]
	return all
}

// nextRelease returns when frames of the queue may be released next; ok is false if the
// queue is empty.
func (e *egress) nextRelease(now time.Duration) (at time.Duration, ok bool) {
	switch {
	case e.queue.head == e.queue.tail:
		return 0, false
	case e.stageLimit < e.queue.firstPacketLen():
		return e.progress.retryAt(now), true
	case e.queue.rate == 0 || e.queue.idle:
		return now, true
	}
	return e.queue.linkFreeAt, true
}

// progress is when a port has sent something last, and so when to try again if it does
// not: a completion wakes no worker.
type progress struct {
	last time.Duration // the time when a frame left last, or when there was none to send
}

// Intervals at which a port that makes no progress is retried. They grow with the time
// since the last progress.
const (
	minTXRetry   = 100 * time.Microsecond // the first
	maxTXRetry   = 20 * time.Millisecond
	retryDivisor = 8 // interval = time since the last progress / retryDivisor
)

// retryAt returns when a port that makes no progress at time now is to be retried.
func (p *progress) retryAt(now time.Duration) time.Duration {
	return now + min(max(minTXRetry, (now-p.last)/retryDivisor), maxTXRetry)
}
