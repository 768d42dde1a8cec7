// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to give up privileges, and to bound what a file or a client may cost.
var _ = []mutant.Mutant{
	mutant.New("gleamd serves although it is not confined", "priv", mutant.In((*daemon).run,
		"if err = d.confine(id); err == nil {",
		"if err = d.confine(id); true {")),
}
