// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"encoding/binary"
	"math/bits"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/spsc"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/rocev2"
)

// The TX ring of a port has one producer: the worker that transmits for the port. Other
// workers pass it their frames. Each of them has a remote view of the port
// (port.remoteView), without sockets to send by, whose TX ring is a remote TX ring. The
// transmitting worker drains this ring into the port's egress queue, as far as the queue
// admits the frames: nothing is dropped there, and the workers that stage frames notice a
// full queue. If the port has a rate, these workers limit themselves by the state of the
// queue that the transmitting worker publishes (portStatus). Together they may put a
// little more into their rings than the queue takes at once; the rest waits in the rings.

// remoteTX is the ring by which one worker sends by a port that another worker transmits
// for.
type remoteTX struct {
	ring       *spsc.Ring[xsk.Desc]
	txWorker   *worker // the consumer, which transmits for the port
	status     *portStatus
	takenBytes atomic.Uint64 // bytes on the link that txWorker has taken from the ring; it alone writes this
	sentBytes  atomic.Uint64 // bytes of these that the kernel had when it had all of the port
	blocked    atomic.Int32  // entries that the egress queue had no room for; txWorker alone writes this
	// ---- used by the producer only
	handedBytes uint64
	lastTaken   uint64 // takenBytes, as last read
	rate        int64  // status.rate, as last read
}

// portStatus is what the worker that transmits for a port publishes to the others.
type portStatus struct {
	rate        atomic.Int64 // bit/s; 0: no rate
	queuedBytes atomic.Int64 // bytes in the egress queue
}

// remoteTXConsumer is the consumer side of a remote TX ring.
type remoteTXConsumer struct {
	port *port // the port as the consumer has it
	ring *remoteTX
}

// remoteConsumers are the remote TX rings of the ports that a worker transmits for.
type remoteConsumers struct {
	rings  []remoteTXConsumer
	first  int                    // the ring to drain first in the next batch
	packet [xsk.MaxChain]xsk.Desc // scratch: the buffers of one packet
}

// hasNew reports whether a ring has entries beside those that an egress queue had no room
// for.
func (c *remoteConsumers) hasNew() bool {
	for i := range c.rings {
		if r := &c.rings[i]; r.ring.ring.Published() > int(r.ring.blocked.Load()) {
			return true
		}
	}
	return false
}

// nextRetry returns when to try again to move blocked entries, of a port whose egress
// queue is empty and so gives no time itself; ok is false if there are none.
func (c *remoteConsumers) nextRetry(now time.Duration) (at time.Duration, ok bool) {
	for i := range c.rings {
		if r := &c.rings[i]; r.ring.blocked.Load() > 0 && r.port.queue.len() == 0 {
			return r.port.progress.retryAt(now), true
		}
	}
	return 0, false
}

// remoteTXSize returns the number of entries of each remote TX ring. All rings together
// have at most a quarter as many entries as the UMEM has frames, if it is not tiny, and
// producers fill half of a ring (refreshTXLimit).
func remoteTXSize(cfg *config.Config) int {
	exits := len(cfg.Ports) * (len(cfg.Worker.CPUs) - 1)
	most := max(64, cfg.UMEM.Frames/4/max(1, exits))
	return min(1<<(bits.Len(uint(most))-1), 1024)
}

// remoteView returns p as seen by a worker that does not transmit for it.
func (p *port) remoteView(size int) *port {
	r := &port{
		portIdentity: p.portIdentity, linkState: p.linkState, policers: p.policers,
		remoteTX: &remoteTX{ring: spsc.New[xsk.Desc](size), status: p.status},
		egress: egress{
			queue:  newEgressQueue(p.queue.maxBytes, size, 0),
			staged: make([]xsk.Desc, 0, size), stageLimit: size / 2,
		},
	}
	r.queue.maxFrames = 0 // the ring replaces the queue, except for replies
	return r
}

// publishRemote publishes the frames staged for p, as far as the ring has room. Another
// worker transmits for p.
func (w *worker) publishRemote(p *port) {
	x := p.remoteTX
	if p.down {
		w.drainQueue(p)
	}
	for _, d := range p.release(w.now, x.ring.Room(x.ring.Size())) {
		if !x.ring.Put(d) {
			panic("dataplane: more staged than the exit has room for")
		}
		x.handedBytes += uint64(descLinkBytes(d))
	}
	if x.ring.Publish() {
		x.txWorker.wakeIfAsleep()
	}
	p.refreshTXLimit(w.now)
}

// refreshTXLimit computes what may be staged for p, for which another worker transmits:
// half of the ring, or as many frames as one packet of a group needs.
func (p *port) refreshTXLimit(now time.Duration) {
	x := p.remoteTX
	size := x.ring.Size()
	free := x.ring.Room(size)
	p.stageLimit = max(0, min(free, max(size/2, p.maxPacketFrames)-(size-free)))
	if taken := x.takenBytes.Load(); taken != x.lastTaken || taken == x.handedBytes {
		x.lastTaken, p.progress.last = taken, now
	}
	if x.rate = x.status.rate.Load(); x.rate == 0 {
		p.queue.maxFrames, p.queue.remoteBytes = 0, 0
		return
	}
	// Bytes in front of the link count against the bytes that the queue may hold.
	p.queue.remoteBytes = int(x.status.queuedBytes.Load()) + int(x.handedBytes-x.takenBytes.Load())
	p.queue.maxFrames = p.stageLimit
	p.stageLimit = 0
}

// refreshTXLimits refreshes the limits of the ports that other workers transmit for:
// those workers have sent while this one slept. A batch is no longer than that the copies of
// its packets find room in the remote TX rings, where the port itself takes them.
func (w *worker) refreshTXLimits() {
	most, least := cap(w.rx), 1
	for _, p := range w.ports {
		if p.multiBuffer {
			least = xsk.MaxChain
		}
		if p.remoteTX == nil {
			continue
		}
		p.refreshTXLimit(w.now)
		if p.maxPacketCopies > 0 && p.remoteTX.rate == 0 && p.remoteTX.blocked.Load() == 0 {
			most = min(most, p.stageLimit/p.maxPacketCopies)
		}
	}
	w.rx = w.rx[:max(most, least)]
}

// isAhead reports whether a worker that transmits for a port of w is behind with w's frames.
// w then receives nothing: it could not send what it served, and copies would be lost for
// the members behind that port alone. A packet that waits in an RX ring, or finds that full,
// is late or lost for all members alike, as in a switch with one worker.
//
// A port that does not take what its worker has for it keeps nobody waiting
// (remoteTX.blocked). Workers cannot wait for each other for good: one that is ahead goes on
// to transmit for the others, and to run closures.
func (w *worker) isAhead() bool {
	for _, p := range w.ports {
		if x := p.remoteTX; x != nil && x.ring.Published() > p.aheadFrom() && x.blocked.Load() == 0 {
			return true
		}
	}
	return false
}

// aheadFrom returns how many frames in a remote TX ring are too many to serve more: with
// half of the frames that may be staged, or fewer, there is room for one packet of a group,
// and the transmitting worker has enough to do until this one looks again.
func (p *port) aheadFrom() int {
	size := p.remoteTX.ring.Size()
	return min(size/4, max(size/2, p.maxPacketFrames)-p.maxPacketCopies)
}

// waitBehind lets the workers run that w is ahead of.
func (w *worker) waitBehind() {
	pause := unix.NsecToTimespec(int64(minTXRetry / 2))
	_ = unix.Nanosleep(&pause, nil)
}

// drainRemote moves the frames in the remote TX rings of w's ports into the ports' egress
// queues, and returns the number of frames.
func (w *worker) drainRemote() (total int) {
	c := &w.remote
	for i := range c.rings {
		// Start at another ring each time, so that a full queue starves none of them.
		e := &c.rings[(i+c.first)%len(c.rings)]
		n := e.ring.ring.Len(e.ring.ring.Size())
		if n == 0 {
			continue
		}
		total += w.drainRemoteRing(e, n)
	}
	if c.first++; c.first >= len(c.rings) {
		c.first = 0
	}
	return total
}

func (w *worker) drainRemoteRing(e *remoteTXConsumer, n int) (taken int) {
	p, bytes := e.port, 0
	for taken < n {
		ds := w.remote.packet[:0]
		size := 0
		for more := true; more; {
			d := e.ring.ring.At(taken + len(ds))
			ds, size, more = append(ds, d), size+int(d.Len), !isLast(d)
		}
		switch {
		case p.down:
			w.freeFrames(ds)
			w.count.drop[dropPortDown]++
		case w.admitsAfterFlush(p, size, len(ds)):
			p.mark(ipPacket(w.umem.Data(ds[0].Addr, ds[0].Len)))
			p.stagePacket(ds)
		case p.queue.rate > 0 && p.queue.len() == 0:
			// Larger than the queue: the port got its rate after this was enqueued.
			w.freeFrames(ds)
			w.countRefused(p)
		default:
			e.ring.blocked.Store(int32(n - taken))
			e.releaseEntries(taken, bytes)
			return taken
		}
		taken += len(ds)
		bytes += linkBytes(size)
	}
	if e.ring.blocked.Load() != 0 {
		e.ring.blocked.Store(0)
	}
	e.releaseEntries(taken, bytes)
	return taken
}

// noteSent notes what the kernel has of the rings.
func (c *remoteConsumers) noteSent() {
	for i := range c.rings {
		e := &c.rings[i]
		if n := e.ring.takenBytes.Load(); n != e.ring.sentBytes.Load() && e.port.queue.len() == 0 && e.port.ring.kickAt == 0 {
			e.ring.sentBytes.Store(n)
		}
	}
}

// releaseEntries frees the given number of ring entries, which hold bytes on the link.
func (e *remoteTXConsumer) releaseEntries(entries, bytes int) {
	if entries > 0 {
		e.ring.ring.Release(entries)
		e.ring.takenBytes.Add(uint64(bytes))
	}
}

// freeRemote frees the frames in x, whose port has vanished.
func (w *worker) freeRemote(x *remoteTX) {
	n := x.ring.Len(x.ring.Size())
	for i := range n {
		d := x.ring.At(i)
		w.pool.GiveOne(d.Addr)
		if isLast(d) {
			w.count.drop[dropPortDown]++
		}
	}
	x.ring.Release(n)
}

// ipPacket returns the IP packet in a frame that a worker has built, for the CE marker;
// for a frame without one (ARP) it returns notIP, which is never marked.
func ipPacket(frame []byte) []byte {
	at := rocev2.EthernetLen
	kind := binary.BigEndian.Uint16(frame[at-2:])
	if kind == rocev2.EtherTypeVLAN {
		at += rocev2.VLANLen
		kind = binary.BigEndian.Uint16(frame[at-2:])
	}
	if kind != rocev2.EtherTypeIPv4 && kind != rocev2.EtherTypeIPv6 {
		return notIP[:]
	}
	return frame[at:]
}

// notIP is an IPv4 header that is not ECN-capable.
var notIP [rocev2.IPv4Len]byte

// publishStatus publishes the state of p's queue to the other workers.
func (p *port) publishStatus() {
	if b := p.status; b != nil {
		if n := int64(p.queue.bytes); n != b.queuedBytes.Load() {
			b.queuedBytes.Store(n)
		}
		if p.queue.rate != b.rate.Load() {
			b.rate.Store(p.queue.rate)
		}
	}
}
