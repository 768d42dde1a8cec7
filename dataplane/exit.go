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

// exit is one worker's way to a port that another one transmits for.
type exit struct {
	ring  *spsc.Ring[xsk.Desc]
	to    *worker // the sender
	board *board
	taken atomic.Uint64 // bytes on the link of what the sender has taken; it writes
	// ---- the worker's that hands over
	handed uint64
	seen   uint64 // taken, as it was last
	rate   int64  // as it was on the board last
}

// board is what a port's sender lets the other workers know.
type board struct {
	rate    atomic.Int64 // bit/s; 0: none
	waiting atomic.Int64 // bytes in the queue
}

// entrance is an exit at its other end.
type entrance struct {
	port *port // the sender's
	exit *exit
	left int // entries for which there was no room
}

// exitSize returns how many entries each exit has. Together they have no more than a
// quarter of the UMEM's frames, if it is not tiny, and half of them are filled (look).
func exitSize(cfg *config.Config) int {
	exits := len(cfg.Ports) * (len(cfg.Worker.CPUs) - 1)
	most := max(64, cfg.UMEM.Frames/4/max(1, exits))
	return min(1<<(bits.Len(uint(most))-1), 1024)
}

// remote returns p as a worker has it that does not transmit for it.
func (p *port) remote(size int) *port {
	r := &port{
		name: p.name, ifindex: p.ifindex, mac: p.mac, mtu: p.mtu, vlan: p.vlan, allow: p.allow, multi: p.multi, down: p.down, isolated: p.isolated,
		naks: p.naks, envelopes: p.envelopes, senders: p.senders, neighbours: p.neighbours, sightings: p.sightings,
		exit: &exit{ring: spsc.New[xsk.Desc](size), board: p.board},
		tx:   make([]xsk.Desc, 0, size), txLimit: size / 2,
		queue: newQueue(p.queue.maxBytes, size, 0),
	}
	r.queue.maxFrames = 0 // the exit is queue enough, but for replies
	return r
}

// handOver publishes what was staged for p, as far as the exit has room. p is
// another worker's to send by.
func (w *worker) handOver(p *port) {
	x := p.exit
	if p.down {
		w.drain(p)
	}
	p.tx = p.queue.release(w.now, p.tx, x.ring.Room(x.ring.Size())-len(p.tx))
	for _, d := range p.tx {
		if !x.ring.Put(d) {
			panic("dataplane: more staged than the exit has room for")
		}
		x.handed += uint64(onLink(d))
	}
	p.tx = p.tx[:0]
	if x.ring.Publish() {
		x.to.rouse()
	}
	p.look(w.now)
}

// look finds out what may be staged for p, another worker's to send by: half of the
// exit, or as many frames as one packet of a group needs.
func (p *port) look(now time.Duration) {
	x := p.exit
	size := x.ring.Size()
	free := x.ring.Room(size)
	p.txLimit = max(0, min(free, max(size/2, p.widest)-(size-free)))
	if taken := x.taken.Load(); taken != x.seen || taken == x.handed {
		x.seen, p.moved = taken, now
	}
	if x.rate = x.board.rate.Load(); x.rate == 0 {
		p.queue.maxFrames, p.queue.elsewhere = 0, 0
		return
	}
	// What is in front of the link counts against the bytes that the queue may hold.
	p.queue.elsewhere = int(x.board.waiting.Load()) + int(x.handed-x.taken.Load())
	p.queue.maxFrames = p.txLimit
	p.txLimit = 0
}

// lookOut finds out what may be staged for the ports that other workers send by:
// while this one slept, they have sent.
func (w *worker) lookOut() {
	for _, p := range w.ports {
		if p.exit != nil {
			p.look(w.now)
		}
	}
}

// admit moves what other workers have for w's ports into these, and returns how
// many frames that were.
func (w *worker) admit() (total int) {
	for i := range w.entrances {
		// Another one first each time: none is kept from a queue that is full.
		e := &w.entrances[(i+w.first)%len(w.entrances)]
		n := e.exit.ring.Len(e.exit.ring.Size())
		if n == 0 {
			continue
		}
		total += w.admitFrom(e, n)
	}
	if w.first++; w.first >= len(w.entrances) {
		w.first = 0
	}
	return total
}

func (w *worker) admitFrom(e *entrance, n int) (taken int) {
	p, bytes := e.port, 0
	for taken < n {
		ds := w.moved[:0]
		size := 0
		for more := true; more; {
			d := e.exit.ring.At(taken + len(ds))
			ds, size, more = append(ds, d), size+int(d.Len), !ends(d)
		}
		switch {
		case p.down:
			w.free(ds)
			w.count.drop[DropPortDown]++
		case p.admits(size, len(ds)):
			p.mark(l3(w.umem.Data(ds[0].Addr, ds[0].Len)))
			p.stagePacket(ds)
		case p.queue.rate > 0 && p.queue.len() == 0:
			// Larger than the queue: it got its rate after this was handed over.
			w.free(ds)
			w.refuse(p)
		default:
			e.left = n - taken
			e.took(taken, bytes)
			return taken
		}
		taken += len(ds)
		bytes += linkBytes(size)
	}
	e.left = 0
	e.took(taken, bytes)
	return taken
}

// took gives back the places of so many entries.
func (e *entrance) took(entries, bytes int) {
	if entries > 0 {
		e.exit.ring.Release(entries)
		e.exit.taken.Add(uint64(bytes))
	}
}

// nextEntry returns when w wants to look again at what had no room, where nothing in
// the port's queue makes it do so; ok is false if there is no such thing.
func (w *worker) nextEntry() (at time.Duration, ok bool) {
	for i := range w.entrances {
		if e := &w.entrances[i]; e.left > 0 && e.port.queue.len() == 0 {
			return e.port.retry(w.now), true
		}
	}
	return 0, false
}

// drainExit frees what is in x: its port is gone.
func (w *worker) drainExit(x *exit) {
	n := x.ring.Len(x.ring.Size())
	for i := range n {
		d := x.ring.At(i)
		w.pool.GiveOne(d.Addr)
		if ends(d) {
			w.count.drop[DropPortDown]++
		}
	}
	x.ring.Release(n)
}

// l3 returns the IP packet in a frame that a worker has built; nothing that could
// be marked if it is ARP.
func l3(frame []byte) []byte {
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

// tell lets the other workers know how p's queue is.
func (p *port) tell() {
	if b := p.board; b != nil {
		if n := int64(p.queue.bytes); n != b.waiting.Load() {
			b.waiting.Store(n)
		}
		if p.queue.rate != b.rate.Load() {
			b.rate.Store(p.queue.rate)
		}
	}
}
