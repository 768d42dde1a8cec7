// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Wrong reports to operators and users.
var _ = []mutant.Mutant{
	mutant.New("an interruption is told as an error", "user", mutant.In(run,
		"errors.Is(ctx.Err(), context.Canceled)",
		"errors.Is(ctx.Err(), context.$1)", context.DeadlineExceeded)),
	mutant.New("an interruption hides what else went wrong", "user", mutant.In(besidesCanceled,
		`joined, ok := err.(interface{ Unwrap() []error })
	if !ok {`,
		`joined, ok := err.(interface{ Unwrap() []error })
	if ok || !ok {`)),
	mutant.New("the oldest group of an address is shown", "user", mutant.In((*Env).endedGroup,
		"for i := len(gs) - 1; i >= 0; i-- {",
		"for i := range gs {")),
}

// Wrong pictures of trees.
var _ = []mutant.Mutant{
	mutant.New("whoever answers is the switch that was asked", "tree", mutant.In((*collector).spread,
		"t.Switch != s.Switch",
		"t.Switch == \"\"")),
	mutant.New("the tree begins where it was asked", "tree", mutant.In((*groupTree).first,
		"at = l.Switch",
		"return at")),
}
