// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/store"
)

// What the control plane says of a group leaves by one outbox: envelopes, messages of RDMA-CM,
// and relays to other switches.

// message is what the outbox has of a group.
type message = store.Message[content]

// content is what a message consists of.
type content struct {
	asker   requester       // of the request that it answers, if it is for it; the zero value: nobody has asked
	packet  envelope.Packet // or
	relay   envelope.Relay  // to a neighbour switch, if isRelay
	isRelay bool
}

// send queues a datagram of a group, whose address it comes from.
func (c *control) send(p *envelope.Packet) {
	m := message{Group: p.Src.Addr(), Promises: p.Promises, Lasts: p.Lasts, Port: c.asker.from.Port, Body: content{packet: *p}}
	if c.asker.ip == p.Dst.Addr() {
		m.Body.asker = c.asker
	}
	c.enqueue(m)
}

// sendRelays queues the registrar's messages to neighbours.
func (c *control) sendRelays() {
	for i := range c.out.Relays {
		r := &c.out.Relays[i]
		c.enqueue(message{Group: r.Group, Promises: r.Promises, Lasts: r.Lasts, Port: -1, Body: content{isRelay: true, relay: *r}})
	}
}

func (c *control) enqueue(m message) {
	m.At = c.now()
	c.outbox.Add(m)
}

// emptyOutbox sends what may leave: the last step of an iteration of the control loop.
func (c *control) emptyOutbox() {
	c.count.outboxFull += uint64(c.outbox.Expire(c.now()))
	c.outbox.Release(c.keeper.Stored(), c.keeper.Failing(), c.connections.unkept.delay, c.onLeave)
	c.count.outboxFull += c.outbox.Dropped()
	if len(c.relays) > 0 {
		c.plane.SendRelays(c.relays)
		clear(c.relays)
		c.relays = c.relays[:0]
	}
}

// leave sends a message that has waited for nothing more.
func (c *control) leave(m *message) {
	if !m.Body.isRelay {
		c.transmit(m)
		return
	}
	if r := &m.Body.relay; m.At >= c.iterationStart || c.registrar.Reseal(r) { // else it has waited, and is void
		c.relays = append(c.relays, dataplane.Relay{To: r.To, Group: r.Group, Payload: r.Data})
	}
}
