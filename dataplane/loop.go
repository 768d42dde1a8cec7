// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"context"
	"time"

	"github.com/gleam-rdma/gleam/dataplane/locate"
)

// locateRetry is how often the registrar asks again for a registration whose members are
// being located. The last answer brings it back at once.
const locateRetry = 500 * time.Millisecond

// run is the control loop. It ends with ctx.
func (c *control) run(ctx context.Context, changes *locate.Changes) {
	defer close(c.ended)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		c.asker.run(c.locator)
	}()
	defer func() {
		close(c.asker.questions)
		<-asked
	}()
	c.changes = changes
	c.linksDue = true // before the watch began
	for {
		d := c.sleep()
		due := c.now() + d
		timer.Reset(d)
		requests := c.w.slow.requests.full
		if c.requests.wait(c.now()) > 0 {
			requests = nil
		}
		var do func()
		select {
		case <-ctx.Done():
			return
		case x := <-c.w.slow.renewals.full:
			do = func() { c.envelope(x) }
		case x := <-requests:
			do = func() { c.serve(x) }
		case x := <-c.w.slow.sights:
			do = func() { c.seen(x) }
		case <-c.crew.bell:
			do = func() { c.news = true }
		case f := <-c.cmds:
			do = f
		case x := <-c.asker.answers:
			do = func() { c.hear(x) }
		case <-changes.Bell:
			do = func() { c.pace.ring(c.now(), changes.Links()) }
		case <-timer.C:
			do = c.serveLate
		}
		c.began = c.now()
		if c.began-due > longTurn {
			c.hold = c.began + holdTime
		}
		c.renew()
		do()
		c.work()
		c.turns++
		c.longest = max(c.longest, c.now()-c.began)
	}
}

// A turn of the control loop does a bounded share of everything, and begins with the
// renewals that wait: a lease cannot end because of what others ask for. After a pause
// of its own, or of the machine, renewals have a moment to come in before leases end.
const (
	longTurn = 50 * time.Millisecond
	holdTime = 100 * time.Millisecond
)

// requestTurns is how many turns a second serve requests, after a burst of as many as come
// in burstTime; a turn serves those that wait. So a flood of requests wakes the control
// loop, which costs more than to turn one down, at this rate and not at its own.
// requestTime is how long a turn serves requests before it looks for other work.
const (
	requestTurns = 250
	requestTime  = 5 * time.Millisecond
)

// serve serves a request and those that wait behind it.
func (c *control) serve(d *datagram) {
	c.requests.take(c.began)
	c.envelope(d)
	for range len(c.w.slow.requests.full) {
		if c.now()-c.began > requestTime {
			return
		}
		c.renew()
		select {
		case d := <-c.w.slow.requests.full:
			c.envelope(d)
		default:
			return
		}
	}
}

// serveLate serves the requests that have waited for a turn, if that has come.
func (c *control) serveLate() {
	if c.requests.wait(c.began) > 0 {
		return
	}
	select {
	case d := <-c.w.slow.requests.full:
		c.serve(d)
	default:
	}
}

// renew serves the renewals that wait now.
func (c *control) renew() {
	l := c.w.slow.renewals
	for range len(l.full) {
		select {
		case d := <-l.full:
			c.envelope(d)
		default:
			return
		}
	}
}

// work does what is due.
func (c *control) work() {
	c.installReady()
	if c.news && c.newsAt <= c.now() {
		c.news = c.takeNews()
		c.newsAt = c.now() + newsGap
	}
	c.lookAround()
	if c.now()-c.began > longTurn {
		c.hold = c.now() + holdTime
	}
	if at, ok := c.deadline(); ok && at <= c.now() {
		c.renew()
		c.reg.Advance(c.now(), &c.out)
		c.finish()
	}
	c.prove()
	c.inquire()
	c.refused.due(c.now(), c.tellRefusal)
	c.unsendable.due(c.now(), c.tellUnsendable)
	c.rejected.due(c.now(), c.tellRejected)
	c.reports.due(c.now(), c.tellTurn)
	c.parking.retry(c.now(), c.trySend, c.unsent)
	if d, tell := c.asker.late(c.now()); tell {
		c.notify(true, "the kernel has not said for some time where a member is: registrations wait, members keep their places", "for", d)
	}
	if err := c.dir.hosts.deaf; err != nil && !c.deaf {
		c.deaf = true
		c.notify(true, "changes of some members' places are not heard of, since the netlink filter does not take their addresses", "error", err)
	}
	c.pose()
}

// deadline returns when the registrar has something to do.
func (c *control) deadline() (at time.Duration, ok bool) {
	at, ok = c.reg.NextDeadline()
	return max(at, c.hold), ok
}

// now is the time of the worker's clock, which all pure cores share.
func (c *control) now() time.Duration { return time.Since(c.w.start) }

// sleep returns how long the loop may wait for something to happen.
func (c *control) sleep() time.Duration {
	d := time.Hour
	if at, ok := c.deadline(); ok {
		d = at - c.now()
	}
	for _, next := range [...]func() (time.Duration, bool){
		c.refused.next, c.parking.next, c.moves.next, c.pace.next, c.asker.next, c.announcer.next, c.unsendable.next, c.rejected.next, c.reports.next,
	} {
		if at, ok := next(); ok {
			d = min(d, at-c.now())
		}
	}
	if at, ok := c.dir.hosts.next(c.now()); ok && c.asker.room() {
		d = min(d, at-c.now())
	}
	if at, ok := c.dir.proofs.next(c.now()); ok {
		d = min(d, at-c.now())
	}
	if c.news {
		d = min(d, c.newsAt-c.now())
	}
	if wait := c.requests.wait(c.now()); wait > 0 {
		d = min(d, wait)
	}
	if len(c.dir.stale)+len(c.dir.ready) > 0 {
		d = 0
	}
	return max(d, 0)
}

// do runs f on the control loop and returns when it has run; false if the loop
// has ended.
func (c *control) do(f func()) bool {
	done := make(chan struct{})
	select {
	case c.cmds <- func() { f(); close(done) }:
		<-done
		return true
	case <-c.ended:
		return false
	}
}
