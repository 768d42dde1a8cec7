// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
)

// A lookup waits for the kernel's locks as long as another process holds them. So a
// separate goroutine does the lookups, and the control loop goes on. A registration
// waits for an answer until locate_timeout, an envelope until parkTTL; a member keeps its
// location.

// lookup is a request for the location of a host, or for the state of ports.
type lookup struct {
	ip    netip.Addr
	held  map[envelope.KeyID]locate.Held // places of the host that have no location
	anew  bool                           // the kernel is to ask all hosts for it
	ports []portName                     // ports by slot
}

// portName is what the kernel is asked for about a port; the zero value is that of a slot
// without one.
type portName struct {
	ifindex int
	name    string
}

// lookupResult is the locator's answer to a lookup.
type lookupResult struct {
	lookup
	location locate.Location
	recalled map[envelope.KeyID]locate.Location // the locations of the places that were held
	hops     []nextHop                          // the next hops of a host that is behind other switches
	err      error
	states   []locate.Link // the states of ports
	newVRFs  bool          // ports have entered or left VRFs
}

// lookupQueue passes lookups to the locator. All methods but run belong to the control
// loop.
type lookupQueue struct {
	requests     chan lookup
	results      chan lookupResult // the results, with room for those of all pending lookups
	pendingSince []time.Duration   // the times when lookups without a result were submitted, oldest first
	warnedAt     time.Duration     // the time when the operator was last warned that the kernel is slow
	total        uint64
	routes       routes                 // nil: no keys of switches are configured
	bySwitch     func(ifindex int) bool // hellos are exchanged at the port with this interface
}

// maxLookups bounds the pending lookups. More would only delay an urgent one.
const maxLookups = 32

func newLookupQueue() *lookupQueue {
	return &lookupQueue{requests: make(chan lookup, maxLookups), results: make(chan lookupResult, maxLookups)}
}

// run does the lookups with l until requests is closed.
func (a *lookupQueue) run(l locator) {
	for q := range a.requests {
		x := lookupResult{lookup: q}
		if q.ip.IsValid() {
			for key, held := range q.held {
				if at, err := l.Recall(q.ip, held); err == nil {
					if x.recalled == nil {
						x.recalled = make(map[envelope.KeyID]locate.Location)
					}
					x.recalled[key] = at
				}
			}
			if q.anew {
				_ = l.Invalidate(q.ip) // the answer is that of the lookup then
			}
			x.location, x.hops, x.err = a.locate(l, q.ip)
		}
		if q.ports != nil {
			was := l.VRFs()
			x.err = l.SetPorts(indexesOf(q.ports))
			x.newVRFs = !slices.Equal(was, l.VRFs())
			if a.routes != nil {
				a.routes.SetVRFs(l.VRFs())
			}
		}
		for _, p := range q.ports {
			s := locate.Link{}
			if p.name != "" {
				s = l.Link(p.ifindex, p.name)
			}
			x.states = append(x.states, s)
		}
		a.results <- x
	}
}

// indexesOf returns the interface indexes of the ports that have one.
func indexesOf(ports []portName) (list []int) {
	for _, p := range ports {
		if p.ifindex != 0 {
			list = append(list, p.ifindex)
		}
	}
	return list
}

// hasRoom reports whether one more lookup may be submitted.
func (a *lookupQueue) hasRoom() bool { return len(a.pendingSince) < maxLookups }

// submit submits a lookup. The queue must have room.
func (a *lookupQueue) submit(now time.Duration, q lookup) {
	a.pendingSince = append(a.pendingSince, now)
	a.total++
	a.requests <- q
}

// completed removes the oldest lookup, which has its result.
func (a *lookupQueue) completed() { a.pendingSince = a.pendingSince[1:] }

// slowLookup is the time that a lookup may take before the operator is warned, and
// slowLookupInterval the least time between two warnings.
const (
	slowLookup         = time.Second
	slowLookupInterval = 10 * time.Second
)

// overdue returns how long the oldest lookup has been pending, and whether to warn of it.
func (a *lookupQueue) overdue(now time.Duration) (d time.Duration, tell bool) {
	if len(a.pendingSince) == 0 || now-a.pendingSince[0] < slowLookup || now < a.warnedAt+slowLookupInterval && a.warnedAt > 0 {
		return 0, false
	}
	a.warnedAt = now
	return now - a.pendingSince[0], true
}

// next returns when overdue may next ask for a warning; ok is false if no lookup is
// pending.
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

// submitLookups submits the lookups that are due: the state of the ports first.
func (c *control) submitLookups() {
	now := c.now()
	if c.kernel.linksDue && c.kernel.lookups.hasRoom() && !c.kernel.linksRequested {
		q := lookup{}
		for _, p := range c.ports {
			q.ports = append(q.ports, portName{p.Ifindex, p.Name})
		}
		c.kernel.linksDue, c.kernel.linksRequested = false, true
		c.kernel.lookups.submit(now, q)
	}
	for c.kernel.lookups.hasRoom() {
		h := c.dir.hosts.nextHost(now)
		if h == nil {
			return
		}
		c.kernel.lookups.submit(now, lookup{ip: h.ip, held: c.dir.heldPlaces(h), anew: h.reresolve})
		h.reresolve = false
	}
}

// lookupDone handles a result, and any others that have come; it submits no lookups in
// between.
func (c *control) lookupDone(x lookupResult) {
	for {
		c.kernel.lookups.completed()
		if x.states != nil {
			c.kernel.linksRequested = false
			c.vrfsRead(x.newVRFs, x.err)
			c.linksChanged(x.ports, x.states)
		} else if h := c.dir.hosts.byIP[x.ip]; h != nil && h.lookupPending {
			if !sameHops(h.hops, x.hops) {
				c.dir.waysChanged(h)
			}
			c.dir.hosts.setHops(h, x.hops)
			for key, at := range x.recalled {
				c.dir.recalled(h, key, at)
			}
			c.dir.hostAnswered(h, x.location, x.err, c.now())
		}
		select {
		case x = <-c.kernel.lookups.results:
			continue
		default:
		}
		c.departures.parked.nextPoll, c.connections.heldMADs.nextPoll = 0, 0
		return
	}
}

// vrfsRead follows what a lookup of the ports' state has found of their VRFs: with other ones, each
// host is looked up in other tables. After an error the ports are asked for again.
func (c *control) vrfsRead(changed bool, err error) {
	switch {
	case err != nil && !c.kernel.vrfsUnknown:
		c.notify(true, "the VRFs of the ports cannot be read: routes to members are looked up in those that were read before, until they can", "error", err)
	case err == nil && c.kernel.vrfsUnknown:
		c.notify(false, "the VRFs of the ports can be read again")
	}
	if c.kernel.vrfsUnknown = err != nil; c.kernel.vrfsUnknown {
		c.kernel.retryPorts(c.now() + firstPortRetry)
	}
	if changed {
		c.notify(false, "ports have entered or left VRFs: all members are looked up again")
		c.dir.hosts.applyChanges(&locate.Set{All: true}, c.now())
	}
}

// readyBatch bounds the registrations that are installed in one iteration of the control
// loop.
const readyBatch = 4

// installReady continues registrations whose members all have answers.
func (c *control) installReady() {
	for range min(readyBatch, len(c.dir.ready)) {
		ip := c.dir.ready[0]
		c.dir.ready = c.dir.ready[1:]
		c.registrar.RetryGroup(c.now(), ip, &c.out)
		c.sendOutput()
	}
}
