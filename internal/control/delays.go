// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/dataplane/blame"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast"
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
		n, err := c.plane.Delays(w, c.outcomes.delays[:])
		if err != nil {
			return false
		}
		for i := range n {
			if g := c.dir.byID[c.outcomes.delays[i].Group]; g != nil {
				c.reportDelay(g, c.outcomes.delays[i].Delay)
				c.reportBlamed(g, &c.outcomes.delays[i].Blamed)
			}
		}
		more = more || c.plane.HasDelays(w)
	}
	return more
}

// reportDelay reports that g stalls, or does so no more, if that is another thing than what was reported last.
func (c *control) reportDelay(g *group, d dataplane.Delay) {
	was := g.applied().delay
	if d.Kind == was.Kind && (d.Kind == dataplane.NoDelay || d.Member == was.Member) {
		return
	}
	g.apply().delay = d
	c.tellDelay(g, was, d)
	switch d.Kind {
	case dataplane.Stalled:
		psn := api.PSN(d.PSN)
		c.addDelayEvent(g, d.Member, api.Event{Kind: api.EventStalled, PSN: &psn, Reason: fmt.Sprintf("nothing was acknowledged for %v: the ACK waits for this member%s",
			(c.now() - d.Since).Round(100*time.Millisecond), andMore(d.Legs-1))})
	default:
		c.addDelayEvent(g, was.Member, api.Event{Kind: api.EventResumed, Reason: fmt.Sprintf("the ACK advances again, after %v", (c.now() - was.Since).Round(100*time.Millisecond))})
	}
}

// reportBlamed reports which members cost g time, and why, and which do so no more, where that has
// changed.
func (c *control) reportBlamed(g *group, b *dataplane.Blamed) {
	if g.applied().blamed == nil {
		if b.Count == 0 {
			return
		}
		g.apply().blamed = &dataplane.Blamed{}
	}
	was := *g.outcomes.blamed
	*g.outcomes.blamed = *b
	for i := range was.Count {
		if v := &was.Members[i]; b.Cause(v.Member) == blame.None {
			c.addDelayEvent(g, v.Member, api.Event{Kind: api.EventResumed, Reason: fmt.Sprintf("%s: it costs the group no time any more, after %v",
				v.Cause, (c.now() - was.Named[i]).Round(100*time.Millisecond))})
		}
	}
	for i := range b.Count {
		if v := &b.Members[i]; v.Cause != was.Cause(v.Member) {
			c.addDelayEvent(g, v.Member, api.Event{Kind: api.EventSlow, Reason: blameText(v)})
		}
	}
}

// blamed says what a member does to its group. Losses have a member named before they cost time.
func blamed(v *blame.Verdict) string {
	if v.Waited < time.Millisecond {
		return "loses packets that the others get"
	}
	return "costs the group time"
}

// blameText says by what a member costs its group time, and how much.
func blameText(v *blame.Verdict) string {
	over := v.Over.Round(time.Second)
	what := ""
	switch v.Cause {
	case blame.Loss:
		what = fmt.Sprintf("%s sent to it again in the last %v, after %s", count(int(v.Repaired), "packet was", "packets were"), over, count(int(v.NAKs), "NAK", "NAKs"))
		if v.NAKs == 0 {
			what = fmt.Sprintf("%s sent to it again in the last %v, as it had not acknowledged", count(int(v.Repaired), "packet was", "packets were"), over)
		}
	case blame.NotReady:
		what = fmt.Sprintf("it had no receive posted, and sent %s in the last %v", count(int(v.RNRNAKs), "RNR NAK", "RNR NAKs"), over)
	case blame.NoAnswer:
		what = fmt.Sprintf("it was asked %s in the last %v, and did not answer in time", count(int(v.Probes), "time", "times"), over)
	case blame.SlowLink:
		what = "the link to it takes data slower than it comes"
	case blame.Path:
		what = "the way to it and back is long"
	}
	if v.RTT != 0 {
		what += fmt.Sprintf(": a round trip takes %v, those of others %v", v.RTT, v.OthersRTT)
	}
	if v.Waited < time.Millisecond {
		return fmt.Sprintf("%s: %s; the ACK has not waited for it beyond the others so far", v.Cause, what)
	}
	return fmt.Sprintf("%s: %s; the ACK waited %v of %v for it beyond the others", v.Cause, what, v.Waited.Round(time.Millisecond), over)
}

// delayMessages are the messages of the log for kinds of events.
var delayMessages = map[string]string{
	api.EventSlow:    "a member delays its group",
	api.EventStalled: "the ACK of a group has stopped: it waits for a member",
	api.EventResumed: "a member delays its group no longer",
}

// addDelayEvent completes an event of member m of g, and adds it to log and journal, unless there are
// too many.
func (c *control) addDelayEvent(g *group, m mcast.MemberID, j api.Event) {
	if !c.outcomes.delayReports.Allow(c.now()) {
		c.outcomes.delaysUnreported++
		return
	}
	if int(m) >= len(g.slots) {
		return
	}
	s := &g.slots[m]
	j.Group, j.Member, j.QPN, j.Port = g.reg.Group, s.record.IP, api.QPN(s.record.QPN), c.portNameOf(s)
	j.Reason += c.placeText(s)
	if n := c.outcomes.delaysUnreported; n > 0 {
		c.outcomes.delaysUnreported = 0
		j.Reason += fmt.Sprintf("; %d such events of other groups are left out before this one", n)
	}
	c.notify(j.Kind == api.EventStalled, delayMessages[j.Kind], "group", g.reg.Group, "member", s.record.Key(), "port", j.Port, "reason", j.Reason)
	c.journal.Add(j)
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
	if c.switches.DescribeMember(&m, s.behind); m.Switch != "" {
		t = fmt.Sprintf("; it is behind switch %s at port %s", m.Switch, p.Name)
	}
	if !p.reportedUp {
		t += ", which is down"
	}
	return t
}

// liveSlot returns the slot of member m of g; nil if it has gone.
func (g *group) liveSlot(m mcast.MemberID) *slot {
	if int(m) >= len(g.slots) || g.slots[m].gone {
		return nil
	}
	return &g.slots[m]
}

// maxNamedHosts is the number of hosts that an event of a port names.
const maxNamedHosts = 3

// portChanged reports that a port is up or down, with members of groups that are reached by it.
func (c *control) portChanged(p *port, state string) {
	var names []string
	for h := range c.dir.hosts.Behind(p.Ifindex) {
		if !h.IsMember() {
			continue
		}
		names = append(names, h.IP().String())
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
	c.journal.Add(api.Event{Kind: api.EventPort, Port: p.Name, Reason: state})
}

// wentDown notes that a port has gone down.
func (p *port) wentDown() { p.downs, p.lastDown = p.downs+1, time.Now() }

// SetLooks has the workers look for what delays groups, as they do from the start, or has them stop
// that, for measurements of what looks cost.
func (e *Engine) SetLooks(on bool) error { return e.plane.SetLooks(on) }
