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
	bytes        int        // of the packets in the queue, as linkBytes counts
	maxBytes     int        // the limit for data
	maxFrames    int        // the limit of UMEM frames for data; the ring has at least reservedReplyFrames more
	inTXRing     int        // frames in the TX ring, which count against maxFrames
	remoteBytes  int        // in a remote view: bytes at the transmitting worker, which count against maxBytes
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

// bypassesQueue reports whether a packet in the given number of buffers that is staged
// for p now goes to the TX ring without queueing.
func (p *port) bypassesQueue(buffers int) bool {
	return p.queue.rate == 0 && p.queue.head == p.queue.tail && len(p.tx)+buffers <= p.txLimit
}

// stage stages a packet in one buffer for p, which then owns the buffer. The caller has
// checked admits for data, admitsReply for a reply.
func (p *port) stage(d xsk.Desc) {
	if p.bypassesQueue(1) {
		p.tx = append(p.tx, d)
		return
	}
	p.enqueue(d)
}

// stagePacket is stage for a data packet in several buffers, which all take the same way.
func (p *port) stagePacket(ds []xsk.Desc) {
	if p.bypassesQueue(len(ds)) {
		p.tx = append(p.tx, ds...)
		return
	}
	for _, d := range ds {
		p.enqueue(d)
	}
}

func (p *port) enqueue(d xsk.Desc) {
	p.queue.push(d)
	p.maxDepth = max(p.maxDepth, p.depth())
}

// admits reports whether a data packet of n bytes in the given number of buffers may be
// staged. If not, that copy is dropped as a switch drops at the tail of a full egress
// queue: for that leg alone.
func (p *port) admits(n, buffers int) bool {
	return p.bypassesQueue(buffers) || p.queue.fits(n, buffers+len(p.tx))
}

// admitsReply reports whether a frame that the switch itself sends may be staged.
func (p *port) admitsReply() bool { return p.bypassesQueue(1) || p.queue.fitsReply() }

// room returns how many more data packets of n bytes, each in the given number of
// buffers, p admits.
func (p *port) room(n, buffers int) int {
	ring := 0
	if p.queue.rate == 0 && p.queue.len() == 0 {
		ring = wholePackets(max(0, p.txLimit-len(p.tx)), buffers)
	}
	return ring + p.queue.room(n, buffers, len(p.tx)+ring*buffers)
}

// staged reports whether a frame waits for the end of the batch.
func (p *port) staged() bool {
	return !p.vanished && (len(p.tx) > 0 || p.remoteTX != nil && p.remoteTX.ring.Unpublished() > 0)
}

// depth returns the number of bytes that wait to leave by p: in the queue, and in the TX
// ring since before this batch.
func (p *port) depth() int { return p.queue.bytes + p.txBytes }

// halfEmptyAt returns when p's queue, which is full, will have sent half of what it may
// hold; without a rate, when to try again.
func (p *port) halfEmptyAt(now time.Duration) time.Duration {
	q, rate, from := &p.queue, p.queue.rate, max(now, p.queue.linkFreeAt)
	if p.remoteTX != nil {
		rate, from = p.remoteTX.rate, now
	}
	at := p.retryAt(now)
	if rate == 0 {
		return at
	}
	more := max(0, q.bytes+q.remoteBytes-q.maxBytes/2)
	return max(at, from+time.Duration(int64(more)*8*int64(time.Second)/rate))
}

// nextRelease returns when frames of p's queue may be released next; ok is false if the
// queue is empty.
func (p *port) nextRelease(now time.Duration) (at time.Duration, ok bool) {
	switch {
	case p.queue.head == p.queue.tail || p.vanished:
		return 0, false
	case p.txLimit < p.queue.firstPacketLen():
		return p.retryAt(now), true
	case p.queue.rate == 0 || p.queue.idle:
		return now, true
	}
	return p.queue.linkFreeAt, true
}

// send passes the staged frames, and those that the queue releases at time now, to p's
// socket and records their lengths. It returns the frames that the socket did not take.
func (p *port) send(now time.Duration) (left []xsk.Desc) {
	p.tx = p.queue.release(now, p.tx, p.txLimit-len(p.tx))
	if len(p.tx) == 0 {
		return nil
	}
	n := p.rxSockets[0].Send(p.tx)
	for _, d := range p.tx[:n] {
		b := descLinkBytes(d)
		if isLast(d) {
			p.txFrames++
		}
		p.sentBytes[p.sentTail&uint32(len(p.sentBytes)-1)] = uint16(b)
		p.sentTail++
		p.txBytes += b
	}
	left = p.tx[n:]
	p.tx = p.tx[:0]
	return left
}

// txRingFrames returns how many frames are in p's TX ring.
func (p *port) txRingFrames() int { return int(p.sentTail - p.sentHead) }

// completed records that n frames have left. Frames complete in the order in which they
// were sent, or nearly so; txBytes is exact again when all have completed.
func (p *port) completed(n int) {
	for range n {
		p.txBytes -= int(p.sentBytes[p.sentHead&uint32(len(p.sentBytes)-1)])
		p.sentHead++
	}
}

// countRefused counts a frame that p's queue did not admit.
func (w *worker) countRefused(p *port) {
	p.refusedFrames++
	w.count.drop[dropQueueFull]++
}
