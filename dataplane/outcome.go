// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"fmt"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// known is what the control loop has learnt of a group's outcomes. Evictions are
// known by slot.gone.
type known struct {
	turns, refusals uint64
	differing       uint64
	failed          bool
	failure         string // why
}

// decision is an outcome that is new to the control loop.
type decision struct {
	mcast.Event
	times uint64 // of this kind since the last one that was learnt
}

// learn returns what o says that g does not know yet, and notes that it is known.
// The order is that of importance: members that are out come first.
func (g *group) learn(o *mcast.Outcomes) (ds []decision) {
	if o.Generation != g.generation {
		return nil // of another registration
	}
	for i, e := range o.Evicted {
		if e.Kind != 0 && i < len(g.slots) && !g.slots[i].gone {
			g.leaves(i)
			ds = append(ds, decision{e, 1})
		}
	}
	ds = append(append(ds, g.learnTurns(o)...), g.learnNumbers(o)...)
	if o.Failed.Kind != 0 && !g.known.failed {
		g.known.failed = true
		g.known.failure = fmt.Sprintf("because of %s: %s", g.slots[o.Failed.Member].rec.Key(), failure(&o.Failed))
		ds = append(ds, decision{o.Failed, 1})
	}
	return ds
}

// learnNumbers is learn for numbers of members' packets that are not the registered
// ones. It looks at the members only if there are more than before.
func (g *group) learnNumbers(o *mcast.Outcomes) (ds []decision) {
	if o.Differing == g.known.differing {
		return nil
	}
	g.known.differing = o.Differing
	for i := range o.Mismatches {
		for n := range mcast.NumNumbers {
			m := &o.Mismatches[i][n]
			if i >= len(g.slots) || g.slots[i].gone || g.slots[i].wrong[n] || !m.Holds() {
				continue
			}
			g.slots[i].wrong[n] = true
			ds = append(ds, decision{mcast.Event{
				Kind: mcast.NumberDiffers, Member: mcast.MemberID(i), PSN: m.Seen, Number: n, Want: m.Want,
			}, uint64(m.Times)})
		}
	}
	return ds
}

// learnTurns is learn for what concerns the operator alone: who was the source, and
// which of its requests were refused.
func (g *group) learnTurns(o *mcast.Outcomes) (ds []decision) {
	if n := o.Turns - g.known.turns; n > 0 {
		g.known.turns = o.Turns
		ds = append(ds, decision{o.Source, n})
	}
	if n := o.Refusals - g.known.refusals; n > 0 {
		g.known.refusals = o.Refusals
		ds = append(ds, decision{o.Refused, n})
	}
	return ds
}

// takeNews asks the workers for the outcomes of the groups that have news, each
// group once, and applies them. It reports whether there are more by now.
func (c *control) takeNews() (more bool) {
	for _, w := range c.crew.workers {
		if !w.news.some.Load() {
			continue
		}
		todo := newsBatch // the first answer says how many there are
		for asked := false; todo > 0; asked = true {
			var n, left int
			if !w.do(func() { n, left = w.outcomes(c.outcomes[:min(todo, newsBatch)]) }) {
				return false
			}
			if !asked {
				todo = min(n+left, newsMost)
			}
			todo -= n
			for i := range n {
				if g := c.dir.byID[c.outcomes[i].Group]; g != nil {
					c.apply(g, &c.outcomes[i])
				}
			}
		}
		more = more || w.news.some.Load()
	}
	return more
}

// apply makes the registrar and the operator know what g has decided.
func (c *control) apply(g *group, o *mcast.Outcomes) {
	for _, d := range g.learn(o) {
		m := g.slots[d.Member].rec.Key()
		switch d.Kind {
		case mcast.MemberEvicted:
			c.reg.MemberEvicted(c.now(), g.reg.Group, m, d.Syndrome, d.PSN, &c.out)
			c.warnEvicted(g, &d)
			c.finish() // it adds to the journal
			continue
		case mcast.GroupFailed:
			c.reg.GroupFailed(c.now(), g.reg.Group, m, d.Cause, d.PSN, &c.out)
			c.tell(g, &d)
			c.finish()
			continue
		}
		c.tell(g, &d)
	}
}

// tell says to the operator what g has decided, by the log and the journal.
func (c *control) tell(g *group, d *decision) {
	m := g.slots[d.Member].rec.Key()
	if d.Kind == mcast.SourceChanged {
		if t := (turn{m, d.PSN, d.times}); c.reports.add(c.now(), g, t) {
			c.tellTurn(g, t)
		}
		return
	}
	psn := uint32(d.PSN)
	j := api.Event{Group: g.reg.Group, Member: m.IP, QPN: uint32(m.QPN), PSN: &psn}
	switch d.Kind {
	case mcast.MemberEvicted:
		c.warnEvicted(g, d)
		j.Kind, j.Reason = api.EventEvicted, envelope.Cause(d.Syndrome)
	case mcast.SourceRefused:
		c.notify(true, "request refused: the source got a fatal NAK", "group", g.reg.Group, "source", m, "psn", d.PSN, "syndrome", d.Syndrome, "cause", failure(&d.Event))
		j.Kind, j.Reason = api.EventRefused, failure(&d.Event)
	case mcast.NumberDiffers:
		why := mismatch(d.Number, d.PSN, d.Want)
		c.notify(true, "a member's packets do not fit its registration", "group", g.reg.Group, "member", m, "likely", why)
		j.Kind, j.Reason = api.EventMismatch, why
		if d.Number != mcast.SendPSN {
			j.PSN = nil
		}
	case mcast.GroupFailed:
		c.notify(true, "group failed", "group", g.reg.Group, "member", m, "psn", d.PSN, "syndrome", d.Syndrome, "cause", failure(&d.Event))
		j.Kind, j.Reason = api.EventFailed, failure(&d.Event)
	default:
		return
	}
	c.journal.add(j)
}

func (c *control) warnEvicted(g *group, d *decision) {
	c.notify(true, "member evicted", "group", g.reg.Group, "member", g.slots[d.Member].rec.Key(),
		"last_psn", d.PSN, "syndrome", d.Syndrome, "cause", envelope.Cause(d.Syndrome))
}

// failure says in words why a group has failed, and what its source was told if that
// is not the same.
func failure(e *mcast.Event) string {
	why := envelope.Cause(e.Cause)
	if e.Syndrome != 0 && e.Syndrome != e.Cause {
		why += "; the source got a " + envelope.Cause(e.Syndrome)
	}
	return why
}

// mismatch says in words which number of a member's registration is likely wrong, and
// what the right one would be.
func mismatch(n mcast.Number, seen, want rocev2.PSN) string {
	if n == mcast.VirtualQPN {
		return fmt.Sprintf("wrong_qpn: packets for QPN 0x%06x, the group's virtual QPN is 0x%06x: connect the queue pair to that, or register the group with --qpn", uint32(seen), uint32(want))
	}
	if n == mcast.ReceivePSN {
		return fmt.Sprintf("wrong rq-psn: the queue pair expects PSN 0x%06x, registered 0x%06x: after traffic ibv_query_qp has the present one; or restart the queue pair, with fresh PSNs", uint32(seen), uint32(want))
	}
	return fmt.Sprintf("wrong sq-psn: packets seen at PSN 0x%06x, expected 0x%06x by registration: register what the queue pair sends next", uint32(seen), uint32(want))
}
