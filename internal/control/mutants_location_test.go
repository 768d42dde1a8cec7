// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Wrong ways to ask where members are. doc.go, Places, has the rules.
var _ = []mutant.Mutant{
	mutant.New("the locator keeps the control loop waiting", "Places", mutant.In((*lookupQueue).submit,
		"a.requests <- q",
		`a.requests <- q
	for range 2000 {
		if len(a.$1) > 0 {
			break
		}
		$2($3)
	}`, lookupQueue{}.results, time.Sleep, time.Millisecond)),
	mutant.New("registrations wait for the queue of changes", "Places", mutant.In((*hosts).enqueue,
		`case h.isWanted(x.now):
		x.enqueueUrgent(h)`,
		""), mutant.In((*hosts).enqueueUrgent,
		`if !h.lookupPending && !h.urgent {
		h.urgent = true
		x.urgent = append(x.urgent, h)
	}`,
		`if !h.lookupPending && !h.$1 {
		h.$1 = true
		x.$2 = append(x.$2, h)
	}`, host{}.queued, hosts{}.queue)),
	mutant.New("changes cause lookups of hosts without bound", "Places", mutant.In(maxChangeLookups,
		"const maxChangeLookups = 2000",
		"const maxChangeLookups = 2000_000")),
	mutant.New("an answer of before a change is the last word", "Places", mutant.In((*hosts).enqueue,
		`	case h.lookupPending:
		h.lookupAgain = true`,
		`	case h.lookupPending:
		h.lookupAgain = false`)),
	mutant.New("envelopes bring guests without bound", "Places", mutant.In((*hosts).guest,
		"if len(x.guests) >= room {",
		"if len(x.guests)/2 >= room {")),
	mutant.New("a registration that is given up is waited for", "Places", mutant.In((*directory).locateMembers,
		"a.reg == reg && a.missing > 0",
		"a.reg.$1 == reg.$1 && a.missing > 0", envelope.Registration{}.Epoch)),
	mutant.New("a lease ends in a pause of the control loop", "Places", mutant.In((*control).registrarDeadline,
		"return max(at, c.loop.leasesHeldUntil), ok",
		"return at, ok")),
}
