// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"

	"github.com/gleam-rdma/gleam/lab/sim/topology"
)

// host is the port of a host and the queue pairs that may have something to send. They take
// turns, a packet each. Responses go out at once.
type host struct {
	port        uint32
	first, last *conn
	waits       bool // true: it waits for the port: there is a nicTimer
}

// mayTransmit is called when a queue pair may have packets to send.
func (p *Partition) mayTransmit(c *conn) {
	h := &p.s.hosts[c.host]
	if !c.queued {
		c.queued, c.since = true, p.now
		h.push(c)
	}
	p.transmit(c.host, h)
}

func (h *host) push(c *conn) {
	c.next = nil
	if h.last != nil {
		h.last.next = c
	} else {
		h.first = c
	}
	h.last = c
}

func (h *host) pop() *conn {
	c := h.first
	h.first = c.next
	if h.first == nil {
		h.last = nil
	}
	return c
}

// transmit sends the next packet of the host, if its port is free.
func (p *Partition) transmit(n topology.Node, h *host) {
	if h.waits {
		return
	}
	o := &p.s.ports[h.port]
	for h.first != nil {
		if o.wait != nil && o.wait.busy() {
			return // portTimer goes on
		}
		if o.freeAt > p.now {
			h.waits = true
			p.timer(int32(n), nicTimer, o.freeAt, 0, 0)
			return
		}
		c := h.pop()
		if c.qp.Transmit(p.clock(), &p.qpOut, p.budget(h, c)) == 0 {
			c.queued = false
		} else {
			if c.since <= o.trainUntil {
				p.result.Displaced++ // it would have sent between the packets of another one's train
			}
			c.since = math.MaxInt64
			p.requests(c, p.qpOut.Packets)
			p.qpOut.Reset()
			h.push(c)
		}
		p.setAlarm(c)
	}
}

// nicTimer is called when the port of a host is free.
func (p *Partition) nicTimer(in uint32) {
	n := p.s.nodeOfTimer(in)
	h := &p.s.hosts[n]
	h.waits = false
	p.transmit(topology.Node(n), h)
}

// setAlarm makes a timer for the deadline of a queue pair, unless that is the end of a pacer's wait
// that is over: the queue pair waits for the port.
func (p *Partition) setAlarm(c *conn) {
	if at, ok := c.qp.NextDeadline(); ok && !(c.queued && at <= p.clock()) {
		if at := max(timeOf(at), p.now); c.alarm.set(at) {
			p.timer(int32(c.host), connTimer, at, c.id, c.number)
		}
	}
}

// connTimer is called when a deadline of a queue pair may have come.
func (p *Partition) connTimer(c *conn) {
	c.alarm.rang(p.now)
	if at, ok := c.qp.NextDeadline(); ok && at <= p.clock() {
		c.qp.Advance(p.clock(), &p.qpOut)
		if p.s.train > 1 {
			p.result.Displaced++
		}
		p.carryOutQP(c, nil)
		p.mayTransmit(c)
	}
	p.setAlarm(c)
}
