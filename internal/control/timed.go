// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import "time"

// timed is a piece of the control loop's work that becomes due as time passes.
type timed struct {
	next func() (at time.Duration, ok bool) // the time when it becomes due next; ok is false if it does not
	do   func()                             // does what is due
}

// timedWork returns all of these pieces, in the order in which an iteration does them.
func (c *control) timedWork() []timed {
	x := &c.connections
	return []timed{
		{c.nextReady, c.installReady},
		{never, c.tellWays},
		{c.outcomes.next, c.serveOutcomes},
		{c.kernel.nextPortRetry, c.serveRetryPorts},
		{c.nextRecheck, c.continueRechecks},
		{earliest(c.kernel.pacer.next, c.dir.nextTable, c.departures.announcer.next), c.followChanges},
		{c.registrarDeadline, c.advanceRegistrar},
		{earliest(x.heldMADs.next, x.manager.NextDeadline, x.unkept.next), c.serveConnections},
		{c.dir.inquirer.NextProof, c.dir.inquirer.SendProofs},
		{c.dir.inquirer.NextInquiry, c.dir.inquirer.Advance},
		sampled(c, c.moves.unconfirmed, c.logUnconfirmed),
		sampled(c, c.moves.unproven, c.logUnproven),
		sampled(c, c.refused.envelopes, c.logRefusal),
		sampled(c, c.refused.unsendable, c.logUnsendable),
		sampled(c, c.refused.rejected, c.logRejection),
		sampled(c, c.refused.unchanged, c.logUnchanged),
		sampled(c, c.dir.noWays, c.dir.logNoWay),
		{c.outcomes.turns.next, func() { c.outcomes.turns.due(c.now(), c.logTurn) }},
		sampled(c, x.refused, c.logRefused),
		sampled(c, x.states, c.logState),
		sampled(c, x.strays, c.logStrayMAD),
		{c.departures.parked.next, func() { c.departures.parked.retry(c.now(), c.trySend, c.countUnsent) }},
		{c.kernel.lookups.Next, c.warnOfLookups},
		{c.nextLookup, c.submitLookups},
		{never, c.emptyOutbox},
		{never, c.sendDatagrams},
	}
}

// never is the next of work that time alone does not make due.
func never() (at time.Duration, ok bool) { return 0, false }

// earliest returns the next of work that has several reasons.
func earliest(reasons ...func() (time.Duration, bool)) func() (time.Duration, bool) {
	return func() (at time.Duration, ok bool) {
		for _, next := range reasons {
			if t, some := next(); some && (!ok || t < at) {
				at, ok = t, true
			}
		}
		return at, ok
	}
}

// sampled is the work of a sampler.
func sampled[T any](c *control, s *sampler[T], report func(x T, suppressed uint64)) timed {
	return timed{s.next, func() { s.due(c.now(), report) }}
}

// doDue does the work that is due.
func (c *control) doDue() {
	for i := range c.loop.timed {
		c.loop.timed[i].do()
	}
}

// sleepTime returns how long the loop may wait for an event.
func (c *control) sleepTime() time.Duration {
	d := time.Hour
	for i := range c.loop.timed {
		if at, ok := c.loop.timed[i].next(); ok {
			d = min(d, at-c.now())
		}
	}
	if wait := c.loop.requestPolicer.WaitFor(c.now()); wait > 0 {
		d = min(d, wait)
	}
	return max(d, 0)
}

// registrarDeadline returns the registrar's next deadline, at the earliest when leases
// are no longer held.
func (c *control) registrarDeadline() (at time.Duration, ok bool) {
	at, ok = c.registrar.NextDeadline()
	return max(at, c.loop.leasesHeldUntil), ok
}

// advanceRegistrar has the registrar serve its deadlines. Leases are held if this iteration has been long so far.
func (c *control) advanceRegistrar() {
	if c.now()-c.loop.start > longIteration {
		c.loop.leasesHeldUntil = c.now() + leaseGrace
	}
	if at, ok := c.registrarDeadline(); ok && at <= c.now() {
		c.serveRenewals()
		c.registrar.Advance(c.now(), &c.out)
		c.sendOutput()
	}
}

func (c *control) nextReady() (at time.Duration, ok bool) { return 0, len(c.dir.ready) > 0 }

// nextLookup returns when submitLookups has work for hosts.
func (c *control) nextLookup() (at time.Duration, ok bool) {
	at, ok = c.dir.hosts.Next(c.now())
	return at, ok && c.kernel.lookups.HasRoom()
}

// warnOfLookups tells the operator of a kernel that does not answer lookups, and of changes that it does not report.
func (c *control) warnOfLookups() {
	if d, tell := c.kernel.lookups.Overdue(c.now()); tell {
		c.notify(true, "the kernel has not answered a lookup of a location for some time: registrations wait, members keep their locations", "duration", d)
	}
	if err := c.dir.hosts.FilterErr(); err != nil && !c.kernel.filterErrReported {
		c.kernel.filterErrReported = true
		c.notify(true, "changes of some members' locations are not reported, since the netlink filter does not take their addresses", "error", err)
	}
}
