// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"math"
	"net/netip"
	"slices"
	"time"
)

// What the control plane says of a group leaves by one outbox: envelopes, messages of RDMA-CM,
// and relays to other switches. A message is queued when it is made; at the end of the iteration
// of the control loop it gets the number of the group's newest change in the state file, and it
// leaves when the file has that change. So nobody is told of what a kill -9 would undo,
// and the messages of many groups share a write. Messages of one group leave in the order in which they were made.
//
// While the file cannot be written, what promises nothing leaves all the same and the rest
// waits: the comment of internal/control has the reasons. Without a state file nothing waits.

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

// Message is a message of a group that waits for the state file.
type Message[M any] struct {
	Group    netip.Addr
	At       time.Duration // the time of its queueing
	Promises bool
	Lasts    bool   // true: it is not dropped for its age, and counts for no port
	Port     int    // the port of the request that it answers; -1: none
	Body     M      // what leaves
	change   uint64 // the number of the file's change
}

// Outbox has the messages that wait.
type Outbox[M any] struct {
	waiting []Message[M]          // the messages that wait for the file, oldest first
	fresh   []Message[M]          // the messages of this iteration, oldest first
	byPort  map[int]int           // number of messages, by port
	changes map[netip.Addr]uint64 // the newest change of each group, unless it was durable at the last look
	stored  uint64                // the durable change of the file at the last look
	failing bool
	expiry  time.Duration // no message has waited for outboxTTL before
	dropped uint64        // messages for which there was no room since the counter was read
}

// NewOutbox makes an empty outbox.
func NewOutbox[M any]() Outbox[M] {
	return Outbox[M]{byPort: make(map[int]int), changes: make(map[netip.Addr]uint64)}
}

// HasRoom reports whether a request from a port is served.
func (o *Outbox[M]) HasRoom(port int) bool { return o.byPort[port] < maxOutboxPerPort }

// Add queues a message.
func (o *Outbox[M]) Add(m Message[M]) {
	if !m.Lasts {
		o.byPort[m.Port]++
	}
	o.fresh = append(o.fresh, m)
}

// Expire drops the messages that have waited for outboxTTL, and returns their number.
func (o *Outbox[M]) Expire(now time.Duration) (n int) {
	if now < o.expiry {
		return 0
	}
	o.expiry = now + outboxTTL
	o.waiting = slices.DeleteFunc(o.waiting, func(m Message[M]) bool {
		switch until := m.At + outboxTTL; {
		case m.Lasts:
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

// Note takes notice that a change of the file is about a group.
func (o *Outbox[M]) Note(group netip.Addr, change uint64) { o.changes[group] = change }

// Determine is Note for groups whose messages have waited for that number.
func (o *Outbox[M]) Determine(groups map[netip.Addr]bool, change uint64) {
	for g := range groups {
		o.Note(g, change)
	}
	for i := range o.waiting {
		if m := &o.waiting[i]; m.change == undetermined && groups[m.Group] {
			m.change = change
		}
	}
}

// Release calls send for each message that may leave, now that the file has the changes up to
// stored. delay reports whether a group has a change that has no number yet.
func (o *Outbox[M]) Release(stored uint64, failing bool, delay func(group netip.Addr) bool, send func(*Message[M])) {
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
		clear(o.waiting[len(keep):]) // the garbage collector frees the bodies
		o.waiting = keep
	}
	for i := range o.fresh {
		m := &o.fresh[i]
		if m.change = o.changes[m.Group]; delay(m.Group) {
			m.change = undetermined
		}
		o.waiting = o.pass(m, o.waiting, send)
	}
	clear(o.fresh)
	o.fresh = o.fresh[:0]
}

// pass sends m, or appends it to keep, if there is room.
func (o *Outbox[M]) pass(m *Message[M], keep []Message[M], send func(*Message[M])) []Message[M] {
	waits := m.change > o.stored && (m.Promises || !o.failing)
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

// Dropped returns the number of messages for which there was no room since it was called last.
func (o *Outbox[M]) Dropped() uint64 {
	n := o.dropped
	o.dropped = 0
	return n
}

// Size returns the number of messages that wait for the file, and that of groups with changes that were
// not durable at the last look.
func (o *Outbox[M]) Size() (waiting, changes int) { return len(o.waiting), len(o.changes) }

// forget counts m no more.
func (o *Outbox[M]) forget(m *Message[M]) {
	if m.Lasts {
		return
	}
	if o.byPort[m.Port]--; o.byPort[m.Port] == 0 {
		delete(o.byPort, m.Port)
	}
}
