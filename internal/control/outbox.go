// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
)

// What the control plane says of a group leaves by one outbox: envelopes, messages of RDMA-CM,
// and relays to other switches. A message is queued when it is made; at the end of the iteration
// of the control loop it gets the number of the group's newest change in the state file, and it
// leaves when the file has that change. So nobody is told of what a kill -9 would undo,
// and the messages of many groups share a write. Messages of one group leave in the order in which they were made.
//
// While the file cannot be written, what promises nothing leaves all the same and the rest
// waits: the package's comment has the reasons. Without a state file nothing waits.

// maxOutbox bounds the messages that wait. Beyond it a message that would have to wait is dropped: each is
// repeated until it is answered. What need not wait leaves, however many others do. A request is not served
// while maxOutboxPerPort answers to requests of its port wait. A message that has waited for outboxTTL is
// dropped, too: it was repeated meanwhile, or nobody waits for it any more. One that tells of the end of a
// membership is not: whoever counts on the member has not asked, and would not hear of it.
const (
	maxOutbox        = 4096
	maxOutboxPerPort = maxOutbox / 16
	outboxTTL        = 30 * time.Second
)

// undetermined is the change of a message whose group's connections are to be stored yet.
const undetermined = math.MaxUint64

// message is a message of a group that waits for the state file.
type message struct {
	group    netip.Addr
	at       time.Duration // of its queueing
	change   uint64        // of the file
	promises bool
	lasts    bool            // it is not dropped for its age, and counts for no port
	port     int             // that the request came by which it answers; -1: none
	asker    requester       // of that request, if m is for it; the zero value: nobody has asked
	packet   envelope.Packet // or
	relay    envelope.Relay  // to a neighbour switch, if isRelay
	isRelay  bool
}

// outbox has the messages that wait. The zero value is empty.
type outbox struct {
	waiting []message             // for the file, oldest first
	fresh   []message             // of this iteration, oldest first
	byPort  map[int]int           // number of messages, by port
	changes map[netip.Addr]uint64 // the newest change of each group, unless it was durable at the last look
	stored  uint64                // as the file was at the last look
	failing bool
	expiry  time.Duration // no message has waited for outboxTTL before
	dropped uint64        // messages for which there was no room since the counter was read
}

func newOutbox() outbox {
	return outbox{byPort: make(map[int]int), changes: make(map[netip.Addr]uint64)}
}

// hasRoom reports whether a request from a port is served.
func (o *outbox) hasRoom(port int) bool { return o.byPort[port] < maxOutboxPerPort }

// add queues a message.
func (o *outbox) add(m message) {
	if !m.lasts {
		o.byPort[m.port]++
	}
	o.fresh = append(o.fresh, m)
}

// expire drops the messages that have waited for outboxTTL, and returns their number.
func (o *outbox) expire(now time.Duration) (n int) {
	if now < o.expiry {
		return 0
	}
	o.expiry = now + outboxTTL
	o.waiting = slices.DeleteFunc(o.waiting, func(m message) bool {
		switch until := m.at + outboxTTL; {
		case m.lasts:
		case until > now:
			o.expiry = min(o.expiry, until)
		default:
			o.forget(&m)
			n++
			return true
		}
		return false
	})
	return n
}

// note takes notice that a change of the file is about a group.
func (o *outbox) note(group netip.Addr, change uint64) { o.changes[group] = change }

// determine is note for groups whose messages have waited for that number.
func (o *outbox) determine(groups map[netip.Addr]bool, change uint64) {
	for g := range groups {
		o.note(g, change)
	}
	for i := range o.waiting {
		if m := &o.waiting[i]; m.change == undetermined && groups[m.group] {
			m.change = change
		}
	}
}

// release calls send for each message that may leave, now that the file has the changes up to
// stored. delay reports whether a group has a change that has no number yet.
func (o *outbox) release(stored uint64, failing bool, delay func(group netip.Addr) bool, send func(*message)) {
	if stored != o.stored || failing != o.failing {
		o.stored, o.failing = stored, failing
		for g, n := range o.changes {
			if n <= stored {
				delete(o.changes, g)
			}
		}
		keep := o.waiting[:0]
		for i := range o.waiting {
			keep = o.pass(&o.waiting[i], keep, send)
		}
		clear(o.waiting[len(keep):]) // for the garbage collector
		o.waiting = keep
	}
	for i := range o.fresh {
		m := &o.fresh[i]
		if m.change = o.changes[m.group]; delay(m.group) {
			m.change = undetermined
		}
		o.waiting = o.pass(m, o.waiting, send)
	}
	clear(o.fresh)
	o.fresh = o.fresh[:0]
}

// pass sends m, or appends it to keep, if there is room.
func (o *outbox) pass(m *message, keep []message, send func(*message)) []message {
	waits := m.change > o.stored && (m.promises || !o.failing)
	if waits && len(keep) < maxOutbox {
		return append(keep, *m)
	}
	if o.forget(m); waits {
		o.dropped++
	} else {
		send(m)
	}
	return keep
}

// forget counts m no more.
func (o *outbox) forget(m *message) {
	if m.lasts {
		return
	}
	if o.byPort[m.port]--; o.byPort[m.port] == 0 {
		delete(o.byPort, m.port)
	}
}

// send queues a datagram of a group, whose address it comes from.
func (c *control) send(p *envelope.Packet) {
	m := message{group: p.Src.Addr(), promises: p.Promises, lasts: p.Lasts, port: c.asker.from.Port, packet: *p}
	if c.asker.ip == p.Dst.Addr() {
		m.asker = c.asker
	}
	c.enqueue(m)
}

// sendRelays queues the registrar's messages to neighbours.
func (c *control) sendRelays() {
	for i := range c.out.Relays {
		r := &c.out.Relays[i]
		c.enqueue(message{group: r.Group, promises: r.Promises, lasts: r.Lasts, port: -1, isRelay: true, relay: *r})
	}
}

func (c *control) enqueue(m message) {
	m.at = c.now()
	c.outbox.add(m)
}

// emptyOutbox sends what may leave: the last step of an iteration of the control loop.
func (c *control) emptyOutbox() {
	stored, failing := uint64(math.MaxUint64), false
	if c.keeper != nil {
		stored, failing = c.keeper.file.Stored(), c.keeper.file.Failing()
	}
	c.count.outboxFull += uint64(c.outbox.expire(c.now()))
	c.outbox.release(stored, failing, c.connections.unkept.delay, c.onLeave)
	c.count.outboxFull += c.outbox.dropped
	c.outbox.dropped = 0
	if len(c.relays) > 0 {
		c.plane.SendRelays(c.relays)
		clear(c.relays)
		c.relays = c.relays[:0]
	}
}

// leave sends a message that has waited for nothing more.
func (c *control) leave(m *message) {
	if !m.isRelay {
		c.transmit(m)
		return
	}
	if r := &m.relay; m.at >= c.iterationStart || c.registrar.Reseal(r) { // else it has waited, and is void
		c.relays = append(c.relays, dataplane.Relay{To: r.To, Group: r.Group, Payload: r.Data})
	}
}
