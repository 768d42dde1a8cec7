// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"time"

	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Wrong ways to tell of envelopes that are refused, and to answer those whose sender
// is not known yet.
var _ = []mutant.Mutant{
	mutant.New("every refused envelope is a line", "Refusals", mutant.In((*sampler[int]).add,
		"if k.reports > 0 && now < k.quietUntil {",
		"if k.reports > 0 && now < 0 {")),
	mutant.New("the end of a flood is never told", "Refusals", mutant.In((*sampler[int]).next,
		"if k := &s.kinds[i]; k.suppressed > 0 && (!ok",
		"if k := &s.kinds[i]; k.suppressed > 1 && (!ok")),
	mutant.New("an answer to an unknown neighbour is lost", "Refusals", mutant.In((*parkedEnvelopes).retry,
		`default:
			keep = append(keep, x)`,
		`case false:
			keep = append(keep, x)`)),
	mutant.New("answers wait without bound", "Refusals", mutant.In((*parkedEnvelopes).hasRoom,
		"len(k.waiting) < maxParked",
		"len(k.waiting) < 2*maxParked")),
	mutant.New("answers wait for ever", "Refusals", mutant.In((*parkedEnvelopes).retry,
		"case now >= x.until:",
		"case now >= x.until+$1:", time.Hour)),
	mutant.New("every registration that is turned down is a line", "Refusals", mutant.In((*control).noteRejection,
		"int(reason), x); report {",
		"int(reason), x); report || true {")),
	mutant.New("rejections of different kinds hide each other", "Refusals", mutant.In((*control).noteRejection,
		"p.Reason < envelope.NumReasons {",
		"p.Reason < 0 {")),
	mutant.New("each turn of a group is reported", "Outcomes", mutant.In((*turnReports).add,
		"x.quiet = true",
		"x.quiet = false")),
	mutant.New("a group's last turn is never reported", "Outcomes", mutant.In((*turnReports).due,
		"if x.held.turns == 0 {",
		"if x.held.turns < 1000 {")),
	mutant.New("each registration that changes nothing is told", "UnchangedRegistrations", mutant.In((*control).noteUnchanged,
		"suppressed, report := c.refused.unchanged.add(c.now(), kind, x); report {",
		"suppressed, report := c.refused.unchanged.add(c.now(), kind, x); report || suppressed == 0 {")),
	mutant.New("a key holder hides what the operator does", "UnchangedRegistrations", mutant.In((*control).noteUnchanged,
		"kind = 1",
		"kind = 0")),
}
