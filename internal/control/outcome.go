// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// appliedOutcomes is the part of a group's outcomes that the control loop has applied.
// Evictions are recorded in slot.gone.
type appliedOutcomes struct {
	turns, refusals uint64
	conflicts       uint64
	mismatches      uint64
	failed          bool
	source          envelope.MemberKey // the source of the last turn that was applied; zero if there was none
	delay           dataplane.Delay    // the delay that was reported last
	blamed          *dataplane.Blamed  // likewise; nil: nobody
	failure         string             // why
	quiet           bool               // a source was reported within turnGap
	held            turn               // the last source since then, not reported yet
}

// applied returns the outcomes of g that were applied, for reading.
func (g *group) applied() appliedOutcomes {
	if g.outcomes == nil {
		return appliedOutcomes{}
	}
	return *g.outcomes
}

// apply returns the outcomes of g that were applied, for writing.
func (g *group) apply() *appliedOutcomes {
	if g.outcomes == nil {
		g.outcomes = &appliedOutcomes{}
	}
	return g.outcomes
}

// newOutcome is an outcome that is new to the control loop.
type newOutcome struct {
	mcast.Event
	times uint64 // outcomes of this kind since the last one that was applied
}

// newOutcomes returns the outcomes in o that are new to g, and records them as applied.
// They are in the order of importance: evictions come first.
func (g *group) newOutcomes(o *mcast.Outcomes) (ds []newOutcome) {
	if o.Generation != g.generation {
		return nil // of another registration
	}
	for i, e := range o.Evicted {
		if e.Kind != 0 && i < len(g.slots) && !g.slots[i].gone {
			g.markGone(i)
			ds = append(ds, newOutcome{e, 1})
		}
	}
	ds = append(append(ds, g.newTurns(o)...), g.newMismatches(o)...)
	if o.Failure.Kind != 0 && !g.applied().failed {
		x := g.apply()
		x.failed = true
		x.failure = fmt.Sprintf("because of %s: %s", g.slots[o.Failure.Member].record.Key(), failureText(&o.Failure))
		ds = append(ds, newOutcome{o.Failure, 1})
	}
	return ds
}

// newMismatches is newOutcomes for numbers in members' packets that contradict the
// registration. It checks the members only if there are more mismatches than before.
func (g *group) newMismatches(o *mcast.Outcomes) (ds []newOutcome) {
	if o.MismatchesReported == g.applied().mismatches {
		return nil
	}
	g.apply().mismatches = o.MismatchesReported
	for i := range o.Mismatches {
		for n := range mcast.NumNumbers {
			m := &o.Mismatches[i][n]
			if i >= len(g.slots) || g.slots[i].gone || g.slots[i].mismatchReported[n] || !m.Confirmed() {
				continue
			}
			g.slots[i].mismatchReported[n] = true
			ds = append(ds, newOutcome{mcast.Event{
				Kind: mcast.NumberMismatch, Member: mcast.MemberID(i), PSN: m.Observed, Number: n, Registered: m.Registered,
			}, uint64(m.Count)})
		}
	}
	return ds
}

// newTurns is newOutcomes for outcomes that concern only the operator: changes of source,
// refused requests of a source, and switches that disagree on the source.
func (g *group) newTurns(o *mcast.Outcomes) (ds []newOutcome) {
	was := g.applied()
	if n := o.Turns - was.turns; n > 0 {
		x := g.apply()
		x.turns = o.Turns
		x.source = g.slots[o.LastSource.Member].record.Key()
		ds = append(ds, newOutcome{o.LastSource, n})
	}
	if n := o.Refusals - was.refusals; n > 0 {
		g.apply().refusals = o.Refusals
		ds = append(ds, newOutcome{o.LastRefusal, n})
	}
	if n := o.Conflicts - was.conflicts; n > 0 {
		g.apply().conflicts = o.Conflicts
		ds = append(ds, newOutcome{o.LastConflict, n})
	}
	return ds
}

// outcomeBatch is the number of groups whose outcomes a worker returns between two
// batches of packets.
const outcomeBatch = 16

// maxOutcomeGroups is the number of groups whose outcomes the control loop reads from a
// worker in one iteration.
const maxOutcomeGroups = 64

// outcomeInterval is the least time between two reads of the workers' outcomes: a group
// whose members take turns as source changes with every turn.
const outcomeInterval = 10 * time.Millisecond

// outcomeReader has what the control loop reads of the workers.
type outcomeReader struct {
	batch            [outcomeBatch]mcast.Outcomes       // those of the groups that a worker reports in one call
	due              bool                               // more outcomes wait
	notBefore        time.Duration                      // outcomes are not requested before
	delays           [outcomeBatch]dataplane.GroupDelay // those that a worker reports in one call
	delayReports     dataplane.Policer
	delaysUnreported int // delays since the last report of one
	turns            turnReports
}

// next returns when outcomes are requested.
func (x *outcomeReader) next() (at time.Duration, ok bool) { return x.notBefore, x.due }

// serveOutcomes collects the outcomes that the workers have reported.
func (c *control) serveOutcomes() {
	if c.outcomes.due && c.outcomes.notBefore <= c.now() {
		c.outcomes.due = c.collectOutcomes()
		c.outcomes.notBefore = c.now() + c.outcomeInterval()
	}
}

// collectOutcomes reads the outcomes of the workers' changed groups, each group once, and
// applies them. It reports whether more groups have changed since.
func (c *control) collectOutcomes() (more bool) {
	for w := range c.plane.Workers() {
		if !c.plane.HasChanged(w) {
			continue
		}
		todo := outcomeBatch // the first answer gives their number
		for first := true; todo > 0; first = false {
			n, left, err := c.plane.Outcomes(w, c.outcomes.batch[:min(todo, outcomeBatch)])
			if err != nil {
				return false
			}
			if first {
				todo = min(n+left, maxOutcomeGroups)
			}
			todo -= n
			for i := range n {
				if g := c.dir.byID[c.outcomes.batch[i].Group]; g != nil {
					c.applyOutcomes(g, &c.outcomes.batch[i])
				}
			}
		}
		more = more || c.plane.HasChanged(w)
	}
	return c.reportDelays() || more
}

// applyOutcomes gives the new outcomes of g to the registrar and the operator.
func (c *control) applyOutcomes(g *group, o *mcast.Outcomes) {
	if o.Generation == g.generation && o.Positions != g.kept.reported {
		c.keepPositions(g)
	}
	for _, d := range g.newOutcomes(o) {
		m := g.slots[d.Member].record.Key()
		switch d.Kind {
		case mcast.MemberEvicted:
			c.dir.slotGone(g, int(d.Member))
			c.registrar.MemberEvicted(c.now(), g.reg.Group, m, d.Syndrome, d.PSN, &c.out)
			c.warnEviction(g, &d)
			c.sendOutput() // it adds to the journal
			continue
		case mcast.GroupFailed:
			c.registrar.GroupFailed(c.now(), g.reg.Group, m, d.Cause, d.PSN, &c.out)
			c.keep(g.reg.Group)
			c.reportOutcome(g, &d)
			c.sendOutput()
			continue
		}
		c.reportOutcome(g, &d)
	}
}

// reportOutcome reports an outcome of g to the operator, by log and journal.
func (c *control) reportOutcome(g *group, d *newOutcome) {
	m := g.slots[d.Member].record.Key()
	if d.Kind == mcast.SourceChanged {
		if t := (turn{m, d.PSN, d.times}); c.outcomes.turns.add(c.now(), g, t) {
			c.logTurn(g, t)
		}
		return
	}
	psn := api.PSN(d.PSN)
	j := api.Event{Group: g.reg.Group, Member: m.IP, QPN: api.QPN(m.QPN), Port: c.portNameOf(&g.slots[d.Member]), PSN: &psn}
	switch d.Kind {
	case mcast.MemberEvicted:
		c.warnEviction(g, d)
		j.Kind, j.Reason = api.EventEvicted, envelope.Cause(d.Syndrome)
	case mcast.SourceRefused:
		c.notify(true, "the switch has refused a request of the source, by a fatal NAK", "group", g.reg.Group, "source", m, "psn", d.PSN, "syndrome", d.Syndrome, "cause", failureText(&d.Event))
		j.Kind, j.Reason = api.EventRefused, failureText(&d.Event)
	case mcast.NumberMismatch:
		why := mismatchText(d.Number, d.PSN, d.Registered)
		c.notify(true, "a member's packets do not fit its registration", "group", g.reg.Group, "member", m, "diagnosis", why)
		j.Kind, j.Reason = api.EventMismatch, why
		if d.Number != mcast.SendPSN {
			j.PSN = nil
		}
	case mcast.SourceConflict:
		why := c.conflictText(g, d.Member)
		c.notify(true, "the switches of a group disagree on its source", "group", g.reg.Group, "member", m, "psn", d.PSN, "cause", why)
		j.Kind, j.Reason = api.EventConflict, why
	case mcast.GroupFailed:
		c.notify(true, "group failed", "group", g.reg.Group, "member", m, "psn", d.PSN, "syndrome", d.Syndrome, "cause", failureText(&d.Event))
		j.Kind, j.Reason = api.EventFailed, failureText(&d.Event)
	default:
		return
	}
	c.journal.Add(j)
}

func (c *control) warnEviction(g *group, d *newOutcome) {
	c.notify(true, "member evicted", "group", g.reg.Group, "member", g.slots[d.Member].record.Key(),
		"last_psn", d.PSN, "syndrome", d.Syndrome, "cause", envelope.Cause(d.Syndrome))
}

// failureText describes why a group has failed, and the NAK that its source got if that
// is another one.
func failureText(e *mcast.Event) string {
	why := envelope.Cause(e.Cause)
	if e.Syndrome != 0 && e.Syndrome != e.Cause {
		why += "; the source got a " + envelope.Cause(e.Syndrome)
	}
	return why
}

// conflictText describes why the data of a member, which a neighbour sends, does not pass.
func (c *control) conflictText(g *group, m mcast.MemberID) string {
	at := api.Member{IP: g.slots[m].record.IP}
	c.switches.DescribeMember(&at, g.slots[m].behind)
	return fmt.Sprintf("switch %s sends data of %s, and that of the source is not acknowledged here: the switches disagree on the source; if that lasts, register the group anew", at.Switch, at.IP)
}

// mismatchText describes which number of a member's registration is likely wrong, and the
// value to register.
func mismatchText(n mcast.Number, seen, want rocev2.PSN) string {
	if n == mcast.VirtualQPN {
		return fmt.Sprintf("wrong_qpn: packets for QPN 0x%06x, the group's virtual QPN is 0x%06x: connect the queue pair to that, or register the group with --qpn", uint32(seen), uint32(want))
	}
	if n == mcast.ReceivePSN {
		return fmt.Sprintf("wrong rq-psn: the queue pair expects PSN 0x%06x, registered 0x%06x: after traffic ibv_query_qp has the present one; or restart the queue pair, with fresh PSNs", uint32(seen), uint32(want))
	}
	return fmt.Sprintf("wrong sq-psn: packets seen at PSN 0x%06x, expected 0x%06x by registration: register what the queue pair sends next", uint32(seen), uint32(want))
}
