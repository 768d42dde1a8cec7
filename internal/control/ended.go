// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast"
)

// Bounds on the state that is kept of ended groups.
const (
	maxEndedGroups  = 64   // groups
	maxEndedMembers = 4096 // members of all these groups together
)

// groupEnded reports the last outcomes of g, whose registration has ended, and records
// its last state.
func (c *control) groupEnded(g *group, last *dataplane.GroupState, why envelope.EndReason) {
	for _, d := range g.newOutcomes(&last.Outcomes) {
		c.reportOutcome(g, &d)
		if d.Kind == mcast.MemberEvicted {
			s := &g.slots[d.Member]
			g.rememberFormer(&envelope.Event{Member: s.record.Key(), EndReason: envelope.Evicted, Code: d.Syndrome, PSN: d.PSN}, c.portNameOf(s))
		}
	}
	c.outcomes.turns.flush(g, c.logTurn)
	a := c.describe(g, last)
	a.Ended = &api.Ended{Reason: why.String(), Time: time.Now()}
	c.endedGroups = append(c.endedGroups, a)
	members := 0
	for i := len(c.endedGroups) - 1; i >= 0; i-- {
		members += len(c.endedGroups[i].Members)
		if i < len(c.endedGroups)-1 && (len(c.endedGroups)-i > maxEndedGroups || members > maxEndedMembers) {
			c.endedGroups = slices.Delete(c.endedGroups, 0, i+1)
			break
		}
	}
}

// endReason returns why a group has ended, and has its last state say so.
func (c *control) endReason(e *envelope.Event) string {
	if e.Err == nil {
		return e.EndReason.String()
	}
	why := e.EndReason.String() + ": " + e.Err.Error()
	if n := len(c.endedGroups); n > 0 && c.endedGroups[n-1].IP == e.Group && c.endedGroups[n-1].Ended != nil {
		c.endedGroups[n-1].Ended.Reason = why
	}
	return why
}

// endText returns the state of an ended group in a few words.
func endText(a *api.Group) string {
	return cmp.Or(a.Failure, a.State)
}

// endOf returns how the last recorded group of an address ended; nil if none is recorded.
func (c *control) endOf(ip netip.Addr) *api.Ended {
	for i := len(c.endedGroups) - 1; i >= 0; i-- {
		if c.endedGroups[i].IP == ip {
			return c.endedGroups[i].Ended
		}
	}
	return nil
}

// EndedGroups returns the last states of the ended groups, oldest first: up to 64
// registrations. A registration that was replaced counts as ended.
func (e *Engine) EndedGroups() ([]api.Group, error) {
	list := []api.Group{}
	if !e.control.read(func() { list = append(list, e.control.endedGroups...) }) {
		return nil, errStopped
	}
	return list, nil
}
