// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast"
)

// Bounds on what is remembered of groups that have gone.
const (
	maxGone        = 64   // groups
	maxGoneMembers = 4096 // of all of them together
)

// lastState is what the core knew of a registration when it ended. Both parts are
// taken in the closure that ends it.
type lastState struct {
	outcomes mcast.Outcomes
	status   mcast.GroupStatus
}

// take asks the worker's core. It runs on the worker.
func (l *lastState) take(w *worker, id mcast.GroupID) {
	w.sw.Outcomes(id, &l.outcomes)
	w.sw.Snapshot(id, &l.status)
}

// ends tells the last words of g, whose registration has ended, and remembers its
// last state.
func (c *control) ends(g *group, last *lastState, why envelope.Why) {
	for _, d := range g.learn(&last.outcomes) {
		c.tell(g, &d)
		if d.Kind == mcast.MemberEvicted {
			g.remember(&envelope.Event{Member: g.slots[d.Member].rec.Key(), Why: envelope.Evicted, Code: d.Syndrome, PSN: d.PSN})
		}
	}
	c.reports.flush(g, c.tellTurn)
	a := c.describe(g, &last.status)
	a.Gone = &api.Gone{Reason: why.String(), Time: time.Now()}
	c.gone = append(c.gone, a)
	members := 0
	for i := len(c.gone) - 1; i >= 0; i-- {
		members += len(c.gone[i].Members)
		if i < len(c.gone)-1 && (len(c.gone)-i > maxGone || members > maxGoneMembers) {
			c.gone = slices.Delete(c.gone, 0, i+1)
			break
		}
	}
}

// endState says in a few words how a group that has gone stood.
func endState(a *api.Group) string {
	return cmp.Or(a.Failure, a.State)
}

// goneOf returns how the last group of an address that is remembered has ended; nil
// if none is.
func (c *control) goneOf(ip netip.Addr) *api.Gone {
	for i := len(c.gone) - 1; i >= 0; i-- {
		if c.gone[i].IP == ip {
			return c.gone[i].Gone
		}
	}
	return nil
}

// GoneGroups returns the last states of the groups that have gone, oldest first: up
// to 64 registrations. A registration that was replaced is one of them.
func (e *Engine) GoneGroups() ([]api.Group, error) {
	list := []api.Group{}
	if !e.control.do(func() { list = append(list, e.control.gone...) }) {
		return nil, errStopped
	}
	return list, nil
}
