// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"github.com/gleam-rdma/gleam/internal/control/statefile"
	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Wrong ways to keep the places of hosts, by key and over a restart. places.go and
// recall.go begin with the rules.
var _ = []mutant.Mutant{
	mutant.New("after a restart a host has one place for all keys", "Places", mutant.In((*control).recallHost,
		"held, ok := was.Locations[key]",
		"held, ok := was.$1, was.Locations[key] == was.Locations[key]", statefile.Host{}.Pinned)),
	mutant.New("an older file's place of a host is that of all its keys", "Places", mutant.In((*control).recallHost,
		"was.Locations == nil && len(keys) == 1",
		"was.Locations == nil && len(keys) >= 1")),
	mutant.New("the kernel places a member whose place nobody knows", "Places", mutant.In((*hosts).admits,
		"return false",
		"return true")),
	mutant.New("of an older file's place the port is enough", "Places", mutant.In((*hosts).admits,
		"return is == p.held || is.Hop",
		"return is.$1 == p.held.$1 || is.Hop", statefile.Location{}.Port)),
	mutant.New("anybody speaks for a member without a place", "WrongLocation", mutant.In((*directory).FromMember,
		"return !member",
		"return member || !member")),
	mutant.New("what the kernel has lost is lost under all keys", "Places", mutant.In((*directory).newLocation,
		"return sameLocation(h.placeIn(g.key).at, h.pinned)",
		"return sameLocation(h.pinned, h.pinned)")),
	mutant.New("a registration asks where another key's holder has the member", "Proofs", mutant.In((*host).locationFor,
		"if h.answer.Known() {",
		"if h.answer.Known() && h == nil {")),
	mutant.New("a group's envelopes go where another key's holder has the member", "Places", mutant.In((*host).locationIn,
		"if i, in := g.hosts[h.ip]; in {",
		"if i, in := g.hosts[h.ip]; in && i < 0 {")),
	mutant.New("hosts that have left all groups stay in the file", "Places", mutant.In((*control).keep,
		"for _, ip := range former {",
		"for _, ip := range former[len(former):] {")),
	mutant.New("hosts that have left one group are in the file no more", "Places", mutant.In((*hosts).takeFormer,
		"return h != nil && h.isMember()",
		"return h == nil && h.isMember()")),
	mutant.New("the place of a group that is lost stays in the indexes", "Places", mutant.In((*control).releaseRecalled,
		"c.dir.hosts.removePlace(h, key)",
		"delete(h.$1, key)", host{}.places)),
	mutant.New("a port is removed under members of another key", "Places", mutant.In((*host).isAt,
		"if p.at.Ifindex == ifindex {",
		"if p.at.Ifindex == -ifindex {")),
	mutant.New("a member is not asked where it was seen", "Proofs", mutant.In((*control).sendProofs,
		"s != nil && p.answeredFrom == nil {",
		"s != nil && p.answeredFrom != nil {")),
	mutant.New("a key's groups have a member at different places", "Places", mutant.In((*directory).setSlots,
		"d.followPlaces(g, moved)",
		"_ = moved")),
	mutant.New("a place that was missing stays so", "Places", mutant.In((*control).submitLookups,
		"held: c.dir.heldPlaces(h)",
		"held: nil")),
	mutant.New("a place at an interface that is made anew is lost under another key", "Places", mutant.In((*control).rebindHosts,
		"if p.at.Known() {",
		"if p.at.Known() && p == nil {")),
	mutant.New("allow lists do not count after a restart", "Places", mutant.In((*directory).checkRestored,
		"err := d.checkAllowed(here.Members[i].IP, &places[i]); err != nil {",
		"err := d.checkAllowed(here.Members[i].IP, &places[i]); err != nil && d == nil {")),
	mutant.New("a path MTU that does not fit is not reported after a restart", "Places", mutant.In((*control).restoreGroup,
		"c.checkPMTU(g)\n\tc.checkIsolation(g)\n\tc.announceGroup(g)",
		"c.checkIsolation(g)\n\tc.announceGroup(g)")),
}
