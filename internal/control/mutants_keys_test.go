// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Wrong ways to hold keys: who owns a group, what a key may do, and what counts from
// where. The rule is a subject of docs/PROTOCOL.md.
var _ = []mutant.Mutant{
	mutant.New("the switch does not know who only receives", "R76", mutant.In((*directory).makeSpec,
		"spec.Members = append(spec.Members, mcast.MemberSpec{MemberRecord: r.Members[i], Number: r.Number(i), Leg: at})",
		`spec.Members = append(spec.Members, mcast.MemberSpec{MemberRecord: r.Members[i], Number: r.Number(i), Leg: at})
		spec.Members[i].$1 = false`, mcast.MemberRecord{}.ReceiveOnly)),
}
