// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"time"

	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/internal/control/locate"
)

// locateRetry is the interval at which the registrar retries a registration whose members
// are being located. The last answer makes it retry at once.
const locateRetry = 500 * time.Millisecond

// run is the control loop. It ends with ctx.
func (c *control) run(ctx context.Context, changes *locate.Changes) {
	defer close(c.ended)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	lookupsEnded := make(chan struct{})
	go func() {
		defer close(lookupsEnded)
		c.lookups.run(c.locator)
	}()
	defer func() {
		close(c.lookups.requests)
		<-lookupsEnded
	}()
	c.changes = changes
	c.linksDue = true // before the watcher started
	c.restoreGroups()
	c.notify.Phase("groups taken up")
	for {
		d := c.sleepTime()
		due := c.now() + d
		timer.Reset(d)
		requests := c.plane.Requests()
		if c.requestPolicer.WaitFor(c.now()) > 0 {
			requests = nil
		}
		var do func()
		select {
		case <-ctx.Done():
			return
		case x := <-c.plane.Renewals():
			do = func() { c.serveEnvelope(x) }
		case x := <-c.plane.Relays():
			do = func() { c.serveRelay(x) }
		case x := <-requests:
			do = func() { c.serveRequests(x) }
		case x := <-c.plane.Sightings():
			do = func() { c.handleSighting(x) }
		case <-c.plane.Changed():
			do = func() { c.outcomesDue = true }
		case f := <-c.closures:
			do = f
		case r := <-c.reads:
			do = func() { c.serveReading(r) }
		case x := <-c.lookups.results:
			do = func() { c.lookupDone(x) }
		case <-c.switches.helloBell:
			do = c.followNeighbours
		case <-c.switches.routeBell:
			do = c.followRoutes
		case <-c.keeper.bell():
			do = c.followFile
		case <-changes.Bell:
			do = func() { c.changePacer.noteChange(c.now(), changes.Links()) }
		case <-timer.C:
			do = c.serveDeferred
		}
		c.iterationStart = c.now()
		if c.iterationStart-due > longIteration {
			c.leasesHeldUntil = c.iterationStart + leaseGrace
		}
		c.serveRenewals()
		do()
		c.doDue()
		c.iterations++
		c.longestIteration = max(c.longestIteration, c.now()-c.iterationStart)
	}
}

// An iteration of the control loop does a bounded amount of each kind of work, and begins
// with the renewals that wait: other requests cannot delay a renewal until its lease
// ends. After a pause of the loop, or of the machine, leases are held for leaseGrace, so
// that renewals can come in before leases end.
const (
	longIteration = 50 * time.Millisecond
	leaseGrace    = 100 * time.Millisecond
)

// requestIterations bounds the iterations per second that serve requests, after a burst
// of dataplane.BurstTime; an iteration serves all requests that wait. So a flood of requests wakes
// the control loop, which costs more than to refuse a request, at this rate and not at
// the flood's. maxRequestTime bounds the time that an iteration serves requests.
const (
	requestIterations = 250
	maxRequestTime    = 5 * time.Millisecond
)

// serveRequests serves a request and those queued behind it.
func (c *control) serveRequests(d *dataplane.Datagram) {
	c.requestPolicer.Allow(c.iterationStart)
	c.serveRequest(d)
	for range len(c.plane.Requests()) {
		if c.now()-c.iterationStart > maxRequestTime {
			return
		}
		c.serveRenewals()
		select {
		case d := <-c.plane.Requests():
			c.serveRequest(d)
		default:
			return
		}
	}
}

// serveRequest serves a request if its answers may wait for the state file.
func (c *control) serveRequest(d *dataplane.Datagram) {
	if !c.outbox.hasRoom(d.From.Port) {
		c.count.outboxFull++
		d.Release()
		return
	}
	c.serveEnvelope(d)
}

// serveDeferred serves the requests that the policer has deferred, if it allows them now.
func (c *control) serveDeferred() {
	if c.requestPolicer.WaitFor(c.iterationStart) > 0 {
		return
	}
	select {
	case d := <-c.plane.Requests():
		c.serveRequests(d)
	default:
	}
}

// serveRenewals serves the renewals that wait.
func (c *control) serveRenewals() {
	l := c.plane.Renewals()
	for range len(l) {
		select {
		case d := <-l:
			c.serveEnvelope(d)
		default:
			return
		}
	}
}

// doDue does the work that is due.
func (c *control) doDue() {
	c.installReady()
	c.tellWays()
	if c.outcomesDue && c.outcomesAt <= c.now() {
		c.outcomesDue = c.collectOutcomes()
		c.outcomesAt = c.now() + c.outcomeInterval()
	}
	c.serveRetryPorts()
	c.followChanges()
	if c.now()-c.iterationStart > longIteration {
		c.leasesHeldUntil = c.now() + leaseGrace
	}
	if at, ok := c.registrarDeadline(); ok && at <= c.now() {
		c.serveRenewals()
		c.registrar.Advance(c.now(), &c.out)
		c.sendOutput()
	}
	c.serveConnections()
	c.sendProofs()
	c.advanceInquiries()
	c.refusals.due(c.now(), c.logRefusal)
	c.unsendable.due(c.now(), c.logUnsendable)
	c.rejected.due(c.now(), c.logRejection)
	c.unchanged.due(c.now(), c.logUnchanged)
	c.reports.due(c.now(), c.logTurn)
	c.connections.refused.due(c.now(), c.logRefused)
	c.connections.strays.due(c.now(), c.logStrayMAD)
	c.parked.retry(c.now(), c.trySend, c.countUnsent)
	if d, tell := c.lookups.overdue(c.now()); tell {
		c.notify(true, "the kernel has not answered a lookup of a location for some time: registrations wait, members keep their locations", "duration", d)
	}
	if err := c.dir.hosts.filterErr; err != nil && !c.filterErrReported {
		c.filterErrReported = true
		c.notify(true, "changes of some members' locations are not reported, since the netlink filter does not take their addresses", "error", err)
	}
	c.submitLookups()
	c.emptyOutbox()
	c.sendDatagrams()
}

// registrarDeadline returns the registrar's next deadline, at the earliest when leases
// are no longer held.
func (c *control) registrarDeadline() (at time.Duration, ok bool) {
	at, ok = c.registrar.NextDeadline()
	return max(at, c.leasesHeldUntil), ok
}

// now returns the time by the workers' clock, which all pure cores share.
func (c *control) now() time.Duration { return c.plane.Now() }

// sleepTime returns how long the loop may wait for an event.
func (c *control) sleepTime() time.Duration {
	d := time.Hour
	if at, ok := c.registrarDeadline(); ok {
		d = at - c.now()
	}
	for _, next := range [...]func() (time.Duration, bool){
		c.refusals.next, c.parked.next, c.moves.next, c.changePacer.next, c.lookups.next, c.announcer.next, c.unsendable.next, c.rejected.next, c.unchanged.next, c.reports.next, c.nextPortRetry, c.connections.refused.next, c.connections.strays.next, c.connections.heldMADs.next, c.connections.manager.NextDeadline, c.connections.unkept.next,
	} {
		if at, ok := next(); ok {
			d = min(d, at-c.now())
		}
	}
	if at, ok := c.dir.hosts.next(c.now()); ok && c.lookups.hasRoom() {
		d = min(d, at-c.now())
	}
	if at, ok := c.dir.proofs.next(c.now()); ok {
		d = min(d, at-c.now())
	}
	if c.outcomesDue {
		d = min(d, c.outcomesAt-c.now())
	}
	if wait := c.requestPolicer.WaitFor(c.now()); wait > 0 {
		d = min(d, wait)
	}
	if len(c.dir.staleTables)+len(c.dir.ready) > 0 {
		d = 0
	}
	return max(d, 0)
}

// do runs f on the control loop and returns when it has run; it returns false if the loop
// has ended.
func (c *control) do(f func()) bool {
	done := make(chan struct{})
	select {
	case c.closures <- func() { f(); close(done) }:
		<-done
		return true
	case <-c.ended:
		return false
	}
}
