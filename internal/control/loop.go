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

// loop is what the control loop has of its own iterations.
type loop struct {
	timed           []timed // timedWork
	iterations      uint64
	start           time.Duration     // the start of the present iteration
	longest         time.Duration     // longest iteration so far
	leasesHeldUntil time.Duration     // the registrar's deadlines are not served before
	requestPolicer  dataplane.Policer // iterations that serve requests
}

// run is the control loop. It ends with ctx.
func (c *control) run(ctx context.Context, changes *locate.Changes) {
	defer close(c.ended)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	lookupsEnded := make(chan struct{})
	go func() {
		defer close(lookupsEnded)
		c.kernel.lookups.Run(c.kernel.locator)
	}()
	defer func() {
		c.kernel.lookups.End()
		<-lookupsEnded
	}()
	c.kernel.changes = changes
	c.kernel.linksDue = true // before the watcher started
	c.restoreGroups()
	c.notify.Phase("groups taken up")
	for {
		d := c.sleepTime()
		due := c.now() + d
		timer.Reset(d)
		requests := c.plane.Requests()
		if c.loop.requestPolicer.WaitFor(c.now()) > 0 {
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
			do = func() { c.dir.inquirer.Sighting(x) }
		case <-c.plane.Changed():
			do = func() { c.outcomes.due = true }
		case f := <-c.closures:
			do = f
		case r := <-c.reads:
			do = func() { c.serveReading(r) }
		case x := <-c.kernel.lookups.Results():
			do = func() { c.lookupDone(x) }
		case <-c.switches.Bell:
			do = c.followNeighbours
		case <-c.kernel.routeBell:
			do = c.dir.hosts.FollowRoutes
		case <-c.keeper.Bell():
			do = c.followFile
		case <-changes.Bell:
			do = func() { c.kernel.pacer.noteChange(c.now(), changes.Links()) }
		case <-timer.C:
			do = c.serveDeferred
		}
		c.loop.start = c.now()
		if c.loop.start-due > longIteration {
			c.loop.leasesHeldUntil = c.loop.start + leaseGrace
		}
		c.serveRenewals()
		do()
		c.doDue()
		c.loop.iterations++
		c.loop.longest = max(c.loop.longest, c.now()-c.loop.start)
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
	c.loop.requestPolicer.Allow(c.loop.start)
	c.serveRequest(d)
	for range len(c.plane.Requests()) {
		if c.now()-c.loop.start > maxRequestTime {
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
	if !c.departures.outbox.HasRoom(d.From.Port) {
		c.count.outboxFull++
		d.Release()
		return
	}
	c.serveEnvelope(d)
}

// serveDeferred serves the requests that the policer has deferred, if it allows them now.
func (c *control) serveDeferred() {
	if c.loop.requestPolicer.WaitFor(c.loop.start) > 0 {
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

// now returns the time by the workers' clock, which all pure cores share.
func (c *control) now() time.Duration { return c.plane.Now() }
