// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/dataplane/locate"
)

// The kernel answers while it has time: a question waits for its locks, as long as
// somebody else holds them. So questions are asked by a goroutine of their own, and the
// control loop goes on. What waits for an answer has a deadline of its own: a
// registration locate_timeout, an envelope parkTTL; a member keeps its place.

// lookup is for the place of a host, or for the state of ports.
type lookup struct {
	ip    netip.Addr
	ports []int // interface indexes
}

// lookupResult is what the locator says to a question.
type lookupResult struct {
	lookup
	location locate.Location
	err      error
	states   []portState // of ports
}

// portState is the state of a port's interface.
type portState struct {
	up  bool
	mtu int // 0: there is no such interface
}

// lookupQueue passes questions to the locator. All but run belongs to the control loop.
type lookupQueue struct {
	requests     chan lookup
	results      chan lookupResult // has room for all that are asked
	pendingSince []time.Duration   // when, of those without an answer, oldest first
	warnedAt     time.Duration     // that the kernel is slow
	total        uint64
}

// maxLookups is how many questions the locator has at a time. More would only keep an
// urgent one waiting.
const maxLookups = 32

func newLookupQueue() *lookupQueue {
	return &lookupQueue{requests: make(chan lookup, maxLookups), results: make(chan lookupResult, maxLookups)}
}

// run asks l until there are no more questions.
func (a *lookupQueue) run(l locator) {
	for q := range a.requests {
		x := lookupResult{lookup: q}
		if q.ip.IsValid() {
			x.location, x.err = l.Locate(q.ip)
		}
		for _, p := range q.ports {
			up, mtu := l.Up(p)
			x.states = append(x.states, portState{up, mtu})
		}
		a.results <- x
	}
}

// hasRoom reports whether the locator takes one more question.
func (a *lookupQueue) hasRoom() bool { return len(a.pendingSince) < maxLookups }

// submit asks a question; there is room.
func (a *lookupQueue) submit(now time.Duration, q lookup) {
	a.pendingSince = append(a.pendingSince, now)
	a.total++
	a.requests <- q
}

// completed notes that the oldest question has its answer.
func (a *lookupQueue) completed() { a.pendingSince = a.pendingSince[1:] }

// slowLookup is how long the kernel may take for an answer before the operator is told,
// and slowLookupInterval the least time until that is said again.
const (
	slowLookup         = time.Second
	slowLookupInterval = 10 * time.Second
)

// overdue returns for how long the oldest question has been waiting if that is to be told.
func (a *lookupQueue) overdue(now time.Duration) (d time.Duration, tell bool) {
	if len(a.pendingSince) == 0 || now-a.pendingSince[0] < slowLookup || now < a.warnedAt+slowLookupInterval && a.warnedAt > 0 {
		return 0, false
	}
	a.warnedAt = now
	return now - a.pendingSince[0], true
}

// next returns when late may have something to tell.
func (a *lookupQueue) next() (at time.Duration, ok bool) {
	if len(a.pendingSince) == 0 {
		return 0, false
	}
	at = a.pendingSince[0] + slowLookup
	if a.warnedAt > 0 {
		at = max(at, a.warnedAt+slowLookupInterval)
	}
	return at, true
}

// submitLookups asks what is due: the state of the ports first.
func (c *control) submitLookups() {
	now := c.now()
	if c.linksDue && c.lookups.hasRoom() && !c.linksAsked {
		q := lookup{}
		for _, p := range c.workers.ports {
			q.ports = append(q.ports, p.ifindex)
		}
		c.linksDue, c.linksAsked = false, true
		c.lookups.submit(now, q)
	}
	for c.lookups.hasRoom() {
		h := c.dir.hosts.nextHost(now)
		if h == nil {
			return
		}
		c.lookups.submit(now, lookup{ip: h.ip})
	}
}

// lookupDone takes in an answer, and those that are there besides: nothing is asked meanwhile.
func (c *control) lookupDone(x lookupResult) {
	for {
		c.lookups.completed()
		if x.states != nil {
			c.linksAsked = false
			c.linksChanged(x.states)
		} else if h := c.dir.hosts.byIP[x.ip]; h != nil && h.lookupPending {
			c.dir.hostAnswered(h, x.location, x.err, c.now())
		}
		select {
		case x = <-c.lookups.results:
			continue
		default:
		}
		c.parked.nextPoll = 0
		return
	}
}

// readyBatch bounds the registrations that are installed before the control loop looks
// for other work.
const readyBatch = 4

// installReady goes on with registrations whose members all have answers.
func (c *control) installReady() {
	for range min(readyBatch, len(c.dir.ready)) {
		ip := c.dir.ready[0]
		c.dir.ready = c.dir.ready[1:]
		c.registrar.RetryGroup(c.now(), ip, &c.out)
		c.sendOutput()
	}
}
