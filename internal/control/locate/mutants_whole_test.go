// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package locate

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to make locations, and to take them up after a restart.
var _ = []mutant.Mutant{
	mutant.New("a part of a location is pinned to nothing", "Places", mutant.In((*Pins).Set,
		"if err := at.Check(); err != nil {",
		"if err := at.Check(); err != nil && err == nil {")),
	mutant.New("an interface that was none is bound again", "Places", mutant.In(Location.Rebound,
		"if !l.Known() || was == 0 {",
		"if was < 0 {")),
	mutant.New("a host moves where no bridge leads", "Places", mutant.In(Location.At,
		"if l.Learnt.Bridge == 0 || l.Learnt.Port != l.Ifindex {",
		"if l.Learnt.Bridge < 0 || l.Learnt.Port < 0 || l.Ifindex < 0 {")),
	mutant.NewForRoot("a place is recalled by another next hop", "Places", mutant.In((*Locator).Recall,
		"if hop != h.Hop {",
		"if hop != h.Hop && hop == h.Hop {")),
	mutant.NewForRoot("a place is recalled at a port that has left the bridge", "Places", mutant.In((*Locator).Recall,
		"case port.Attrs().MasterIndex != br.Index:",
		"case port.Attrs().MasterIndex < 0:")),
}
