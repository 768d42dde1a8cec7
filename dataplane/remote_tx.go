// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"encoding/binary"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/spsc"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/rocev2"
)

// A port's TX ring has one producer, so what other workers have for the port they
// hand to that one: its sender. For them the port is one without sockets to send
// by (port.remote), whose TX ring is the exit, a ring that the sender empties into
// the real port's queue: as far as that admits it, so that nothing is dropped
// there, and a full queue is felt by whoever stages. If the port has a rate, the
// others go by what its sender says of the queue (board): together they may put a
// little more into their exits than the queue takes at once, which then waits.

// remoteTX is one worker's way to a port that another one transmits for.
type remoteTX struct {
	ring       *spsc.Ring[xsk.Desc]
	txWorker   *worker // the sender
	status     *portStatus
	takenBytes atomic.Uint64 // bytes on the link of what the sender has taken; it writes
	// ---- the worker's that hands over
	handedBytes uint64
	lastTaken   uint64 // taken, as it was last
	rate        int64  // as it was on the board last
}

// portStatus is what a port's sender lets the other workers know.
type portStatus struct {
	rate        atomic.Int64 // bit/s; 0: none
	queuedBytes atomic.Int64 // bytes in the queue
}

// remoteTXConsumer is an exit at its other end.
type remoteTXConsumer struct {
	port    *port // the sender's
	ring    *remoteTX
	blocked int // entries for which there was no room
}

// remoteTXSize returns how many entries each exit has. Together they have no more than a
// quarter of the UMEM's frames, if it is not tiny, and half of them are filled (look).
func remoteTXSize(cfg *config.Config) int {
	exits := len(cfg.Ports) * (len(cfg.Worker.CPUs) - 1)
	most := max(64, cfg.UMEM.Frames/4/max(1, exits))
	return min(1<<(bits.Len(uint(most))-1), 1024)
}

// remoteView returns p as a worker has it that does not transmit for it.
func (p *port) remoteView(size int) *port {
	r := &port{
		name: p.name, ifindex: p.ifindex, mac: p.mac, mtu: p.mtu, vlan: p.vlan, allow: p.allow, multiBuffer: p.multiBuffer, down: p.down, isolated: p.isolated,
		nakPolicer: p.nakPolicer, envelopePolicer: p.envelopePolicer, addressPolicers: p.addressPolicers, neighbourPolicer: p.neighbourPolicer, sightingPolicer: p.sightingPolicer,
		remoteTX: &remoteTX{ring: spsc.New[xsk.Desc](size), status: p.status},
		tx:       make([]xsk.Desc, 0, size), txLimit: size / 2,
		queue: newEgressQueue(p.queue.maxBytes, size, 0),
	}
	r.queue.maxFrames = 0 // the exit is queue enough, but for replies
	return r
}

// publishRemote publishes what was staged for p, as far as the exit has room. p is
// another worker's to send by.
func (w *worker) publishRemote(p *port) {
	x := p.remoteTX
	if p.down {
		w.drainQueue(p)
	}
	p.tx = p.queue.release(w.now, p.tx, x.ring.Room(x.ring.Size())-len(p.tx))
	for _, d := range p.tx {
		if !x.ring.Put(d) {
			panic("dataplane: more staged than the exit has room for")
		}
		x.handedBytes += uint64(descLinkBytes(d))
	}
	p.tx = p.tx[:0]
	if x.ring.Publish() {
		x.txWorker.wakeIfAsleep()
	}
	p.refreshTXLimit(w.now)
}

// refreshTXLimit finds out what may be staged for p, another worker's to send by: half of the
// exit, or as many frames as one packet of a group needs.
func (p *port) refreshTXLimit(now time.Duration) {
	x := p.remoteTX
	size := x.ring.Size()
	free := x.ring.Room(size)
	p.txLimit = max(0, min(free, max(size/2, p.maxPacketFrames)-(size-free)))
	if taken := x.takenBytes.Load(); taken != x.lastTaken || taken == x.handedBytes {
		x.lastTaken, p.lastProgress = taken, now
	}
	if x.rate = x.status.rate.Load(); x.rate == 0 {
		p.queue.maxFrames, p.queue.remoteBytes = 0, 0
		return
	}
	// What is in front of the link counts against the bytes that the queue may hold.
	p.queue.remoteBytes = int(x.status.queuedBytes.Load()) + int(x.handedBytes-x.takenBytes.Load())
	p.queue.maxFrames = p.txLimit
	p.txLimit = 0
}

// refreshTXLimits finds out what may be staged for the ports that other workers send by:
// while this one slept, they have sent.
func (w *worker) refreshTXLimits() {
	for _, p := range w.ports {
		if p.remoteTX != nil {
			p.refreshTXLimit(w.now)
		}
	}
}

// drainRemote moves what other workers have for w's ports into these, and returns how
// many frames that were.
func (w *worker) drainRemote() (total int) {
	for i := range w.remoteIn {
		// Another one first each time: none is kept from a queue that is full.
		e := &w.remoteIn[(i+w.firstRemote)%len(w.remoteIn)]
		n := e.ring.ring.Len(e.ring.ring.Size())
		if n == 0 {
			continue
		}
		total += w.drainRemoteRing(e, n)
	}
	if w.firstRemote++; w.firstRemote >= len(w.remoteIn) {
		w.firstRemote = 0
	}
	return total
}

func (w *worker) drainRemoteRing(e *remoteTXConsumer, n int) (taken int) {
	p, bytes := e.port, 0
	for taken < n {
		ds := w.remotePacket[:0]
		size := 0
		for more := true; more; {
			d := e.ring.ring.At(taken + len(ds))
			ds, size, more = append(ds, d), size+int(d.Len), !isLast(d)
		}
		switch {
		case p.down:
			w.freeFrames(ds)
			w.count.drop[dropPortDown]++
		case p.admits(size, len(ds)):
			p.mark(ipPacket(w.umem.Data(ds[0].Addr, ds[0].Len)))
			p.stagePacket(ds)
		case p.queue.rate > 0 && p.queue.len() == 0:
			// Larger than the queue: it got its rate after this was handed over.
			w.freeFrames(ds)
			w.countRefused(p)
		default:
			e.blocked = n - taken
			e.releaseEntries(taken, bytes)
			return taken
		}
		taken += len(ds)
		bytes += linkBytes(size)
	}
	e.blocked = 0
	e.releaseEntries(taken, bytes)
	return taken
}

// releaseEntries gives back the places of so many entries.
func (e *remoteTXConsumer) releaseEntries(entries, bytes int) {
	if entries > 0 {
		e.ring.ring.Release(entries)
		e.ring.takenBytes.Add(uint64(bytes))
	}
}

// nextRemoteRetry returns when w wants to look again at what had no room, where nothing in
// the port's queue makes it do so; ok is false if there is no such thing.
func (w *worker) nextRemoteRetry() (at time.Duration, ok bool) {
	for i := range w.remoteIn {
		if e := &w.remoteIn[i]; e.blocked > 0 && e.port.queue.len() == 0 {
			return e.port.retryAt(w.now), true
		}
	}
	return 0, false
}

// freeRemote frees what is in x: its port is gone.
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

// ipPacket returns the IP packet in a frame that a worker has built; nothing that could
// be marked if it is ARP.
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

// publishStatus lets the other workers know how p's queue is.
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
