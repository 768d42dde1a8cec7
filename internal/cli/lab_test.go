// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// fakeLab is a gleam-lab that completes, and says what it was asked.
const fakeLab = `#!/bin/sh
echo "--members	members of the group"
echo "$*"
echo :4
`

// A gleam-lab is found in PATH, its completions are those of gleam's command; without one the error names
// the package.
func TestLab(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	list := LabCommands[0](&Env{})
	if err := list.RunE(list, nil); err == nil || !strings.Contains(err.Error(), "demo: this command is in the program gleam-lab") || !strings.Contains(err.Error(), "install the package gleam-lab") {
		t.Errorf("without gleam-lab: %v", err)
	}
	if _, directive := list.ValidArgsFunction(list, nil, ""); directive != cobra.ShellCompDirectiveError {
		t.Errorf("without gleam-lab completions are %v", directive)
	}
	program := filepath.Join(dir, labProgram)
	if err := os.WriteFile(program, []byte(fakeLab), 0o755); err != nil {
		t.Fatal(err)
	}
	if p, err := findLab(); p != program || err != nil {
		t.Errorf("found %s, %v", p, err)
	}
	t.Setenv("PATH", dir+":/bin:/usr/bin")
	list.SetContext(t.Context())
	got, directive := list.ValidArgsFunction(list, []string{"--socket", "x"}, "--me")
	if want := []cobra.Completion{"--members\tmembers of the group", "__complete demo --socket x --me"}; !slices.Equal(got, want) || directive != cobra.ShellCompDirectiveNoFileComp {
		t.Errorf("completions %q and %v, want %q", got, directive, want)
	}
}
