// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"time"

	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/lab/sim/workload"
	"github.com/gleam-rdma/gleam/mcast"
)

// Partition is a part of the network that one goroutine at a time runs.
type Partition struct {
	s     *Simulation
	index int32
	queue *queue
	now   Time
	sent  []outbox // boxes by partition: what was sent to it since it collected

	routes    *topology.Routes
	downPorts int
	taps      bool // true: a port has a tap

	conns   []*conn
	memory  *rc.Memory // the memory that WRITEs go to
	key     uint32     // the key of memory
	byEnds  connTable
	flows   pool[workload.Flow] // flows that begin later
	reports pool[mcast.Report]  // reports on their way
	frames  pool[frame]         // frames that a switch has
	held    pool[holding]       // PFC: packets that switches hold
	came    ingress             // PFC: of the packet that is served
	emitted []workload.Flow     // flows from the program, in the event that is served
	emit    func(workload.Flow)

	qpOut   rc.Output
	coreOut mcast.Output
	refused []mcast.LegID // legs to which a copy of coreOut was refused
	serving *groupSwitch  // the switch that is served

	result  Result
	touched uint64 // a sum that prefetch adds to

	ahead    Time   // the time from now to that at which packets are sent, of those of a train
	dropped  uint32 // a bit for each packet that the last call of send has dropped
	late     bool   // the queue pair is given a packet of a train after its time
	carriage carriage
}

// outbox is what was sent from one partition to another.
type outbox struct {
	events  []event
	reports []mcast.Report // reports of the events of kind report, in their order
}

// Next returns the time of the first event; false if there is none.
func (p *Partition) Next() (Time, bool) { return p.queue.peek() }

// Served returns the number of events that have been served.
func (p *Partition) Served() uint64 { return p.result.Events }

// Waiting returns the number of events to come.
func (p *Partition) Waiting() int { return p.queue.n }

// Run serves the events before until. Whatever other partitions send must have been
// collected up to then.
func (p *Partition) Run(until Time) { p.RunEvents(until, math.MaxInt) }

// RunEvents is Run that ends after most events.
func (p *Partition) RunEvents(until Time, most int) {
	var e event
	for n := 0; n < most && p.queue.pop(until, &e); n++ {
		if (p.queue.next-1)%prefetchBatch == 0 {
			p.prefetch()
		}
		p.now = e.at
		p.serve(&e)
		if len(p.emitted) > 0 {
			p.startEmitted()
		}
	}
}

// Collect takes over what other partitions have sent to p. None of them runs meanwhile.
func (p *Partition) Collect() {
	for i := range p.s.partitions {
		b := &p.s.partitions[i].sent[p.index]
		reports := b.reports
		for k := range b.events {
			e := &b.events[k]
			if e.kind == report {
				e.aux = p.reports.add(reports[0])
				reports = reports[1:]
			}
			p.queue.push(e)
		}
		b.events, b.reports = b.events[:0], b.reports[:0]
	}
}

// serve serves one event.
func (p *Partition) serve(e *event) {
	p.result.Events++
	if p.downPorts > 0 && p.cameTooLate(e) {
		return
	}
	if p.taps {
		p.captureReceived(e)
	}
	switch e.kind {
	case unicast:
		if int(e.dst) == int(p.s.at[e.in].node) {
			p.unicastArrived(e)
		} else {
			p.forwardUnicast(e)
		}
	case toSwitch:
		p.toCore(e)
	case toMember:
		p.memberArrived(e)
	case report:
		p.reportArrived(e)
	case flowTimer:
		p.startFlow(p.flows.take(e.aux))
	case receiveTimer:
		p.postReceive(p.conns[e.dst])
	case connTimer:
		p.connTimer(p.conns[e.dst])
	case nicTimer:
		p.nicTimer(e.in)
	case coreTimer:
		p.coreTimer(e.in)
	case pause:
		p.pauseArrived(e)
	case portTimer:
		p.portTimer(e.dst)
	case linkTimer:
		p.linkTimer(e)
	case routesTimer:
		p.routes = p.s.routesAfter[e.aux]
		p.adjacenciesChanged(&p.s.failures[e.aux])
		p.result.Events-- // each partition has one
	case installTimer:
		p.install(&p.s.installs[e.aux])
	}
}

// send puts a packet into the queue of port n. It reports whether there was room.
func (p *Partition) send(n uint32, e *event) bool {
	if e.flags&inTrain != 0 {
		p.dropped = p.sendTrain(n, e)
		return p.dropped == 0
	}
	o := &p.s.ports[n]
	at := p.now + p.ahead
	if p.s.train > 1 {
		p.mix(o, at)
	}
	bytes := e.wireBytes()
	length, backlog := o.timeOf(bytes), o.backlog(at)
	if backlog+length > o.most {
		o.stats.Dropped++
		p.dropped = 1
		return false
	}
	if backlog > o.ecnMin && !e.isFeedback() && o.mustMark(backlog) {
		e.flags |= ce
		o.stats.Marked++
	}
	o.stats.Longest = max(o.stats.Longest, backlog)
	if o.wait != nil {
		p.enqueue(n, e, length)
	} else {
		p.transmitOn(o, e, bytes, length)
	}
	return true
}

// transmitOn sends a packet as soon as its port is free.
func (p *Partition) transmitOn(o *port, e *event, bytes int64, length Time) {
	if p.taps && o.tap != nil && p.now >= 0 {
		o.tap.changes(o, p.now)
		if o.tap.packets {
			p.captureSent(o.tap, max(p.now, o.freeAt), e)
		}
	}
	o.freeAt = max(p.now+p.ahead, o.freeAt) + length
	o.stats.Packets++
	o.stats.Bytes += uint64(bytes)
	if o.down {
		p.lose(o, e)
		return
	}
	if o.damaged != 0 && e.kind != pause && p.now >= 0 { // a registration has come to its end
		if r := o.draw(); r < o.loss {
			p.lose(o, e)
			return
		} else if r < o.damaged {
			e.flags |= corrupt
			o.stats.Corrupted++
		}
	}
	p.result.Hops++
	e.at, e.in = o.freeAt+o.delay, o.peer
	p.transfer(o, e)
}

// transfer gives a packet to the partition in which it arrives.
func (p *Partition) transfer(o *port, e *event) {
	if o.partition == p.index {
		p.queue.push(e)
		return
	}
	b := &p.sent[o.partition]
	if e.kind == report {
		b.reports = append(b.reports, p.reports.take(e.aux))
	}
	b.events = append(b.events, *e)
}

// lose counts a packet that is lost on the link of a port.
func (p *Partition) lose(o *port, e *event) {
	o.stats.Lost++
	if e.kind == report {
		p.reports.take(e.aux)
	}
}

// timer makes an event of node n at a time.
func (p *Partition) timer(n int32, kind eventKind, at Time, key uint64, dst uint32) {
	p.queue.push(&event{at: at, in: p.s.timerOf(n, kind), key: key, dst: dst, kind: kind})
}

// clock returns the present time as queue pairs and switches know it.
func (p *Partition) clock() time.Duration { return clockOf(p.now) }

// setup is the time before the program's start in which groups are registered. Queue pairs and
// switches count their time from its beginning, as none of them knows a time before 0.
const setup = topology.Millisecond

// clockOf returns t as queue pairs and switches know it, in whole nanoseconds.
func clockOf(t Time) time.Duration { return time.Duration((t + setup) / topology.Nanosecond) }

// timeOf is the reverse of clockOf.
func timeOf(d time.Duration) Time { return Time(d)*topology.Nanosecond - setup }

// alarm is the timer of something that has one deadline, which moves. An event that comes too
// early is cheaper than one for each deadline.
type alarm struct{ first, second Time } // of the events that are there, counted from 1 ps before the registration; 0: none

// set returns whether an event is needed at a time.
func (a *alarm) set(at Time) bool {
	at += setup + 1
	if a.first != 0 && a.first <= at {
		return false
	}
	a.first, a.second = at, a.first
	return true
}

// rang is told of each event.
func (a *alarm) rang(at Time) {
	if at+setup+1 == a.first {
		a.first, a.second = a.second, 0
	}
}

// pool has values with numbers.
type pool[T any] struct {
	values []T
	free   []uint32
}

// add returns the number of v.
func (p *pool[T]) add(v T) uint32 {
	if n := len(p.free); n > 0 {
		i := p.free[n-1]
		p.free = p.free[:n-1]
		p.values[i] = v
		return i
	}
	p.values = append(p.values, v)
	return uint32(len(p.values) - 1)
}

// take returns the value with number i, and frees the number.
func (p *pool[T]) take(i uint32) T {
	v := p.values[i]
	p.free = append(p.free, i)
	return v
}

// shrink gives back the memory of values that are all free.
func (p *pool[T]) shrink() {
	if len(p.free) == len(p.values) {
		*p = pool[T]{}
	}
}
