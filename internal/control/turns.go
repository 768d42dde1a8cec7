// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/rocev2"
)

// turnGap is the least time between two reports of a group's source. Members that take
// turns as source may change up to fifty times a second.
const turnGap = time.Second

// turn is one source of a group, and the number of sources since the last report.
type turn struct {
	member envelope.MemberKey
	psn    rocev2.PSN
	turns  uint64
}

// turnReports limits reports of sources. The first source of a group is reported at once.
// Sources within turnGap after a report are counted, and the last of them is reported
// when turnGap has passed, with their number. It does not read a clock.
type turnReports struct {
	quiet []quietGroup // groups with a report within turnGap, in the order in which that ends
}

type quietGroup struct {
	g     *group
	until time.Duration
}

// add records a turn of g, and reports whether to report it now.
func (r *turnReports) add(now time.Duration, g *group, t turn) (report bool) {
	x := g.apply()
	if x.quiet {
		t.turns += x.held.turns
		x.held = t
		return false
	}
	x.quiet = true
	r.quiet = append(r.quiet, quietGroup{g, now + turnGap})
	return true
}

// due calls report for every group whose last report is turnGap ago, if it has had other
// sources since.
func (r *turnReports) due(now time.Duration, report func(*group, turn)) {
	n := 0
	for _, q := range r.quiet {
		if now < q.until {
			break
		}
		n++
		x := q.g.apply()
		if x.held.turns == 0 {
			x.quiet = false
			continue
		}
		r.quiet = append(r.quiet, quietGroup{q.g, now + turnGap})
		r.flush(q.g, report)
	}
	r.quiet = append(r.quiet[:0], r.quiet[n:]...)
}

// flush reports the turn that g holds back, if any.
func (r *turnReports) flush(g *group, report func(*group, turn)) {
	if t := g.applied().held; t.turns > 0 {
		g.outcomes.held = turn{}
		report(g, t)
	}
}

// next returns when due has work.
func (r *turnReports) next() (at time.Duration, ok bool) {
	if len(r.quiet) == 0 {
		return 0, false
	}
	return r.quiet[0].until, true
}

// logTurn reports the source of g to the operator.
func (c *control) logTurn(g *group, t turn) {
	c.notify(false, "group has a new source", "group", g.reg.Group, "member", t.member, "psn", t.psn, "turns", t.turns)
	psn := api.PSN(t.psn)
	j := api.Event{Kind: api.EventSource, Group: g.reg.Group, Member: t.member.IP, QPN: api.QPN(t.member.QPN), PSN: &psn}
	if t.turns > 1 {
		j.Reason = fmt.Sprintf("the last of %d turns", t.turns)
	}
	c.journal.Add(j)
}
