// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Wrong ways to follow members, ports and links. doc.go, Places and Ports, has the
// rules.
var _ = []mutant.Mutant{
	mutant.New("the worker does not hear of a move", "Places", mutant.In((*directory).noteStaleTable,
		"d.staleTables = append(d.staleTables, g)",
		"")),
	mutant.New("registrations go by the old MTU", "Places", mutant.In((*control).mtuChanged,
		"p.mtu = mtu",
		"")),
	mutant.New("the workers do not hear of the MTU", "Places", mutant.In((*control).mtuChanged,
		"if c.plane.SetMTU(pi, mtu) != nil {",
		"if pi < 0 {")),
	mutant.New("groups that do not fit say nothing", "Places", mutant.In((*control).checkPMTU,
		`	was := g.mtuText
	g.mtuText = narrow`,
		`	was := g.mtuText
	g.mtuText = was`)),
	mutant.New("groups are not looked at when members have moved", "Places", mutant.In((*directory).refreshTables,
		"d.onNewTable(g)",
		"")),
	mutant.New("an announcement is sent once", "Places", mutant.In((*announcer).due,
		"if i+1 < len(a.rounds) {",
		"if i+1 < 1 {")),
	mutant.New("announcements heap up", "Places", mutant.In((*announcer).add,
		"if !a.queued[x] {",
		"if true {")),
	mutant.New("groups of other ports are announced", "Places", mutant.In((*control).announceGroup,
		"(only == everyPort || c.plane.PortIndex(s.at().Ifindex) == only)",
		"true")),
	mutant.New("all groups of a port that comes up are looked at at once", "Places", mutant.In((*control).continueSweeps,
		"looks < sweepGroups && ",
		"")),
	mutant.New("all groups of a port that comes up are requested at once", "Places", mutant.In((*control).continueSweeps,
		"asked+announceBatch",
		"asked+100*announceBatch")),
	mutant.New("a port that comes up again is announced from where it was", "Places", mutant.In((*control).announcePort,
		"return x.port == pi",
		"return false")),
	mutant.New("changes without end are looked at without end", "Places", mutant.In((*changePacer).noteChange,
		"p.gap = min(2*p.gap, maxSettleTime)",
		"p.gap = $1", settleTime)),
	mutant.New("links wait for the pace", "Places", mutant.In((*changePacer).noteChange,
		"p.at = min(p.at, now+settleTime)",
		"p.$1 += 0", changePacer{}.gap)),
	mutant.New("anybody speaks for a member without a place", "WrongLocation", mutant.In((*directory).FromMember,
		"return !member",
		"return member || !member")),
	mutant.New("a group's envelopes go where another key's holder has the member", "Places", mutant.In(locationIn,
		"if i, in := g.hostSlot(h.IP()); in {",
		"if i, in := g.hostSlot(h.IP()); in && i < 0 {")),
	mutant.New("hosts that have left all groups stay in the file", "Places", mutant.In((*control).keep,
		"for _, ip := range former {",
		"for _, ip := range former[len(former):] {")),
	mutant.New("a key's groups have a member at different places", "Places", mutant.In((*directory).setSlots,
		"d.hosts.Follow(h, g.key)",
		"_ = h")),
	mutant.New("allow lists do not count after a restart", "Places", mutant.In((*directory).checkRestored,
		"err := d.checkAllowed(here.Members[i].IP, places[i]); err != nil {",
		"err := d.checkAllowed(here.Members[i].IP, places[i]); err != nil && d == nil {")),
	mutant.New("a path MTU that does not fit is not reported after a restart", "Places", mutant.In((*control).restored,
		"c.checkPMTU(g)\n\tc.checkIsolation(g)",
		"c.checkIsolation(g)")),
	mutant.New("a registration that is given up is waited for", "Places", mutant.In((*directory).locateMembers,
		"a.reg == reg && a.missing > 0",
		"a.reg.$1 == reg.$1 && a.missing > 0", envelope.Registration{}.Epoch)),
	mutant.New("a lease ends in a pause of the control loop", "Places", mutant.In((*control).registrarDeadline,
		"return max(at, c.loop.leasesHeldUntil), ok",
		"return at, ok")),
}
