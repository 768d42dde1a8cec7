// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// guardMutants take bricks out of the port guard, as far as it is in Go.
var _ = []mutant.Mutant{
	mutant.New("a port with lists does not hear of its neighbour", "guard", mutant.In((*bridgeFollower).takeRebound,
		"p.neighbour, p.fresh = mac, true",
		"p.neighbour = mac")),
	mutant.New("an unchanged count of the guard is an offence", "guard", mutant.In((*portGuardLog).poll,
		"if err != nil || n == p.counted[r] {",
		"if err != nil || n == 0 {")),
	mutant.New("the guard's watch tells of each look", "guard", mutant.In((*portGuardLog).poll,
		"+int(r), o); report {",
		"+int(r), o); report || true {")),
	mutant.New("ports share the guard's samples", "guard", mutant.In((*portGuardLog).poll,
		"i*int(bpf.NumReasons)+int(r)",
		"int(r)")),
	mutant.New("a port takes VLANs that the bridge itself is not in", "guard", mutant.In((*bridgeFollower).setPolicy,
		`	local := bpf.VLANs(now.Local)
	policy.VLANs.And(&local)`,
		`	local := bpf.VLANs(now.Local)
	local.And(&local)`)),
	mutant.New("who is gone from a locked port goes on speaking", "guard", mutant.In((*bridgeFollower).setStations,
		"VID: s.VID}, false); err != nil {",
		"VID: s.VID}, true); err != nil {")),
	mutant.New("a change of the bridge does not reach the workers", "guard", mutant.In((*bridgeFollower).poll,
		`p.state, p.fresh = now, false
			b.apply(pi, now)`,
		`p.state, p.fresh = now, false
			_ = b.apply`)),
}
