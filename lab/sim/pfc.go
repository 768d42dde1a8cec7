// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/mcast"
)

// Priority flow control. A port that may be paused needs a queue, and an event at the end of each
// packet: two events for a packet and link, where one is enough without.

// waiting is the queue of a port, and what its node holds of the packets that came by it.
type waiting struct {
	queue   []queued
	first   int    // the index of the first one of queue
	length  Time   // the time of the packets in queue
	sending bool   // a portTimer is there for the end of the packet that is sent
	held    uint32 // holding.number of the packet that is sent, plus 1

	paused   bool
	pausedAt Time

	bytes int64 // bytes of the packets that came by this port and that the node holds
	xoff  bool  // the other end has been told to pause
}

// queued is a packet in a queue.
type queued struct {
	e    event
	held uint32
}

// holding is a packet that a switch holds, until its last copy has left.
type holding struct {
	port   uint32 // the port by which it came
	bytes  int64
	copies int32
}

// ingress is where the packet that is served came from.
type ingress struct {
	port  uint32 // plus 1; 0: it was not received, or does not count
	frame mcast.Handle
	held  uint32 // its number in held, plus 1; 0: no copy of it waits
}

func (i *ingress) set(port uint32) { *i = ingress{port: port + 1} }
func (i *ingress) reset()          { *i = ingress{} }

// busy reports whether a port cannot send another packet now.
func (w *waiting) busy() bool { return w.sending || w.paused || w.first < len(w.queue) }

// enqueue adds a packet to the queue of port n.
func (p *Partition) enqueue(n uint32, e *event, length Time) {
	w := p.s.ports[n].wait
	p.s.ports[n].changes(p.now)
	w.queue = append(w.queue, queued{*e, p.hold(e)})
	w.length += length
	p.sendNext(n)
}

// hold counts a copy of the packet that is served against the port by which it came. It
// returns its number in held, plus 1.
func (p *Partition) hold(e *event) uint32 {
	if p.came.port == 0 {
		return 0
	}
	if p.came.held == 0 {
		in := p.came.port - 1
		bytes := e.wireBytes()
		p.came.held = p.held.add(holding{port: in, bytes: bytes}) + 1
		w := p.s.ports[in].wait
		if w.bytes += bytes; w.bytes > p.s.cfg.PFC.XOff && !w.xoff {
			w.xoff = true
			p.sendPause(in, 1)
		}
	}
	p.held.values[p.came.held-1].copies++
	return p.came.held
}

// release is called when a copy has left.
func (p *Partition) release(held uint32) {
	if held == 0 {
		return
	}
	h := &p.held.values[held-1]
	if h.copies--; h.copies > 0 {
		return
	}
	x := p.held.take(held - 1)
	w := p.s.ports[x.port].wait
	if w.bytes -= x.bytes; w.xoff && w.bytes <= p.s.cfg.PFC.XOn {
		w.xoff = false
		p.sendPause(x.port, 0)
	}
}

// sendPause tells the other end of a port's link to pause, or to go on. The frame goes before all
// that waits.
func (p *Partition) sendPause(n, on uint32) {
	o := &p.s.ports[n]
	p.transmitOn(o, &event{kind: pause, aux: on}, pauseBytes, o.timeOf(pauseBytes))
	if !o.wait.sending {
		o.wait.sending = true
		p.portTimerAt(n, o.freeAt)
	}
}

// pauseArrived pauses the port at which a frame has arrived, or lets it go on.
func (p *Partition) pauseArrived(e *event) {
	o := &p.s.ports[e.in]
	w := o.wait
	switch on := e.aux != 0; {
	case on && !w.paused:
		o.changes(p.now)
		w.paused, w.pausedAt = true, p.now
		o.stats.Pauses++
	case !on && w.paused:
		o.changes(p.now)
		w.paused = false
		o.stats.Paused += p.now - w.pausedAt
		p.sendNext(e.in)
		p.hostMayTransmit(e.in)
	}
}

// sendNext sends the next packet in the queue of port n, if it may send one.
func (p *Partition) sendNext(n uint32) {
	o := &p.s.ports[n]
	w := o.wait
	if w.sending || w.paused || w.first == len(w.queue) {
		return
	}
	x := &w.queue[w.first]
	if w.first++; w.first == len(w.queue) {
		w.first = 0
	}
	bytes := x.e.wireBytes()
	length := o.timeOf(bytes)
	o.changes(p.now)
	w.length -= length
	w.sending, w.held = true, x.held
	p.transmitOn(o, &x.e, bytes, length)
	if w.first == 0 {
		w.queue = w.queue[:0]
	} else if 2*w.first > cap(w.queue) {
		w.queue = w.queue[:copy(w.queue, w.queue[w.first:])]
		w.first = 0
	}
	p.portTimerAt(n, o.freeAt)
}

func (p *Partition) portTimerAt(n uint32, at Time) {
	p.queue.push(&event{at: at, in: p.s.portTimerOf(n), dst: n, kind: portTimer})
}

// portTimer is called when a port has sent a packet.
func (p *Partition) portTimer(n uint32) {
	o := &p.s.ports[n]
	if o.freeAt > p.now { // a frame of PFC has followed
		p.portTimerAt(n, o.freeAt)
		return
	}
	w := o.wait
	held := w.held
	w.sending, w.held = false, 0
	p.release(held)
	p.sendNext(n)
	p.hostMayTransmit(n)
}

// hostMayTransmit is called when a port may be free, which may be that of a host.
func (p *Partition) hostMayTransmit(n uint32) {
	if node := p.s.ports[n].node; int(node) < p.s.cfg.Topology.Hosts {
		p.transmit(topology.Node(node), &p.s.hosts[node])
	}
}
