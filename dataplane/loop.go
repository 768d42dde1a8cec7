// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"context"
	"time"

	"github.com/gleam-rdma/gleam/dataplane/locate"
)

// locateRetry is the interval at which the registrar retries a registration whose members
// are being located. The last answer makes it retry at once.
const locateRetry = 500 * time.Millisecond

// run is the control loop. It ends with ctx.
func (c *control) run(ctx context.Context, changes *locate.Changes) {
	defer close(c.ended)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		c.lookups.run(c.locator)
	}()
	defer func() {
		close(c.lookups.requests)
		<-asked
	}()
	c.changes = changes
	c.linksDue = true // before the watcher started
	for {
		d := c.sleepTime()
		due := c.now() + d
		timer.Reset(d)
		requests := c.firstWorker.slowPath.requests.queued
		if c.requestPolicer.waitFor(c.now()) > 0 {
			requests = nil
		}
		var do func()
		select {
		case <-ctx.Done():
			return
		case x := <-c.firstWorker.slowPath.renewals.queued:
			do = func() { c.serveEnvelope(x) }
		case x := <-requests:
			do = func() { c.serveRequests(x) }
		case x := <-c.firstWorker.slowPath.sightings:
			do = func() { c.handleSighting(x) }
		case <-c.workers.bell:
			do = func() { c.outcomesDue = true }
		case f := <-c.closures:
			do = f
		case x := <-c.lookups.results:
			do = func() { c.lookupDone(x) }
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
// of burstTime; an iteration serves all requests that wait. So a flood of requests wakes
// the control loop, which costs more than to refuse a request, at this rate and not at
// the flood's. maxRequestTime bounds the time that an iteration serves requests.
const (
	requestIterations = 250
	maxRequestTime    = 5 * time.Millisecond
)

// serveRequests serves a request and those queued behind it.
func (c *control) serveRequests(d *datagram) {
	c.requestPolicer.allow(c.iterationStart)
	c.serveEnvelope(d)
	for range len(c.firstWorker.slowPath.requests.queued) {
		if c.now()-c.iterationStart > maxRequestTime {
			return
		}
		c.serveRenewals()
		select {
		case d := <-c.firstWorker.slowPath.requests.queued:
			c.serveEnvelope(d)
		default:
			return
		}
	}
}

// serveDeferred serves the requests that the policer has deferred, if it allows them now.
func (c *control) serveDeferred() {
	if c.requestPolicer.waitFor(c.iterationStart) > 0 {
		return
	}
	select {
	case d := <-c.firstWorker.slowPath.requests.queued:
		c.serveRequests(d)
	default:
	}
}

// serveRenewals serves the renewals that wait.
func (c *control) serveRenewals() {
	l := c.firstWorker.slowPath.renewals
	for range len(l.queued) {
		select {
		case d := <-l.queued:
			c.serveEnvelope(d)
		default:
			return
		}
	}
}

// doDue does the work that is due.
func (c *control) doDue() {
	c.installReady()
	if c.outcomesDue && c.outcomesAt <= c.now() {
		c.outcomesDue = c.collectOutcomes()
		c.outcomesAt = c.now() + outcomeInterval
	}
	c.followChanges()
	if c.now()-c.iterationStart > longIteration {
		c.leasesHeldUntil = c.now() + leaseGrace
	}
	if at, ok := c.registrarDeadline(); ok && at <= c.now() {
		c.serveRenewals()
		c.registrar.Advance(c.now(), &c.out)
		c.sendOutput()
	}
	c.sendProofs()
	c.advanceInquiries()
	c.refusals.due(c.now(), c.logRefusal)
	c.unsendable.due(c.now(), c.logUnsendable)
	c.rejected.due(c.now(), c.tellRejected)
	c.reports.due(c.now(), c.tellTurn)
	c.parked.retry(c.now(), c.trySend, c.countUnsent)
	if d, tell := c.lookups.overdue(c.now()); tell {
		c.notify(true, "the kernel has not said for some time where a member is: registrations wait, members keep their places", "for", d)
	}
	if err := c.dir.hosts.filterErr; err != nil && !c.filterErrReported {
		c.filterErrReported = true
		c.notify(true, "changes of some members' places are not heard of, since the netlink filter does not take their addresses", "error", err)
	}
	c.submitLookups()
}

// registrarDeadline returns the registrar's next deadline, at the earliest when leases
// are no longer held.
func (c *control) registrarDeadline() (at time.Duration, ok bool) {
	at, ok = c.registrar.NextDeadline()
	return max(at, c.leasesHeldUntil), ok
}

// now returns the time by the workers' clock, which all pure cores share.
func (c *control) now() time.Duration { return time.Since(c.firstWorker.start) }

// sleepTime returns how long the loop may wait for an event.
func (c *control) sleepTime() time.Duration {
	d := time.Hour
	if at, ok := c.registrarDeadline(); ok {
		d = at - c.now()
	}
	for _, next := range [...]func() (time.Duration, bool){
		c.refusals.next, c.parked.next, c.moves.next, c.changePacer.next, c.lookups.next, c.announcer.next, c.unsendable.next, c.rejected.next, c.reports.next,
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
	if wait := c.requestPolicer.waitFor(c.now()); wait > 0 {
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
