// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to give up privileges, and to bound what a file or a client may cost.
var _ = []mutant.Mutant{
	mutant.New("whoever reaches the socket may change", "priv", mutant.In((*Access).refusal,
		"may, lacks := r >= operator, a.Change",
		"may, lacks := r >= $1, a.Change", reader)),
	mutant.New("supplementary groups do not count", "priv", mutant.In((*Peer).isIn,
		"slices.Contains(p.Groups, g.ID)",
		"slices.Contains(p.Groups, p.$1)", Peer{}.GID)),
	mutant.New("without a group to read nobody may", "priv", mutant.In((*Access).role,
		"case a.Read == nil || p.isIn(a.Read):",
		"case p.isIn(a.Read):")),
	mutant.New("a user may have all of a share", "priv", mutant.In((*userShare).take,
		"s.total >= s.max || s.byUser[user] >= s.perUser",
		"s.total >= s.max")),
	mutant.New("a share is not given back", "priv", mutant.In((*userShare).give,
		"s.total--",
		"")),
	mutant.New("a body is decoded whatever it becomes", "priv", mutant.In(decode,
		"n > maxObjects {",
		"n < 0 {")),
	mutant.New("changes by the API are done without a trace", "priv", mutant.In((*handler).audited,
		`c.Err = err
	h.backend.Audit(c)`,
		"c.Err = err")),
	mutant.New("a change that fails is audited as done", "priv", mutant.In((*handler).audited,
		`c.Err = err
	h.backend.Audit(c)`,
		"h.backend.Audit(c)")),
}
