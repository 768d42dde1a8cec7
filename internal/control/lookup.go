// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"time"

	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/internal/control/location"
)

// kernelTables is what the control loop follows of the kernel: the locations of hosts, the state of the
// ports' interfaces, and the changes of both.
type kernelTables struct {
	locator           location.Locator
	lookups           *location.Lookups
	changes           *locate.Changes
	pacer             changePacer // delays the handling of changes
	watcher           watcher     // nil in tests
	routeBell         <-chan struct{}
	filterErrReported bool          // the operator was told that the netlink filter fails
	rechecks          []sweep       // ports that have changed, whose groups are checked again
	linksDue          bool          // the ports' state must be requested
	linksRequested    bool          // the locator has that request
	vrfsUnknown       bool          // the last read of the ports' VRFs failed, and the operator was told
	portRetryAt       time.Duration // the time when the state of the ports is read because of retryPorts; 0: never
}

// retryPorts has the state of the ports read at the given time.
func (x *kernelTables) retryPorts(at time.Duration) {
	if x.portRetryAt == 0 || at < x.portRetryAt {
		x.portRetryAt = at
	}
}

// nextPortRetry returns when the state of the ports is read because of retryPorts.
func (x *kernelTables) nextPortRetry() (at time.Duration, ok bool) {
	return x.portRetryAt, x.portRetryAt > 0
}

// submitLookups submits the lookups that are due: the state of the ports first.
func (c *control) submitLookups() {
	k := &c.kernel
	if k.linksDue && k.lookups.HasRoom() && !k.linksRequested {
		k.linksDue, k.linksRequested = false, true
		k.lookups.SubmitPorts(c.now(), hostPorts{c.plane, c.ports})
	}
	k.lookups.SubmitHosts(c.now(), c.dir.hosts)
}

// lookupDone handles a result, and any others that have come; it submits no lookups in
// between.
func (c *control) lookupDone(x location.LookupResult) {
	for {
		if p := c.kernel.lookups.Completed(&x, c.dir.hosts, c.now()); p != nil {
			c.kernel.linksRequested = false
			c.vrfsRead(p.NewVRFs, p.Err)
			c.linksChanged(p.Ports, p.States)
		}
		select {
		case x = <-c.kernel.lookups.Results():
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
		c.dir.hosts.Apply(&locate.Set{All: true}, c.now())
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
