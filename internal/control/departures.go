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
	asker   requester       // the sender of the request that it answers, if it is for that sender; the zero value: nobody has asked
	packet  envelope.Packet // the envelope, unless isRelay
	relay   envelope.Relay  // a relay to a neighbour switch, if isRelay
	isRelay bool
}

// departures is what leaves the control plane.
type departures struct {
	parked    parkedEnvelopes       // envelopes for hosts that are being resolved
	outbox    store.Outbox[content] // what waits for the state file
	onLeave   func(*message)        // control.leave; tests record the messages in its place
	relays    []dataplane.Relay     // relays to neighbours, that leave at the end of the iteration
	datagrams []dataplane.UDP       // datagrams that leave at the end of the iteration
	asker     requester             // the sender of the envelope that is being served
	announcer *announcer
}

func newDepartures() departures {
	return departures{outbox: store.NewOutbox[content](), asker: nobody, announcer: newAnnouncer()}
}

// send queues a datagram of a group, whose address it comes from.
func (c *control) send(p *envelope.Packet) {
	m := message{Group: p.Src.Addr(), Promises: p.Promises, Lasts: p.Lasts, Port: c.departures.asker.from.Port, Body: content{packet: *p}}
	if c.departures.asker.ip == p.Dst.Addr() {
		m.Body.asker = c.departures.asker
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
	c.departures.outbox.Add(m)
}

// emptyOutbox sends what may leave: the last step of an iteration of the control loop.
func (c *control) emptyOutbox() {
	c.count.outboxFull += uint64(c.departures.outbox.Expire(c.now()))
	c.departures.outbox.Release(c.keeper.Stored(), c.keeper.Failing(), c.connections.unkept.delay, c.departures.onLeave)
	c.count.outboxFull += c.departures.outbox.Dropped()
	if len(c.departures.relays) > 0 {
		c.plane.SendRelays(c.departures.relays)
		clear(c.departures.relays)
		c.departures.relays = c.departures.relays[:0]
	}
}

// leave sends a message that has waited for nothing more.
func (c *control) leave(m *message) {
	if m.Promises {
		c.count.stored.Add(c.now() - m.At)
	}
	if !m.Body.isRelay {
		c.transmit(m)
		return
	}
	if r := &m.Body.relay; m.At >= c.loop.start || c.registrar.Reseal(r) { // else it has waited, and is void
		c.departures.relays = append(c.departures.relays, dataplane.Relay{To: r.To, Group: r.Group, Payload: r.Data})
	}
}

// maxDatagrams is the number of datagrams that wait for the end of the iteration at most: they
// leave between two batches of a worker.
const maxDatagrams = 32

// sendBy sends a datagram to the port, MAC address and VLAN of s: at the end of this
// iteration of the control loop, together with the others, or when there are maxDatagrams.
func (c *control) sendBy(s dataplane.Origin, p *envelope.Packet) {
	c.departures.datagrams = append(c.departures.datagrams, dataplane.UDP{To: s, Src: p.Src, Dst: p.Dst, Payload: p.Data})
	if len(c.departures.datagrams) == maxDatagrams {
		c.sendDatagrams()
	}
}

// sendDatagrams sends the datagrams that wait for the end of the iteration.
func (c *control) sendDatagrams() {
	c.plane.SendUDP(c.departures.datagrams)
	clear(c.departures.datagrams) // the garbage collector frees the payloads
	c.departures.datagrams = c.departures.datagrams[:0]
}
