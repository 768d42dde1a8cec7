// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/dataplane"
	"github.com/gleam-rdma/gleam/internal/envelope"
	"github.com/gleam-rdma/gleam/internal/mcast"
)

// delayReportRate bounds the reports of delayed groups per second, after a burst of ten: where all
// groups wait for one port, further ones are counted and their number is reported.
const delayReportRate = 50

// reportDelays reports which groups stall or are slowed down by a member, or are so no more.
func (c *control) reportDelays() (more bool) {
	for w := range c.plane.Workers() {
		if !c.plane.HasDelays(w) {
			continue
		}
		n, err := c.plane.Delays(w, c.delays[:])
		if err != nil {
			return false
		}
		for i := range n {
			if g := c.dir.byID[c.delays[i].Group]; g != nil {
				c.reportDelay(g, c.delays[i].Delay)
			}
		}
		more = more || c.plane.HasDelays(w)
	}
	return more
}

// reportDelay reports what delays g, if that is another thing than what was reported last.
func (c *control) reportDelay(g *group, d dataplane.Delay) {
	was := g.applied.delay
	if d.Kind == was.Kind && (d.Kind == dataplane.NoDelay || d.Member == was.Member) {
		return
	}
	g.applied.delay = d
	c.tellDelay(g, was, d)
	if !c.delayReports.Allow(c.now()) {
		c.delaysUnreported++
		return
	}
	at := d.Member
	if d.Kind == dataplane.NoDelay {
		at = was.Member
	}
	if int(at) >= len(g.slots) {
		return
	}
	s := &g.slots[at]
	j := api.Event{Group: g.reg.Group, Member: s.record.IP, QPN: api.QPN(s.record.QPN), Port: c.portNameOf(s)}
	where := c.placeText(s)
	switch d.Kind {
	case dataplane.Stalled:
		psn := api.PSN(d.PSN)
		j.Kind, j.PSN = api.EventStalled, &psn
		j.Reason = fmt.Sprintf("nothing was acknowledged for %v: the ACK waits for this member%s%s", (c.now() - d.Since).Round(100*time.Millisecond), andMore(d.Legs-1), where)
	case dataplane.Slow:
		j.Kind = api.EventSlow
		j.Reason = fmt.Sprintf("in the last %d s the ACK waited for this member alone nearly always: the group is as fast as it is%s", api.SlowTime, where)
	default:
		j.Kind = api.EventResumed
		j.Reason = fmt.Sprintf("the ACK advances again, after %v%s", (c.now() - was.Since).Round(100*time.Millisecond), where)
		if was.Kind == dataplane.Slow {
			j.Reason = fmt.Sprintf("the ACK does not wait for this member alone any more, after %v%s", (c.now() - was.Since).Round(100*time.Millisecond), where)
		}
	}
	if n := c.delaysUnreported; n > 0 {
		c.delaysUnreported = 0
		j.Reason += fmt.Sprintf("; %d such events of other groups are left out before this one", n)
	}
	c.notify(d.Kind == dataplane.Stalled, "group "+j.Kind, "group", g.reg.Group, "member", s.record.Key(), "port", j.Port, "reason", j.Reason)
	c.journal.add(j)
}

// andMore says that others share what is said of one.
func andMore(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// portNameOf returns the name of the port that leads to a member, or led to a former one; "" if that
// is not known.
func (c *control) portNameOf(s *slot) string {
	if pi := c.dir.portOf(s); pi >= 0 {
		return c.ports[pi].Name
	}
	return ""
}

// portNameOfMember is portNameOf for a member by its key.
func (c *control) portNameOfMember(g *group, k envelope.MemberKey) string {
	for i := len(g.slots) - 1; i >= 0; i-- { // the last one, if it has joined several times
		if s := &g.slots[i]; s.record.Key() == k {
			return c.portNameOf(s)
		}
	}
	return ""
}

// placeText says by which port a member is reached, and whether that is down; it begins with a
// semicolon. It is empty if no port is known.
func (c *control) placeText(s *slot) string {
	pi := c.dir.portOf(s)
	if pi < 0 {
		return ""
	}
	p := c.ports[pi]
	t := "; it is at port " + p.Name
	var m api.Member
	if c.behind(&m, s.behind); m.Switch != "" {
		t = fmt.Sprintf("; it is behind switch %s at port %s", m.Switch, p.Name)
	}
	if !p.reportedUp {
		t += ", which is down"
	}
	return t
}

// delayedBy returns the member that slows a group down, if one does.
func (g *group) delayedBy(d *dataplane.Delay) (m mcast.MemberID, ok bool) {
	return d.Member, d.Kind == dataplane.Slow && int(d.Member) < len(g.slots) && !g.slots[d.Member].gone
}

// maxNamedHosts is the number of hosts that an event of a port names.
const maxNamedHosts = 3

// portChanged reports that a port is up or down, with members of groups that are reached by it.
func (c *control) portChanged(p *port, state string) {
	var names []string
	for h := range c.dir.hosts.byLink[p.Ifindex] {
		if len(h.groups) == 0 {
			continue
		}
		names = append(names, h.ip.String())
		if len(names) > 16*maxNamedHosts {
			break
		}
	}
	slices.Sort(names)
	if n := len(names) - maxNamedHosts; n > 0 {
		names = append(names[:maxNamedHosts], "and more")
	}
	if len(names) > 0 {
		state += "; members there: " + strings.Join(names, ", ")
	}
	c.journal.add(api.Event{Kind: api.EventPort, Port: p.Name, Reason: state})
}

// wentDown notes that a port has gone down.
func (p *port) wentDown() { p.downs, p.lastDown = p.downs+1, time.Now() }

// SetLooks has the workers look for what delays groups, as they do from the start, or has them stop
// that, for measurements of what looks cost.
func (e *Engine) SetLooks(on bool) error { return e.plane.SetLooks(on) }
