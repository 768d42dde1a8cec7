// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"testing"

	"github.com/gleam-rdma/gleam/internal/cli"
)

// gleam has the same commands as gleam-lab, with the same words.
func TestGleamHasTheSame(t *testing.T) {
	if len(Commands) != len(cli.LabCommands) {
		t.Fatalf("%d commands, gleam has %d", len(Commands), len(cli.LabCommands))
	}
	for i, c := range cli.LabCommands {
		if got, want := c(&cli.Env{}), Commands[i](&cli.Env{}); got.Name() != want.Name() || got.Short != want.Short {
			t.Errorf("gleam has %s: %s\ngleam-lab has %s: %s", got.Name(), got.Short, want.Name(), want.Short)
		}
	}
}
