// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Wrong ways to give up privileges, and to bound what a file or a client may cost.
var _ = []mutant.Mutant{
	mutant.New("nesting has no bound", "priv", mutant.In(checkSize,
		"case flow+len(columns) > depthMax:",
		"case false:")),
	mutant.New("levels in block style are not counted", "priv", mutant.In(checkSize,
		"flow+len(columns) > depthMax",
		"flow > depthMax")),
	mutant.New("levels are never left", "priv", mutant.In(checkSize,
		"columns = columns[:len(columns)-1]",
		"break")),
	mutant.New("keys have no bound", "priv", mutant.In(checkSize,
		"case keys > keysMax:",
		"case false:")),
	mutant.New("a configuration with secrets is taken from anybody", "ConfigurationWithSecrets", mutant.In(parse,
		"if s := d.inline; s.line > 0 && st != nil {",
		"if s := d.inline; s.line > 1<<20 && st != nil {")),
	mutant.New("the file of a socket is everybody's although only a group may read", "priv", mutant.In((*API).check,
		"a.Mode = openToAll",
		"_ = a.Mode")),
}
