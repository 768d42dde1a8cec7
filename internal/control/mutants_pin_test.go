// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// pinMutants bring back what let a stranger move a member.
var _ = []mutant.Mutant{
	mutant.New("an answer from another MAC address counts", "Places", mutant.In((*inquiries).answered,
		"q != nil && q.newOrigin == s {",
		"q != nil && q.newOrigin.$1 == s.$1 {", dataplane.Origin{}.Port)),
	mutant.New("a port's inquiries have no bound", "Places", mutant.In((*inquiries).mayStart,
		"&& x.count[port] < maxInquiries",
		"")),
	mutant.New("an answer in another group's name counts", "Places", mutant.In((*control).handleHere,
		"q == nil || h == nil || a.group != e.Group:",
		"q == nil || h == nil:")),
	mutant.New("a confirmation moves a member in the groups of all keys", "Places", mutant.In((*control).handleHere,
		"return ok && k == a.key",
		"return ok || k == a.key")),
	mutant.New("a member that answers from its old place is evicted", "Places", mutant.In((*control).inquiryFailed,
		"config.MoveEvict && !q.answeredFromOld &&",
		"config.MoveEvict &&")),
	mutant.New("a member is held behind a port that is down", "Places", mutant.In((*control).setPinner,
		"p.set(h.ip, pinTarget{h.pinned, c.ports[pi].reportedUp})",
		"p.set(h.ip, pinTarget{h.pinned, true})")),
	mutant.New("what a bridge has learnt moves a member", "Places", mutant.In((*hosts).admits,
		"return sameLocation(*at, p.at) || !sameRoute(*at, p.at)",
		"return sameLocation(*at, p.at) || sameRoute(*at, p.at) || !sameRoute(*at, p.at)")),
	mutant.New("a changed route is not followed", "Places", mutant.In((*hosts).admits,
		"return sameLocation(*at, p.at) || !sameRoute(*at, p.at)",
		"return sameLocation(*at, p.at)")),
	mutant.New("pins outlive the groups", "Places", mutant.In((*hosts).unpin,
		"h.pinned, h.seenElsewhere = locate.Location{}, nil\n\tx.onPinChange(h)",
		"")),
	mutant.New("a MAC address at two ports is watched at one", "Places", mutant.In((*watchedHosts).mac,
		"return w.list.SetMAC(mac, 0)",
		"return nil")),
}
