// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to follow members, ports and links. doc.go, Places and Ports, has the
// rules.
var _ = []mutant.Mutant{
	mutant.New("that a host is being resolved is a change", "Places", mutant.In((*hosts).applyChanges,
		`x.retryLater(h, now)
			case len`,
		`x.$1(h)
			case len`, (*hosts).enqueue)),
	mutant.New("a refreshed entry is a change", "Places", mutant.In((*hosts).applyChanges,
		"case len(h.dependsOn.MAC) == 0 || n.MAC != locate.MAC(h.dependsOn.MAC):",
		"default:")),
	mutant.New("an unanswered host is looked up each second", "Places", mutant.In((*hosts).scheduleRetry,
		"h.attempts++",
		"h.attempts = max(h.attempts, 1)")),
	mutant.New("an unanswered host is never looked up again", "Places", mutant.In((*hosts).enqueueRetries,
		"for len(x.unanswered) > 0 && x.unanswered[0].retryAt <= now {",
		"for len(x.unanswered) > 0 && x.unanswered[0].retryAt < 0 {")),
	mutant.New("hosts that one change of an interface loses stay lost", "Places", mutant.In((*hosts).applyChanges,
		"x.enqueueAll(x.unlocated)",
		"")),
	mutant.New("a change of an interface concerns nobody", "Places", mutant.In((*hosts).applyChanges,
		"x.enqueueAll(x.byLink[i])",
		"_ = i")),
	mutant.New("a change of one interface concerns everybody", "Places", mutant.In((*hosts).applyChanges,
		"x.enqueueAll(x.byLink[i])",
		`for _, l := range x.byLink {
			x.enqueueAll(l)
		}
		_ = i`)),
	mutant.New("hosts without a group stay in memory", "Places", mutant.In((*hosts).forget,
		`x.setDependencies(h, locate.Location{}, locate.Location{})
	delete(x.byIP, h.ip)`,
		"delete(x.byIP, h.ip)")),
	mutant.New("a host moves in one group only", "Places", mutant.In((*directory).setGroupLocations,
		`d.onMoved(g, h)
	}`,
		`d.onMoved(g, h)
		break
	}`)),
	mutant.New("the worker does not hear of a move", "Places", mutant.In((*directory).noteStaleTable,
		"d.staleTables = append(d.staleTables, g)",
		"")),
	mutant.New("changes without end are looked at without end", "Places", mutant.In((*changePacer).noteChange,
		"p.gap = min(2*p.gap, maxSettleTime)",
		"p.gap = $1", settleTime)),
	mutant.New("links wait for the pace", "Places", mutant.In((*changePacer).noteChange,
		"p.at = min(p.at, now+settleTime)",
		"p.$1 += 0", changePacer{}.gap)),
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
	mutant.New("a member that moves behind a narrow port says nothing", "Places", mutant.In(newControl,
		`c.checkIsolation(g)
		c.checkPMTU(g)
	}`,
		`c.checkIsolation(g)
	}`)),
	mutant.New("groups are not looked at when members have moved", "Places", mutant.In((*directory).refreshTables,
		"d.onNewTable(g)",
		"")),
	mutant.New("announcements are not paced", "Places", mutant.In((*announcer).due,
		"len(xs) < announceBatch &&",
		"")),
	mutant.New("an announcement is sent once", "Places", mutant.In((*announcer).due,
		"if i+1 < len(a.rounds) {",
		"if i+1 < 1 {")),
	mutant.New("announcements heap up", "Places", mutant.In((*announcer).add,
		"if !a.queued[x] {",
		"if true {")),
	mutant.New("registered groups are not announced", "Places", mutant.In((*control).report,
		`			c.checkIsolation(g)
			c.announceGroup(g)
		}`,
		`			c.checkIsolation(g)
			
		}`)),
	mutant.New("groups of other ports are announced", "Places", mutant.In((*control).announcePort,
		"for h := range c.dir.hosts.byLink[p.Ifindex] {",
		"for _, h := range c.dir.hosts.$1 {", hosts{}.byIP)),
}
