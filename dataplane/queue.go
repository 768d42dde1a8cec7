// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"math/bits"
	"time"

	"github.com/gleam-rdma/gleam/dataplane/xsk"
)

// linkOverhead is what a frame takes on an Ethernet link beside the bytes that
// AF_XDP is given: FCS 4, preamble and SFD 8, gap between packets 12
// (IEEE 802.3 §3.1.1, §4.4.2). A rate is that of the link, so it covers them.
const linkOverhead = 4 + 8 + 12

// What a queue keeps for replies (feedback for sources, answers to ARP) when it
// is full of data: an ACK that is lost costs the source a timeout.
const (
	reservedReplyFrames = 64
	reservedReplyBytes  = 8 << 10
)

// maxCatchUp is how far behind the link's clock a queue may be when the worker
// comes back to it: what the link would have sent meanwhile is sent at once.
const maxCatchUp = 100 * time.Millisecond

// egressQueue is the software part of a port's egress queue: a first-in-first-out
// ring of staged frames, which leave for the TX ring as fast as a link of the
// given rate would take them, or, without a rate, as the TX ring has room. What
// does not fit is dropped at the tail, by whoever asks fits first. It belongs to
// the worker. Its methods allocate nothing.
type egressQueue struct {
	ring         []xsk.Desc // a power of two long
	head, tail   uint32     // free-running: taken next, put next
	bytes        int        // of the packets in it, as linkBytes counts
	maxBytes     int        // of data
	maxFrames    int        // of the UMEM, with data; reservedReplyFrames fewer than the ring has at least
	inTXRing     int        // frames in the TX ring, which count against maxFrames
	remoteBytes  int        // bytes beside these that count against maxBytes: of a port that another worker sends by
	rate         int64      // bit/s; 0: as fast as the TX ring takes them
	idle         bool       // nothing was left at the last release
	linkFreeAt   time.Duration
	linkFraction int64 // of a ns, in 1/rate: free is exact to the bit
}

// newEgressQueue makes a queue of at most so many bytes on the link and frames.
func newEgressQueue(maxBytes, maxFrames int, rate int64) egressQueue {
	n := 1 << bits.Len(uint(maxFrames+2*reservedReplyFrames-1))
	return egressQueue{ring: make([]xsk.Desc, n), maxBytes: maxBytes, maxFrames: maxFrames, rate: rate, idle: true}
}

// linkBytes is what a packet of n bytes takes on the link.
func linkBytes(n int) int { return n + linkOverhead }

// descLinkBytes is what d contributes to its packet's linkBytes.
func descLinkBytes(d xsk.Desc) int {
	if isLast(d) {
		return int(d.Len) + linkOverhead
	}
	return int(d.Len)
}

// isLast reports whether a packet ends with d.
func isLast(d xsk.Desc) bool { return d.Options&xsk.PktContd == 0 }

// wholePackets returns how many packets of so many buffers have room where frames have.
func wholePackets(frames, buffers int) int {
	if buffers == 1 {
		return frames
	}
	return frames / buffers
}

// len returns how many frames of the UMEM wait.
func (q *egressQueue) len() int { return int(q.tail - q.head) }

// fits reports whether a data packet of n bytes may be pushed, if it and what is staged
// for the TX ring have so many buffers.
func (q *egressQueue) fits(n, buffers int) bool {
	return q.len()+q.inTXRing+buffers <= q.maxFrames && q.bytes+q.remoteBytes+linkBytes(n) <= q.maxBytes
}

// fitsReply reports whether a reply may be pushed: there is some room beyond
// that for data.
func (q *egressQueue) fitsReply() bool {
	return q.len() < q.maxFrames+reservedReplyFrames && q.bytes < q.maxBytes+reservedReplyBytes
}

// room returns how many data packets of n bytes in so many buffers fit, if so many
// frames are staged for the TX ring. One that is longer than an empty queue fits it
// as far as room can tell: its bytes may be fewer than n.
func (q *egressQueue) room(n, buffers, staged int) int {
	bytes := q.bytes + q.remoteBytes
	room := max(0, (q.maxBytes-bytes)/linkBytes(n))
	if bytes == 0 {
		room = max(1, room)
	}
	return min(room, wholePackets(max(0, q.maxFrames-q.len()-q.inTXRing-staged), buffers))
}

// push puts a packet, or the next buffer of one, at the end. Whether all of it fits
// has been asked.
func (q *egressQueue) push(d xsk.Desc) {
	if q.len() == len(q.ring) {
		panic("dataplane: egress queue overrun")
	}
	q.ring[q.tail&uint32(len(q.ring)-1)] = d
	q.tail++
	q.bytes += descLinkBytes(d)
}

// pop takes the first buffer. There is one.
func (q *egressQueue) pop() xsk.Desc {
	d := q.ring[q.head&uint32(len(q.ring)-1)]
	q.head++
	q.bytes -= descLinkBytes(d)
	return d
}

// firstPacketLen returns how many buffers the first packet has. There is one, and all of it.
func (q *egressQueue) firstPacketLen() int {
	n := 1
	for at := q.head; !isLast(q.ring[at&uint32(len(q.ring)-1)]); at++ {
		n++
	}
	return n
}

// release appends to tx the buffers of the packets whose turn has come by now, at
// most room, and returns it. A packet's turn comes when the link has sent the one
// before it.
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

// charge moves free by the time that the link takes for n bytes.
func (q *egressQueue) charge(n int) {
	if q.rate == 0 {
		return
	}
	t := int64(n)*8*int64(time.Second) + q.linkFraction
	q.linkFreeAt += time.Duration(t / q.rate)
	q.linkFraction = t % q.rate
}

// setRate changes the rate from the next frame on; 0: no limit. The one that is
// on the link now ends when it was to end.
func (q *egressQueue) setRate(rate int64) {
	q.rate, q.linkFraction = rate, 0
}

// bypassesQueue reports whether a packet in so many buffers that is staged for p now need
// not queue.
func (p *port) bypassesQueue(buffers int) bool {
	return p.queue.rate == 0 && p.queue.head == p.queue.tail && len(p.tx)+buffers <= p.txLimit
}

// stage puts a packet in one buffer, which becomes the port's, at the end of what p
// sends. For data, admits has been asked, for a reply admitsReply.
func (p *port) stage(d xsk.Desc) {
	if p.bypassesQueue(1) {
		p.tx = append(p.tx, d)
		return
	}
	p.enqueue(d)
}

// stagePacket is stage for a data packet in several buffers. They take the same way.
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

// admits reports whether a data packet of n bytes in so many buffers may be staged.
// If not, that copy is dropped as a switch drops at the tail of a full egress queue:
// for that leg alone.
func (p *port) admits(n, buffers int) bool {
	return p.bypassesQueue(buffers) || p.queue.fits(n, buffers+len(p.tx))
}

// admitsReply reports whether a frame of the switch's own may be staged.
func (p *port) admitsReply() bool { return p.bypassesQueue(1) || p.queue.fitsReply() }

// room returns how many more data packets of n bytes in so many buffers p can take.
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

// depth returns how many bytes wait to leave by p: in the queue, and in the TX
// ring since before this batch.
func (p *port) depth() int { return p.queue.bytes + p.txBytes }

// halfEmptyAt returns when p's queue, which is full, will have sent half of what it
// may hold; where that cannot be told, when to look again.
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

// nextRelease returns when p's queue wants to be looked at again; ok is false if
// it is empty.
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

// send hands p's socket what is staged and what the queue releases at time now,
// and takes note of its length. It returns what the socket did not take.
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

// completed takes note that n frames have left. They complete in the order in
// which they were sent, or nearly so, and what is still on its way is known
// again exactly when all have.
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
