// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package privilege

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong users, and privileges that are not asked for.
var _ = []mutant.Mutant{
	mutant.New("root may be named as the user", "priv", mutant.In(accounts.identify,
		"case id.UID == 0 || id.GID == 0:",
		"case id.UID < 0:")),
	mutant.New("the number of another user is taken", "priv", mutant.In(accounts.nameless,
		`if _, err := a.byID(strconv.Itoa(n)); err == nil {
			continue`,
		`if _, err := a.byID(strconv.Itoa(n)); err == nil && false {
			continue`)),
	mutant.New("a lack of CAP_PERFMON is not named", "Check", mutant.In(needed,
		`{"CAP_PERFMON", 1<<unix.CAP_PERFMON | 1<<unix.CAP_SYS_ADMIN, false},`,
		"")),
}
