// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"math/bits"
	"time"

	"github.com/gleam-rdma/gleam/dataplane/xsk"
)

// linkOverhead is what a frame occupies on an Ethernet link beside the bytes that AF_XDP
// is given: FCS 4, preamble and SFD 8, interpacket gap 12 (IEEE 802.3 §3.1.1, §4.4.2). A
// port's rate is a rate of the link, so it covers them.
const linkOverhead = 4 + 8 + 12

// Room that a queue reserves for replies (feedback for sources, answers to ARP) when it
// is full of data: a lost ACK costs the source a timeout.
const (
	reservedReplyFrames = 64
	reservedReplyBytes  = 8 << 10
)

// maxCatchUp bounds how far linkFreeAt may lie in the past when the worker returns to a
// queue: what the link would have sent since then is sent at once.
const maxCatchUp = 100 * time.Millisecond

// egressQueue is the software part of a port's egress queue: a FIFO ring of staged
// frames, which move to the TX ring as fast as a link of the given rate would send them,
// or, without a rate, as the TX ring has room. A packet that does not fit is dropped at
// the tail: the caller of push asks fits first. The queue belongs to the worker. Its
// methods allocate nothing.
type egressQueue struct {
	ring         []xsk.Desc // its length is a power of two
	head, tail   uint32     // free-running: the index popped next, and pushed next
	bytes        int        // bytes of the packets in the queue, as linkBytes counts
	maxBytes     int        // the limit for data
	maxFrames    int        // the limit of UMEM frames for data; the ring has at least reservedReplyFrames more
	inTXRing     int        // frames in the TX ring, which count against maxFrames
	remoteBytes  int        // bytes at the transmitting worker, in a remote view, which count against maxBytes
	rate         int64      // bit/s; 0: as fast as the TX ring takes frames
	idle         bool       // the queue was empty after the last release
	linkFreeAt   time.Duration
	linkFraction int64 // fraction of a ns, in units of 1/rate: linkFreeAt is exact to the bit
}

// newEgressQueue makes a queue of at most maxBytes on the link and maxFrames frames of
// data.
func newEgressQueue(maxBytes, maxFrames int, rate int64) egressQueue {
	n := 1 << bits.Len(uint(maxFrames+2*reservedReplyFrames-1))
	return egressQueue{ring: make([]xsk.Desc, n), maxBytes: maxBytes, maxFrames: maxFrames, rate: rate, idle: true}
}

// linkBytes returns the number of bytes that a packet of n bytes occupies on the link.
func linkBytes(n int) int { return n + linkOverhead }

// descLinkBytes returns the contribution of d to its packet's linkBytes.
func descLinkBytes(d xsk.Desc) int {
	if isLast(d) {
		return int(d.Len) + linkOverhead
	}
	return int(d.Len)
}

// isLast reports whether d is the last buffer of its packet.
func isLast(d xsk.Desc) bool { return d.Options&xsk.PktContd == 0 }

// wholePackets returns how many packets, each of the given number of buffers, fit in
// frames.
func wholePackets(frames, buffers int) int {
	if buffers == 1 {
		return frames
	}
	return frames / buffers
}

// len returns the number of UMEM frames in the queue.
func (q *egressQueue) len() int { return int(q.tail - q.head) }

// fits reports whether a data packet of n bytes may be pushed; buffers is the number of
// its buffers plus that of the frames staged for the TX ring.
func (q *egressQueue) fits(n, buffers int) bool {
	return q.len()+q.inTXRing+buffers <= q.maxFrames && q.bytes+q.remoteBytes+linkBytes(n) <= q.maxBytes
}

// fitsReply reports whether a reply may be pushed: replies have some room beyond that for
// data.
func (q *egressQueue) fitsReply() bool {
	return q.len() < q.maxFrames+reservedReplyFrames && q.bytes < q.maxBytes+reservedReplyBytes
}

// room returns how many data packets of n bytes, each in the given number of buffers, fit
// if staged frames are staged for the TX ring. An empty queue has room for one packet of
// any n: the packet may be shorter than n.
func (q *egressQueue) room(n, buffers, staged int) int {
	bytes := q.bytes + q.remoteBytes
	room := max(0, (q.maxBytes-bytes)/linkBytes(n))
	if bytes == 0 {
		room = max(1, room)
	}
	return min(room, wholePackets(max(0, q.maxFrames-q.len()-q.inTXRing-staged), buffers))
}

// push appends a buffer of a packet. The caller has checked that the whole packet fits.
func (q *egressQueue) push(d xsk.Desc) {
	if q.len() == len(q.ring) {
		panic("dataplane: egress queue overrun")
	}
	q.ring[q.tail&uint32(len(q.ring)-1)] = d
	q.tail++
	q.bytes += descLinkBytes(d)
}

// pop removes and returns the first buffer. The queue must not be empty.
func (q *egressQueue) pop() xsk.Desc {
	d := q.ring[q.head&uint32(len(q.ring)-1)]
	q.head++
	q.bytes -= descLinkBytes(d)
	return d
}

// firstPacketLen returns how many buffers the first packet has. The queue must hold all
// of it.
func (q *egressQueue) firstPacketLen() int {
	n := 1
	for at := q.head; !isLast(q.ring[at&uint32(len(q.ring)-1)]); at++ {
		n++
	}
	return n
}

// release appends to tx the buffers of the packets that are due by now, at most room
// buffers, and returns tx. A packet is due when the link has sent the packet before it.
func (q *egressQueue) release(now time.Duration, tx []xsk.Desc, room int) []xsk.Desc {
	if q.head == q.tail {
		return tx
	}
	least := now - maxCatchUp
	if q.idle {
		least = now // the link had nothing to send
	}
	if q.linkFreeAt < least {
		q.linkFreeAt, q.linkFraction = least, 0
	}
	for room > 0 && q.head != q.tail && (q.rate == 0 || q.linkFreeAt <= now) {
		n := q.firstPacketLen()
		if room -= n; room < 0 {
			break
		}
		for range n {
			d := q.pop()
			q.charge(descLinkBytes(d))
			tx = append(tx, d)
		}
	}
	q.idle = q.head == q.tail
	return tx
}

// charge advances linkFreeAt by the time that the link takes for n bytes.
func (q *egressQueue) charge(n int) {
	if q.rate == 0 {
		return
	}
	t := int64(n)*8*int64(time.Second) + q.linkFraction
	q.linkFreeAt += time.Duration(t / q.rate)
	q.linkFraction = t % q.rate
}

// setRate changes the rate from the next frame on; 0 means no limit. The frame that is on
// the link ends at the time computed before.
func (q *egressQueue) setRate(rate int64) {
	q.rate, q.linkFraction = rate, 0
}
