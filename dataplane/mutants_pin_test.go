// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"github.com/gleam-rdma/gleam/dataplane/locate"
	"github.com/gleam-rdma/gleam/test/mutants/mutant"
)

// pinMutants bring back what let a stranger move a member.
var _ = []mutant.Mutant{
	mutant.New("an answer from another MAC address counts", "Places", mutant.In((*inquiries).answered,
		"q != nil && q.at == s {",
		"q != nil && q.at.$1 == s.$1 {", spot{}.port)),
	mutant.New("a port is asked at without bound", "Places", mutant.In((*inquiries).may,
		"&& x.count[port] < maxQuestions",
		"")),
	mutant.New("an answer in another group's name counts", "Places", mutant.In((*control).here,
		"q == nil || h == nil || a.group != e.Group:",
		"q == nil || h == nil:")),
	mutant.New("a confirmation moves a member in the groups of all keys", "Places", mutant.In((*control).here,
		"return ok && k == a.key",
		"return ok || k == a.key")),
	mutant.New("a member that answers from its old place is evicted", "Places", mutant.In((*control).unconfirmed,
		"config.MovesEvict && !q.atHome &&",
		"config.MovesEvict &&")),
	mutant.New("a member is held behind a port that is down", "Places", mutant.In((*control).pinBy,
		"p.set(h.ip, pin{h.pin, c.crew.ports[pi].saidUp})",
		"p.set(h.ip, pin{h.pin, true})")),
	mutant.New("what a bridge has learnt moves a member", "Places", mutant.In((*directory).candidate,
		"samePlace(at, h.pin), !sameWay(at, h.pin):",
		"samePlace(at, h.pin), h.pin.$1 != 0:", locate.Location{}.Ifindex)),
	mutant.New("a changed route is not followed", "Places", mutant.In((*directory).candidate,
		"samePlace(at, h.pin), !sameWay(at, h.pin):",
		"samePlace(at, h.pin):")),
	mutant.New("pins outlive the groups", "Places", mutant.In((*hosts).leave,
		`h.pin, h.seen = locate.Location{}, nil
		x.pinned(h)`,
		"")),
	mutant.New("a MAC address at two ports is watched at one", "Places", mutant.In((*watched).mac,
		"return w.list.SetMAC(mac, 0)",
		"return nil")),
}
