// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to give up privileges, and to bound what a file or a client may cost.
var _ = []mutant.Mutant{
	mutant.New("gleamd serves although it is not confined", "priv", mutant.In((*daemon).run,
		"if err = d.confine(id); err == nil {",
		"if err = d.confine(id); true {")),
	mutant.New("root may be named as the user", "priv", mutant.In(accounts.identify,
		"case id.uid == 0 || id.gid == 0:",
		"case id.uid < 0:")),
	mutant.New("the number of another user is taken", "priv", mutant.In(accounts.nameless,
		`if _, err := a.byID(strconv.Itoa(n)); err == nil {
			continue`,
		`if _, err := a.byID(strconv.Itoa(n)); err == nil && false {
			continue`)),
}
