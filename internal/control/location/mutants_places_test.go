// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"time"

	"github.com/gleam-rdma/gleam/internal/control/statefile"
	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Wrong ways to follow hosts, and to keep their places, by key and over a restart.
var _ = []mutant.Mutant{
	mutant.New("the place that a member left from is forgotten", "WrongLocation", mutant.In((*Hosts).Leave,
		"h.left[key] = leftPlace{p.at, x.now}",
		"")),
	mutant.New("that a host is being resolved is a change", "Places", mutant.In((*Hosts).Apply,
		`x.retryLater(h, now)
			case len`,
		`x.$1(h)
			case len`, (*Hosts).LookUp)),
	mutant.New("a refreshed entry is a change", "Places", mutant.In((*Hosts).Apply,
		"case len(h.dependsOn.MAC) == 0 || n.MAC != locate.MAC(h.dependsOn.MAC):",
		"default:")),
	mutant.New("an unanswered host is looked up each second", "Places", mutant.In((*Hosts).scheduleRetry,
		"h.attempts++",
		"h.attempts = max(h.attempts, 1)")),
	mutant.New("an unanswered host is never looked up again", "Places", mutant.In((*Hosts).Retry,
		"for len(x.unanswered) > 0 && x.unanswered[0].retryAt <= now {",
		"for len(x.unanswered) > 0 && x.unanswered[0].retryAt < 0 {")),
	mutant.New("hosts that one change of an interface loses stay lost", "Places", mutant.In((*Hosts).Apply,
		"x.enqueueAll(x.unlocated)",
		"")),
	mutant.New("a change of an interface concerns nobody", "Places", mutant.In((*Hosts).Apply,
		"x.enqueueAll(x.byLink[i])",
		"_ = i")),
	mutant.New("a change of one interface concerns everybody", "Places", mutant.In((*Hosts).Apply,
		"x.enqueueAll(x.byLink[i])",
		`for _, l := range x.byLink {
			x.enqueueAll(l)
		}
		_ = i`)),
	mutant.New("hosts without a group stay in memory", "Places", mutant.In((*Hosts).forget,
		`x.setDependencies(h, locate.Location{}, locate.Location{})
	delete(x.byIP, h.ip)`,
		"delete(x.byIP, h.ip)")),
	mutant.New("a host moves in one group only", "Places", mutant.In((*Hosts).setGroupLocations,
		`x.OnMoved(group, h, at, err)
		}`,
		`x.OnMoved(group, h, at, err)
			break
		}`)),
	mutant.New("after a restart a host has one place for all keys", "Places", mutant.In((*Hosts).recall,
		"held, p := was.Locations[key],",
		"held, p := was.$1,", statefile.Host{}.Pinned)),
	mutant.New("the kernel places a member whose place nobody knows", "Places", mutant.In((*Hosts).admits,
		"return false",
		"return true")),
	mutant.New("of a held place the port is enough", "Places", mutant.In((*Hosts).admits,
		"return is == p.held || is.Hop",
		"return is.$1 == p.held.$1 || is.Hop", statefile.Location{}.Port)),
	mutant.New("what the kernel has lost is lost under all keys", "Places", mutant.In((*Hosts).newLocation,
		"return Same(h.placeIn(key).at, h.pinned)",
		"return Same(h.pinned, h.pinned)")),
	mutant.New("a registration asks where another key's holder has the member", "Proofs", mutant.In((*Host).LocationFor,
		"if h.answer.Known() {",
		"if h.answer.Known() && h == nil {")),
	mutant.New("hosts that have left one group are in the file no more", "Places", mutant.In((*Hosts).TakeFormer,
		"return h != nil && h.IsMember()",
		"return h == nil && h.IsMember()")),
	mutant.New("the place of a group that is lost stays in the indexes", "Places", mutant.In((*Hosts).Release,
		"x.removePlace(h, key)",
		"delete(h.$1, key)", Host{}.places)),
	mutant.New("a port is removed under members of another key", "Places", mutant.In((*Host).isAt,
		"if p.at.Ifindex == ifindex {",
		"if p.at.Ifindex == -ifindex {")),
	mutant.New("a member is not asked where it was seen", "Proofs", mutant.In((*Inquirer).SendProofs,
		"s != nil && p.answeredFrom == nil {",
		"s != nil && p.answeredFrom != nil {")),
	mutant.New("a place that was missing stays so", "Places", mutant.In((*Lookups).SubmitHosts,
		"held: x.heldPlaces(h)",
		"held: nil")),
	mutant.New("a place at an interface that is made anew is lost under another key", "Places", mutant.In((*Hosts).Rebind,
		"if p.at.Known() {",
		"if p.at.Known() && p == nil {")),
	mutant.New("groups keep the interface that was made anew", "Places", mutant.In((*Hosts).Rebind,
		"*p.shared = p.shared.Rebound(was, now)",
		"")),
	mutant.New("hosts of members below are forgotten", "WaysOfMembersBelow", mutant.In((*Host).isKept,
		"h.isPinned() || len(h.routed) > 0",
		"h.isPinned()")),
	mutant.New("a removed port counts all hosts as its members", "Ports", mutant.In((*Hosts).MembersAt,
		"h.IsMember() && h.isAt(ifindex)",
		"h.IsMember() && !h.isAt(ifindex)")),
}

// Wrong ways to ask the kernel where hosts are.
var _ = []mutant.Mutant{
	mutant.New("the locator keeps the control loop waiting", "Places", mutant.In((*Lookups).submit,
		"a.requests <- q",
		`a.requests <- q
	for range 2000 {
		if len(a.$1) > 0 {
			break
		}
		$2($3)
	}`, Lookups{}.results, time.Sleep, time.Millisecond)),
	mutant.New("registrations wait for the queue of changes", "Places", mutant.In((*Hosts).LookUp,
		`case h.isWanted(x.now):
		x.enqueueUrgent(h)`,
		""), mutant.In((*Hosts).enqueueUrgent,
		`if !h.lookupPending && !h.urgent {
		h.urgent = true
		x.urgent = append(x.urgent, h)
	}`,
		`if !h.lookupPending && !h.$1 {
		h.$1 = true
		x.$2 = append(x.$2, h)
	}`, Host{}.queued, Hosts{}.queue)),
	mutant.New("changes cause lookups of hosts without bound", "Places", mutant.In(maxChangeLookups,
		"const maxChangeLookups = 2000",
		"const maxChangeLookups = 2000_000")),
	mutant.New("an answer of before a change is the last word", "Places", mutant.In((*Hosts).LookUp,
		`	case h.lookupPending:
		h.lookupAgain = true`,
		`	case h.lookupPending:
		h.lookupAgain = false`)),
	mutant.New("envelopes bring guests without bound", "Places", mutant.In((*Hosts).Guest,
		"len(x.guests) >= maxGuests",
		"len(x.guests)/2 >= maxGuests")),
	mutant.New("the entries of members are given up", "Places", mutant.In((*Inquirer).reresolve,
		"h.isPinned() || !h.location.Known()",
		"!h.location.Known()")),
	mutant.New("a host that does not answer is not resolved anew", "Places", mutant.In((*Inquirer).SendProofs,
		"p.timesSent == reresolveAfter",
		"p.timesSent == -reresolveAfter")),
	mutant.New("each request from elsewhere has the kernel ask", "Places", mutant.In((*Inquirer).reresolve,
		"now-h.reresolvedAt < reresolveInterval",
		"now-h.reresolvedAt < -reresolveInterval")),
	mutant.New("requests from where the kernel has the host have it ask", "Places", mutant.In((*Inquirer).RequestFrom,
		"(at.Port != from.Port || at.MAC != from.MAC)",
		"(at.Port != from.Port || at.MAC != from.MAC || at.Port >= 0)")),
	mutant.New("a lookup does not have the kernel ask anew", "Places", mutant.In((*Lookups).Run,
		"if q.anew {",
		"if q.anew && !q.anew {")),
	mutant.New("a router at a port without hellos is a switch", "Routes", mutant.In((*Lookups).locate,
		"hop.err == nil && !a.bySwitch(hop.at.Ifindex)",
		"hop.err != nil && !a.bySwitch(hop.at.Ifindex)")),
	mutant.New("the routes of hosts that are forgotten are watched", "Routes", mutant.In((*Hosts).forget,
		"x.routes.Unsubscribe(h.ip)",
		"")),
	mutant.New("a route that changes is not looked up again", "Routes", mutant.In((*Hosts).FollowRoutes,
		"x.LookUp(h)",
		"")),
}
